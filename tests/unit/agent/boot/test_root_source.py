"""What a root volume is filled with: nothing that its host could have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fastness.agent.boot.root_source import RootSource
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.tables import Target
from fastness.agent.host.process import run


class Mapper:
    """A kernel that maps one device, as it was told."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self.kinds = kinds

    def table(self, name: str) -> tuple[Target, ...]:
        if name != "source":
            raise DiskError("mapper", f"there is no {name}")
        return tuple(Target(0, 8, kind, "") for kind in self.kinds)


class Machine:
    """A tree, and the device of the file system that it lies on."""

    def __init__(self, directory: Path) -> None:
        self.place, self.devices = directory / "root", directory / "devices"
        (self.place / "etc").mkdir(parents=True)
        (self.place / "etc/os-release").write_text("ID=x")
        (self.place / "etc/link").symlink_to("os-release")

    def mapped(self) -> None:
        """As sysfs shows a device of the mapper."""
        number = self.place.stat().st_dev
        entry = self.devices / f"{os.major(number)}:{os.minor(number)}" / "dm"
        entry.mkdir(parents=True)
        (entry / "name").write_text("source\n")

    def source(self, *kinds: str, initial: Path = Path("/proc")) -> RootSource:
        return RootSource(Mapper(kinds), run, self.place, self.devices, initial)  # type: ignore[arg-type]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def refusal(source: RootSource) -> str:
    with pytest.raises(DiskRefused) as refused:
        source.check()
    assert refused.value.reason == "root-without-source"
    assert "dm-verity" in refused.value.hint
    return refused.value.message


def test_a_tree_that_a_hash_seals_is_taken(machine: Machine) -> None:
    machine.mapped()
    machine.source("verity").check()


@pytest.mark.parametrize("kinds", [(), ("linear",), ("crypt",), ("verity", "linear")])
def test_a_tree_on_a_device_that_nothing_seals_is_refused(machine: Machine, kinds: tuple[str, ...]) -> None:
    assert "nothing seals" in refusal(machine.source(*kinds))
    machine.mapped()
    assert "nothing seals" in refusal(machine.source(*kinds))


def test_a_tree_of_the_initial_file_system_is_taken_if_that_lies_in_memory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for major, fits in ((0, True), (8, False)):
        monkeypatch.setattr(os, "major", lambda _, major=major: major)
        if fits:
            machine.source(initial=machine.place.parent).check()
            assert "nothing seals" in refusal(machine.source(initial=Path("/proc")))
        else:
            assert "nothing seals" in refusal(machine.source(initial=machine.place.parent))


def test_no_tree_and_an_empty_one_are_refused(machine: Machine, tmp_path: Path) -> None:
    machine.place = tmp_path / "gone"
    assert str(machine.place) in refusal(machine.source("verity"))
    machine.place.mkdir()
    assert "is empty" in refusal(machine.source("verity"))


def test_the_tree_is_copied_with_its_links(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    machine.source("verity").fill(tmp_path / "volume")
    assert (tmp_path / "volume/etc/os-release").read_text() == "ID=x"
    assert os.readlink(tmp_path / "volume/etc/link") == "os-release"
