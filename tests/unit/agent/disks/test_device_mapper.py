"""The kernel's mapper where there is none, or where it refuses: errors with a code, and nothing left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

import pytest

from fastness.agent.disks import device_mapper
from fastness.agent.disks.device_mapper import KernelMapper
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.tables import Target
from fastness.crypto.secret import SecretBytes

CRYPT = Target(0, 8, "crypt", "aes-xts-plain64 :64:logon:fastness:x 0 7:0 2048")
HEAD = 312
CREATE, REMOVE, LOAD, STATUS = 3, 4, 9, 12


class Kernel:
    """A kernel that remembers what it was asked, and refuses what it is told to."""

    def __init__(self, refusals: dict[int, list[int]], targets: bytes = b"", count: int = 0, flags: int = 0) -> None:
        self.commands: list[int] = []
        self._refusals = refusals
        self._answer = (targets, count, flags)

    def ioctl(self, _: int, request: int, buffer: bytearray) -> int:
        command = request & 0xFF
        self.commands.append(command)
        assert request >> 8 == 0xC000FD | HEAD << 8
        if self._refusals.get(command):
            number = self._refusals[command].pop(0)
            raise OSError(number, os.strerror(number))
        targets, count, flags = self._answer
        buffer[20:24] = struct.pack("=I", count)
        buffer[28:32] = struct.pack("=I", flags)
        buffer[HEAD : HEAD + len(targets)] = targets
        return 0


@pytest.fixture
def mapper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KernelMapper:
    (tmp_path / "mapper").mkdir()
    (tmp_path / "mapper" / "control").touch()
    monkeypatch.setattr(device_mapper, "DEVICES", tmp_path)
    monkeypatch.setattr(device_mapper, "CONTROL", tmp_path / "mapper" / "control")
    return KernelMapper()


def answering(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Kernel:
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    return kernel


def test_a_machine_without_the_mapper_says_which_modules_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(device_mapper, "CONTROL", tmp_path / "absent")
    with pytest.raises(DiskError, match="to make v: No such file") as caught:
        KernelMapper().create("v", "uuid", CRYPT)
    assert caught.value.code == "mapper"
    assert "dm_crypt" in caught.value.hint


def test_a_table_that_the_kernel_refuses_leaves_no_mapping(
    mapper: KernelMapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = answering(monkeypatch, Kernel({LOAD: [errno.EINVAL]}))
    with pytest.raises(DiskError, match="to load crypt aes-xts-plain64") as caught:
        mapper.create("v", "uuid", CRYPT)
    assert caught.value.code == "mapper"
    assert kernel.commands == [CREATE, LOAD, REMOVE]


def test_a_mapping_that_is_still_in_use_for_a_moment_is_removed_then(
    mapper: KernelMapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = answering(monkeypatch, Kernel({REMOVE: [errno.EBUSY, errno.EBUSY]}))
    mapper.remove("v")
    assert kernel.commands == [REMOVE] * 3
    answering(monkeypatch, Kernel({REMOVE: [errno.ENXIO]}))
    with pytest.raises(DiskError, match="to remove v"):
        mapper.remove("v")


def test_every_line_of_a_table_is_read(mapper: KernelMapper, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"".join(
        (struct.pack("=QQiI16s", start, 8, 0, following, kind) + text).ljust(64, b"\0")
        for start, following, kind, text in ((0, 64, b"crypt", b"aes"), (8, 128, b"linear", b"7:0 0"))
    )
    answering(monkeypatch, Kernel({}, lines, 2))
    assert mapper.table("v") == (Target(0, 8, "crypt", "aes"), Target(8, 8, "linear", "7:0 0"))


def test_a_table_that_was_cut_off_is_not_compared(mapper: KernelMapper, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, Kernel({}, flags=1 << 8))
    with pytest.raises(DiskError, match="longer than"):
        mapper.table("v")


def test_a_key_for_a_machine_that_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_mapper, "_SYSCALLS", {})
    with (
        pytest.raises(DiskError, match="is given a key"),
        KernelMapper().hold_key("fastness:x", SecretBytes(bytes(64))),
    ):
        pass
