"""Defaults of ours below /usr: where they lie in an image, who wins over them, and that they are no reason to build."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.builds.defaults import base_configs, defaults_of
from fastness.builds.inputs import BuildInputs, inputs
from fastness.builds.placement import PUBLIC, Setting, Where, placed, public_configs
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.merge import Source, merged_document
from fastness.machineconfig.render.validate import examine
from fastness.machineconfig.rollout.disruption import DEFAULTS
from fastness.protocol.usr_places import below_usr

IMAGE = f"registry.example/os@sha256:{'a' * 64}"
ARP, POLICY = "/etc/sysctl.d/arp.conf", "/etc/containers/policy.json"
CRIO, ORDER = "crio.service", {"name": "05-order.conf", "contents": "[Unit]"}


def config(name: str, files: dict[str, str], units: tuple[JsonObject, ...] = (), **notes: str) -> JsonObject:
    entries = [{"path": path, "mode": 420, "contents": {"source": f"data:,{text}"}} for path, text in files.items()]
    document = {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": entries},
        "systemd": {"units": list(units)},
    }
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"config": document}}


def base(arp: str = "ours", name: str = "00-worker", order: JsonObject = ORDER) -> JsonObject:
    units = ({"name": "kubelet.service", "contents": "[Service]", "enabled": True}, {"name": CRIO, "dropins": [order]})
    return config(name, {ARP: arp, POLICY: "p"}, units, **{names.GENERATED_BY: "1", PUBLIC: "true"})


def sources(*configs: JsonObject) -> list[Source]:
    return [Source(each.name, each.spec, each.document) for each in map(examine, configs)]


def setting(*configs: JsonObject, confidential: bool = False) -> Setting:
    return Setting(DEFAULTS, confidential, public_configs(configs), base_configs(configs))


def made_of(*configs: JsonObject, confidential: bool = False) -> BuildInputs:
    merged = sources(*configs)
    rendered = {"spec": {"config": merged_document(merged), "osImageURL": IMAGE}}
    return inputs({"spec": {}}, rendered, merged, setting(*configs, confidential=confidential))


def laid(image: BuildInputs) -> dict[str, str]:
    return {each.path: each.content.decode() for each in image.laid}


@pytest.mark.row("003-25")
def test_a_default_lies_below_usr_where_its_program_looks_there_and_the_rest_stays() -> None:
    files = laid(made_of(base()))
    assert files == {
        "/usr/lib/sysctl.d/arp.conf": "ours",
        "/usr/lib/systemd/system/kubelet.service": "[Service]",
        "/usr/lib/systemd/system/crio.service.d/05-order.conf": "[Unit]",
    }
    assert not below_usr(POLICY), "container libraries read one file, and distributions have it in /etc"


@pytest.mark.row("003-78")
@pytest.mark.row("003-79")
def test_a_machine_config_wins_in_etc_with_the_default_below_it_in_the_same_image() -> None:
    changed = {"name": CRIO, "dropins": [{"name": "05-order.conf", "contents": "[Service]"}]}
    masked = {"name": "kubelet.service", "mask": True}
    mine = config("50-mine", {"/etc/sysctl.d/other.conf": "x"}, (changed, masked))
    files = laid(made_of(base(), mine))
    assert files["/etc/systemd/system/crio.service.d/05-order.conf"] == "[Service]"
    assert files["/usr/lib/systemd/system/crio.service.d/05-order.conf"] == "[Unit]"
    assert files["/usr/lib/systemd/system/kubelet.service"] == "[Service]", "a mask in /etc is over it"
    (order,) = (each for each in defaults_of(sources(base(), mine), {"00-worker"}) if "05-order" in each.path)
    assert order.explanation == (
        "/etc/systemd/system/crio.service.d/05-order.conf of 50-mine wins over "
        "/usr/lib/systemd/system/crio.service.d/05-order.conf of 00-worker: /etc is read in the place of /usr"
    )


@pytest.mark.parametrize(
    ("unit", "winner"),
    [
        ({"enabled": False}, ""),
        ({"dropins": [{"name": "9.conf", "contents": "x"}]}, ""),
        ({"contents": "y"}, "50-mine"),
    ],
)
def test_only_who_says_something_about_the_file_wins_over_it(unit: JsonObject, winner: str) -> None:
    mine = config("50-mine", {}, ({"name": "kubelet.service", **unit},))
    (default,) = (each for each in defaults_of(sources(base(), mine), {"00-worker"}) if each.path.endswith("t.service"))
    assert default.winner == winner


def test_a_drop_in_that_somebody_takes_away_leaves_no_default_that_nothing_would_hide() -> None:
    gone = config("50-mine", {}, ({"name": CRIO, "dropins": [{"name": "05-order.conf", "contents": ""}]},))
    assert not [path for path in laid(made_of(base(), gone)) if "05-order" in path]


def test_what_an_earlier_name_says_is_overridden_by_the_base_as_merging_does() -> None:
    (arp,) = (
        each for each in defaults_of(sources(config("00-a", {ARP: "x"}), base()), {"00-worker"}) if each.path == ARP
    )
    assert (arp.content, arp.winner) == (b"ours", "")


def test_only_a_base_config_that_we_made_has_defaults() -> None:
    ours = base_configs([
        base(), base(name="01-worker-kubelet"), base(name="01-infra-container-runtime"), base(name="99-worker-generated-kubelet"),
        config("00-infra", {}), base(name="00-"),
    ])  # fmt: skip
    assert ours == {"00-worker", "01-worker-kubelet", "01-infra-container-runtime"}
    assert laid(made_of(config("00-worker", {"/etc/sysctl.d/mine.conf": "x"}))) == {"/etc/sysctl.d/mine.conf": "x"}


def test_a_default_that_needs_no_reboot_is_no_reason_to_build_and_one_that_does_is() -> None:
    first = made_of(base())
    assert made_of(base("newer")).digest == first.digest, "sysctl takes effect on a running machine"
    assert made_of(base(order={**ORDER, "contents": "[Service]"})).digest != first.digest
    at_its_path = BuildInputs(first.base, first.layer, first.files)
    assert at_its_path.digest == first.digest, "that it lies elsewhere than in older images builds none of them anew"


def test_a_file_that_somebody_puts_below_usr_themselves_is_in_the_image_as_they_wrote_it() -> None:
    mine = config("50-mine", {"/usr/lib/sysctl.d/arp.conf": "mine"})
    assert laid(made_of(base(), mine))["/usr/lib/sysctl.d/arp.conf"] == "mine"


def test_in_a_confidential_pool_a_private_word_stays_on_the_disk_and_our_public_default_is_in_the_image() -> None:
    files = laid(made_of(base(), config("50-secret", {ARP: "canary"}), confidential=True))
    assert files["/usr/lib/sysctl.d/arp.conf"] == "ours"
    assert "canary" not in files.values()
    held = base()
    held["metadata"]["annotations"].pop(PUBLIC)
    assert laid(made_of(held, confidential=True)) == {}


def test_where_everything_goes_names_both_places_and_who_wins() -> None:
    def where(*configs: Any) -> dict[str, tuple[Where, str, str]]:
        return {each.path: (each.where, each.owner, each.why) for each in placed(sources(*configs), setting(*configs))}

    alone = where(base())
    assert ARP not in alone
    assert alone["/usr/lib/sysctl.d/arp.conf"] == (
        Where.IMAGE, "00-worker", f"a default of ours; {ARP} would win",
    )  # fmt: skip
    both = where(base(), config("50-mine", {ARP: "x"}))
    assert both[ARP] == (
        Where.DISK, "50-mine",
        "takes effect without a reboot (Restart systemd-sysctl.service); wins over /usr/lib/sysctl.d/arp.conf of 00-worker",
    )  # fmt: skip
    assert both["/usr/lib/sysctl.d/arp.conf"][2] == f"a default of ours; overridden: {ARP} of 50-mine wins"
