"""Who brought what, and the image layer that does what a confidential pool refuses."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fastness.builds.checks import written
from fastness.formats import data_url as dataurl
from fastness.machineconfig.render.blame import Blame, PartKind
from fastness.machineconfig.render.render import sources_of
from fastness.machineconfig.render.suggest import PushPlace, layer, os_config
from tests.unit.machineconfig.build import file, ignition, mc, pool


def blame(*configs: dict[str, Any]) -> Blame:
    return Blame(sources_of(pool(), configs))


def test_a_file_tells_its_source_field_by_field_and_what_was_overridden() -> None:
    whole = blame(
        mc("1", ignition(file("/etc/chrony.conf", "a"))),
        mc("2", ignition({"path": "/etc/chrony.conf", "mode": 0o600})),
        mc("3", ignition({"path": "/etc/chrony.conf", "contents": {"source": "data:,c"}})),
    )
    [origin] = whole.of("/etc/chrony.conf")
    assert origin.fields == {"contents.source": "3", "mode": "2"}
    assert (origin.source, origin.overridden) == ("3", ("1",))
    assert origin.to_json()["overrode"] == ["1"]


def test_a_link_that_takes_the_place_of_a_file_has_one_history_with_it() -> None:
    link = mc("2", ignition(storage={"links": [{"path": "/etc/a", "target": "/b"}]}))
    [origin] = blame(mc("1", ignition(file("/etc/a"))), link).of("/etc/a")
    assert (origin.kind, [touch.config for touch in origin.history]) == (PartKind.LINK, ["1", "2"])


def test_units_drop_ins_users_keys_arguments_extensions_and_fields_have_a_source() -> None:
    units = [{"name": "a.service", "enabled": True, "dropins": [{"name": "x.conf", "contents": "[Unit]\n"}]}]
    users = [{"name": "core", "passwordHash": "h", "sshAuthorizedKeys": ["k1"]}]
    document = ignition(units=units, users=users, kernelArguments={"shouldExist": ["inside"]})
    spec: dict[str, Any] = {
        "kernelArguments": ["a=1 b"],
        "kernelType": "realtime",
        "fips": True,
        "extensions": ["usbguard"],
        "osImageURL": "i",
    }
    whole = blame(mc("0"), mc("1", document, **spec))
    for name in (
        "a.service",
        "a.service/x.conf",
        "core",
        "k1",
        "inside",
        "a=1",
        "b",
        "kernelType",
        "fips",
        "usbguard",
        "osImageURL",
    ):
        [origin] = whole.of(name)
        assert origin.source == "1", name
    assert whole.source(PartKind.UNIT, "a.service") == "1"
    assert whole.source(PartKind.UNIT, "b.service") == ""


def test_a_directory_finds_what_is_below_it() -> None:
    whole = blame(mc("1", ignition(file("/etc/a/x"), file("/etc/a/y"), file("/etc/ab"))))
    assert [origin.name for origin in whole.of("/etc/a/")] == ["/etc/a/x", "/etc/a/y"]
    assert whole.of("/nothing") == ()


def test_the_layer_holds_arguments_kernel_packages_and_files() -> None:
    config = mc(
        "99-host",
        ignition(
            file("/etc/pivot/kernel-args", "ADD nosmt\nDELETE x\n"),
            file("/usr/lib/bootc/kargs.d/9.toml", 'kargs = ["q"]\n'),
            kernelArguments={"shouldExist": ["inner"], "shouldNotExist": ["quiet"]},
        ),
        kernelArguments=["a=1 b"], kernelType="realtime", fips=True, extensions=["usbguard", "sysstat"],
    )  # fmt: skip
    text = layer([config])
    assert text.startswith("FROM configs AS final\n")
    assert 'kargs = ["a=1", "b", "inner", "fips=1"]' in text
    assert "--nogpgcheck --setopt=cachedir=/tmp/dnf install usbguard sysstat" in text
    assert "swap --allowerasing kernel-core kernel-rt-core" in text
    assert "bootc" not in text.replace("/usr/lib/bootc/kargs.d", ""), "no program that a base may lack"
    assert 'kargs = ["nosmt"]' in text
    assert 'kargs = ["q"]' in text
    assert "quiet" in text
    assert "# from MachineConfig 99-host" in text
    assert all(line.startswith(("FROM", "RUN", "#")) or not line for line in text.splitlines())


def test_there_is_no_layer_without_a_reason() -> None:
    plain = mc("1", ignition(file("/etc/a")), kernelType="default")
    assert layer([plain]) == ""
    assert os_config([plain]) is None


@pytest.mark.parametrize(
    ("shipped", "left"),
    [
        ('kargs = ["quiet", "a.b"]', ["quiet"]),
        ('kargs = ["a.b", "quiet"]', ["quiet"]),
        ('kargs = ["a.b"]', []),
        ('kargs = [\n  "a.b",\n  "quiet",\n]', ["quiet"]),
        ('kargs = ["aXb"]', ["aXb"]),
    ],
)
def test_the_layer_takes_an_argument_out_of_files_of_the_base(tmp_path: Path, shipped: str, left: list[str]) -> None:
    (tmp_path / "1.toml").write_text(f"{shipped}\n")
    config = mc("1", ignition(kernelArguments={"shouldNotExist": ["a.b"]}))
    (step,) = [line for line in layer([config]).splitlines() if line.startswith("RUN ")]
    command = step.removeprefix("RUN ").replace("/usr/lib/bootc/kargs.d", str(tmp_path))
    subprocess.run(["/bin/sh", "-ec", command], check=True)
    assert tomllib.loads((tmp_path / "1.toml").read_text())["kargs"] == left


@pytest.mark.row("003-33")
@pytest.mark.row("000-29")
def test_the_suggested_object_is_whole_and_nothing_in_it_is_refused() -> None:
    config = mc("99-smt", kernelArguments=["nosmt"])
    config["metadata"]["labels"] = {"machineconfiguration.openshift.io/role": "infra"}
    suggested = os_config([config], PushPlace(spec="registry.example.com/os/infra:1", secret="mine"))
    assert suggested is not None
    assert suggested["metadata"]["name"] == suggested["spec"]["machineConfigPool"]["name"] == "infra"
    assert suggested["spec"]["renderedImagePushSecret"] == {"name": "mine"}
    assert written(suggested) == ()


def test_text_in_a_layer_is_quoted_for_the_shell() -> None:
    nasty = ignition(
        {"path": "/usr/lib/bootc/kargs.d/a.toml", "contents": {"source": dataurl.encode(b"it's $(x) \\ \n")}}
    )
    assert "'it'\"'\"'s $(x) \\\\ \\n'" in layer([mc("1", nasty)])
