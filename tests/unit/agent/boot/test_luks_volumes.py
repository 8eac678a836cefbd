"""Volumes of a real machine behind the port of unlocking: LUKS2 on a device, a file system once, refusals with codes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastness.agent.boot.luks_volumes import LuksVolumes
from fastness.agent.boot.root_source import RootSource
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.host.errors import CommandFailed
from fastness.crypto.secret import SecretBytes
from fastness.protocol.disk_keys import DiskKey
from fastness.protocol.disk_report import is_header
from tests.virtual import SeededEntropy
from tests.volumes import MemoryMapper

FIRST, SECOND = (DiskKey(f"k{number}", SecretBytes(bytes([number]) * 32)) for number in (1, 2))


class Machine:
    """A machine with one disk, whose programs are written down."""

    def __init__(self, directory: Path, size: int = 4 << 20) -> None:
        self.disk = directory / "disk"
        self.disk.write_bytes(bytes(size))
        self.commands: list[list[str]] = []
        self.fails = ""
        self.mounts, self.opened = directory / "mounts", directory / "opened"
        (directory / "tree").mkdir()
        (directory / "tree/init").touch()
        self.source = RootSource(MemoryMapper(), self.program, directory / "tree", initial=directory)

    def program(self, words: Sequence[str]) -> str:
        self.commands.append(list(words))
        if words[0] == self.fails:
            raise CommandFailed(f"{words[0]} ended with 32")
        return ""

    def volumes(self) -> LuksVolumes:
        """As the agent of one boot sees it."""
        return LuksVolumes(
            {"var": self.disk, "root": self.disk}, SeededEntropy(3), mapper=MemoryMapper(), mounts=self.mounts,
            program=self.program, source=self.source, opened=self.opened,
        )  # fmt: skip

    def made(self, volume: str = "var") -> dict[str, object]:
        volumes = self.volumes()
        volumes.make(volume, FIRST, "none")
        header = volumes.open(volume, [FIRST], None).header
        volumes.settle(volume)
        return header


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_new_volume_gets_a_file_system_once(machine: Machine) -> None:
    header = machine.made()
    assert is_header(header)
    opened = machine.volumes().open("var", [FIRST], header)
    assert (opened.key, opened.header, opened.directory) == ("k1", header, machine.mounts / "var")
    assert [words[0] for words in machine.commands] == ["mke2fs", "mount", "umount", "mount"]
    assert machine.commands[-1][-2:] == ["/dev/mapper/fastness-var", str(machine.mounts / "var")]


def test_a_root_is_filled_once_from_what_the_boot_measured(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "major", lambda _: 0)  # as if the tree lay in an initial file system
    header = machine.made("root")
    machine.volumes().open("root", [FIRST], header)
    assert [words[0] for words in machine.commands] == ["mke2fs", "mount", "cp", "umount", "mount"]
    assert machine.commands[2][-1] == str(machine.mounts / "root")


def test_a_root_is_not_formatted_where_nothing_could_fill_it(machine: Machine) -> None:
    before = machine.disk.read_bytes()
    machine.source = RootSource(MemoryMapper(), machine.program, machine.disk.with_name("gone"))
    with pytest.raises(DiskRefused) as refused:
        machine.made("root")
    assert refused.value.reason == "root-without-source"
    assert machine.disk.read_bytes() == before
    assert machine.commands == []


def test_a_copy_that_fails_stops_the_boot_and_leaves_no_link(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "major", lambda _: 0)
    machine.fails = "cp"
    with pytest.raises(DiskRefused) as refused:
        machine.made("root")
    assert refused.value.reason == "file-system"
    assert not machine.opened.exists()


def test_what_is_open_for_the_system_has_a_link_that_units_mount(machine: Machine) -> None:
    machine.made()
    assert os.readlink(machine.opened / "var") == "/dev/mapper/fastness-var"
    assert machine.opened.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("keys", "change", "reason"),
    [
        ([SECOND], {}, "key-does-not-open"),
        ([FIRST], {"uuid": "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab"}, "disk-exchanged"),
    ],
)
def test_another_key_or_another_disk_is_refused_with_its_code(
    machine: Machine, keys: list[DiskKey], change: dict[str, str], reason: str
) -> None:
    header = machine.made() | change
    with pytest.raises(DiskRefused) as refused:
        machine.volumes().open("var", keys, header)
    assert refused.value.reason == reason
    assert refused.value.hint
    assert machine.commands[-1][0] == "umount"  # of the boot that made it: nothing was mounted since


def test_a_header_that_the_host_changed_is_refused(machine: Machine) -> None:
    header = machine.made()
    content = bytearray(machine.disk.read_bytes())
    content[4100] ^= 1
    content[16384 + 4100] ^= 1
    machine.disk.write_bytes(content)
    with pytest.raises(DiskRefused) as refused:
        machine.volumes().open("var", [FIRST], header)
    assert refused.value.reason == "header-refused"


def test_after_a_rekey_the_old_key_opens_nothing(machine: Machine) -> None:
    header = machine.made()
    assert machine.volumes().rekey("var", [SECOND, FIRST], header) == "k2"
    assert machine.volumes().open("var", [SECOND], header).key == "k2"
    with pytest.raises(DiskRefused):
        machine.volumes().open("var", [FIRST], header)


@pytest.mark.parametrize("program", ["mke2fs", "mount", "umount"])
def test_a_program_that_fails_stops_the_boot(machine: Machine, program: str) -> None:
    machine.fails = program
    with pytest.raises(DiskRefused) as refused:
        machine.made()
    assert refused.value.reason == "file-system"


def test_a_disk_that_is_gone_or_too_small_is_named(tmp_path: Path) -> None:
    small = Machine(tmp_path, 4096)
    with pytest.raises(DiskRefused) as refused:
        small.made()
    assert refused.value.reason == "disk-too-small"
    small.disk.unlink()
    with pytest.raises(DiskRefused):
        small.made()
