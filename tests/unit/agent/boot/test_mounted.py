"""The last look before a root is entered: volumes open, encrypted, and where the system uses them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fastness.agent.boot.mounted import check_mounted
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.tables import Target

# A device that every system has, in the place of one that only a mapper makes.
DEVICE = Path("/dev/null")


class Mapper:
    """A kernel that maps both volumes, as it was told."""

    def __init__(self, kind: str = "crypt") -> None:
        self.kind = kind

    def table(self, name: str) -> tuple[Target, ...]:
        if not self.kind:
            raise DiskError("mapper", f"the kernel refuses to show {name}")
        return (Target(0, 8, self.kind, ""),)


class Machine:
    def __init__(self, directory: Path) -> None:
        self.mappings, self.mounted, self.root = directory / "mapper", directory / "mountinfo", directory / "sysroot"
        self.mappings.mkdir()
        for volume in ("root", "var"):
            (self.mappings / f"fastness-{volume}").symlink_to(DEVICE)
        number = DEVICE.stat().st_rdev
        self.own = f"{os.major(number)}:{os.minor(number)}"
        self.mount((self.own, self.root), (self.own, self.root / "var"))

    def mount(self, *entries: tuple[str, Path]) -> None:
        lines = [f"{n} 1 {device} / {place} rw - ext4 x rw" for n, (device, place) in enumerate(entries, start=20)]
        self.mounted.write_text("\n".join(lines))

    def check(self, *volumes: str, kind: str = "crypt") -> None:
        places = {"new_root": self.root, "mounted": self.mounted, "mappings": self.mappings}
        check_mounted(volumes, Mapper(kind), **places)  # type: ignore[arg-type]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def refusal(machine: Machine, *volumes: str, kind: str = "crypt") -> str:
    with pytest.raises(DiskRefused) as refused:
        machine.check(*volumes, kind=kind)
    assert refused.value.reason == "volume-not-mounted"
    assert refused.value.hint
    return refused.value.message


def test_volumes_that_are_open_and_mounted_let_the_boot_go_on(machine: Machine) -> None:
    machine.check("root", "var")
    machine.check()


@pytest.mark.parametrize("volume", ["root", "var"])
def test_a_volume_that_is_not_mounted_or_covered_by_another_device_stops_it(machine: Machine, volume: str) -> None:
    place = machine.root / ("" if volume == "root" else "var")
    machine.mount((machine.own, machine.root / "elsewhere"))
    assert f"not mounted at {place}" in refusal(machine, volume)
    machine.mount((machine.own, place), ("8:1", place))
    assert f"not mounted at {place}" in refusal(machine, volume)
    machine.mounted.unlink()
    refusal(machine, volume)


@pytest.mark.parametrize("kind", ["linear", "integrity", "verity"])
def test_a_mapping_that_encrypts_nothing_stops_it(machine: Machine, kind: str) -> None:
    assert f"maps it as {kind}" in refusal(machine, "var", kind=kind)


def test_a_volume_that_is_not_open_stops_it(machine: Machine) -> None:
    assert "is not open" in refusal(machine, "var", kind="")
    (machine.mappings / "fastness-var").unlink()
    assert "is not open" in refusal(machine, "var")


def test_a_volume_of_another_name_has_to_be_open_and_is_mounted_by_whoever_uses_it(machine: Machine) -> None:
    assert "is not open" in refusal(machine, "data")
    (machine.mappings / "fastness-data").symlink_to(DEVICE)
    machine.check("data")


def test_places_with_blanks_are_told_apart(machine: Machine) -> None:
    machine.root = machine.root.with_name("new root")
    machine.mounted.write_text(f"20 1 {machine.own} / {str(machine.root).replace(' ', chr(92) + '040')} rw - ext4 x rw")
    machine.check("root")
