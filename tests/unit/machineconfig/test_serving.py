"""What a booting machine is answered: version negotiation and the document."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig import ignition
from fastness.machineconfig.serving import CannotServe, UnsupportedAccept, configuration_of, document, negotiate

TYPE = "application/vnd.coreos.ignition+json"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{TYPE}; version=2.4.0, {TYPE}; version=1; q=0.5, */*; q=0.1", "2.2.0"),
        *[(f"{TYPE};version=3.{minor}.0", f"3.{minor}.0") for minor in range(1, 6)],
        (f"{TYPE};version=3.99.0", "3.5.0"),
        (TYPE, "2.2.0"),
        ("text/plain", "2.2.0"),
        ("", "2.2.0"),
        (";;;,=,/;version", "2.2.0"),
        (f"{TYPE};version=3.1.0;q=0.1, {TYPE};version=3.3.0", "3.3.0"),
    ],
)
def test_the_first_version_by_quality_decides(accept: str, version: str) -> None:
    assert negotiate(accept) == version


@pytest.mark.parametrize("version", ["4.0.0", "1.0.0", "2.1.0"])
def test_a_version_that_is_not_served_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedAccept):
        negotiate(f"{TYPE};version={version}")


def pool(updated: int = 0, spec: str = "", status: str = "") -> dict[str, Any]:
    pool_object: dict[str, Any] = {"spec": {}, "status": {"updatedMachineCount": updated}}
    if spec:
        pool_object["spec"]["configuration"] = {"name": spec}
    if status:
        pool_object["status"]["configuration"] = {"name": status}
    return pool_object


def test_new_machines_get_the_new_config_once_a_machine_has_proved_it() -> None:
    assert configuration_of(pool(0, "new", "old")) == "old"
    assert configuration_of(pool(1, "new", "old")) == "new"
    assert configuration_of(pool(0, "first")) == "first"
    assert configuration_of(pool()) == ""


def rendered(**config: Any) -> dict[str, Any]:
    body = {"ignition": {"version": "3.5.0"}, **config}
    spec = {"config": body, "kernelArguments": ["quiet"], "extensions": [], "fips": False, "kernelType": "default"}
    name = "rendered-worker-0123"
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": {"name": name}, "spec": spec}


def files(answer: bytes) -> dict[str, Any]:
    return {entry["path"]: entry for entry in json.decode(answer)["storage"]["files"]}


def test_the_agent_finds_what_it_starts_from_and_the_encapsulated_config_is_last() -> None:
    answer = document(rendered(), "3.2.0")
    config = json.decode(answer)
    assert config["ignition"]["version"] == "3.2.0"
    paths = [entry["path"] for entry in config["storage"]["files"]]
    assert paths[-1] == names.ENCAPSULATED_FILE
    notes = json.decode(dataurl.contents(files(answer)[names.NODE_ANNOTATIONS_FILE]["contents"]))
    assert notes[names.CURRENT_CONFIG] == "rendered-worker-0123"
    assert notes[names.STATE] == "Done"
    capsule = json.decode(dataurl.contents(files(answer)[names.ENCAPSULATED_FILE]["contents"]))
    assert capsule["spec"]["config"] == {"ignition": {"version": "3.2.0"}}
    assert capsule["spec"]["kernelArguments"] == ["quiet"]


def test_whatever_holds_a_whole_config_is_for_root_alone() -> None:
    secret = rendered(storage={"files": [{"path": "/etc/key", "mode": 0o600, "contents": {"source": "data:,canary"}}]})
    for path, entry in files(document(secret, "3.2.0")).items():
        holds = b"canary" in dataurl.contents(entry["contents"])
        assert not holds or entry["mode"] == 0o600, path


def test_kernel_arguments_move_for_clients_that_do_not_know_the_section() -> None:
    config = rendered(kernelArguments={"shouldExist": ["audit=0"]})
    old = json.decode(dataurl.contents(files(document(config, "3.2.0"))[names.ENCAPSULATED_FILE]["contents"]))
    assert old["spec"]["kernelArguments"] == ["quiet", "audit=0"]
    assert json.decode(document(config, "3.3.0"))["kernelArguments"] == {"shouldExist": ["audit=0"]}
    with pytest.raises(CannotServe):
        document(rendered(kernelArguments={"shouldNotExist": ["x"]}), "3.2.0")


def test_nothing_rendered_is_changed_and_the_bytes_are_the_same_each_time() -> None:
    config = rendered(storage={"files": [{"path": "/etc/a", "contents": {"source": "data:,x"}}]})
    before = json.canonical(config)
    assert document(config, "3.4.0") == document(config, "3.4.0")
    assert json.canonical(config) == before


@pytest.mark.parametrize("version", ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])
def test_every_version_that_is_answered_is_a_good_config(version: str) -> None:
    config = rendered(storage={"files": [{"path": "/etc/a", "mode": 420, "contents": {"source": "data:,x"}}]})
    assert ignition.parse(document(config, version)).version == version


def test_what_an_old_version_cannot_say_is_not_left_out_silently() -> None:
    config = rendered(storage={"luks": [{"name": "root", "device": "/dev/sda", "clevis": {"tpm2": True}}]})
    with pytest.raises(CannotServe, match="luks"):
        document(config, "3.1.0")
