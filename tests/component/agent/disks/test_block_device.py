"""Disks that fail: full, read-only, shorter than they say, unreadable. Each says which, and nothing goes on in clear."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.opening import open_volume
from fastness.agent.disks.rekeying import rekey_volume
from fastness.agent.disks.volume import VolumeSettings
from tests.unit.crypto.seeded import Seeded
from tests.volumes import DISK_BYTES, KEY, NEW_KEY, MemoryMapper, volume


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(volume())
    return path


def failing(number: int) -> Callable[..., int]:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full"), (errno.EROFS, "disk-read-only"), (errno.EIO, "disk-io")],
)
@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_disk_that_does_not_take_a_write_says_why_and_the_volume_still_opens(
    disk: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: str
) -> None:
    with (
        FileDevice(disk) as device,
        pytest.raises(DiskError, match=os.strerror(number)) as caught,
        monkeypatch.context() as patch,
    ):
        patch.setattr(os, call, failing(number))
        rekey_volume(device, [NEW_KEY, KEY], None, Seeded())
    assert caught.value.code == code
    assert str(disk) in caught.value.message
    assert caught.value.hint
    with FileDevice(disk) as device:
        assert open_volume(device, [NEW_KEY, KEY], None, MemoryMapper(), "v").key_id == "k1"


def test_making_a_volume_on_a_full_disk_fails_and_leaves_no_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(DISK_BYTES))
    with FileDevice(path) as device, pytest.raises(DiskError) as caught, monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing(errno.ENOSPC))
        format_volume(device, KEY.key, KEY.id, VolumeSettings(), Seeded())
    assert caught.value.code == "disk-full"
    assert not any(path.read_bytes())


def test_a_disk_that_cannot_be_read_opens_nothing(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapper = MemoryMapper()
    monkeypatch.setattr(os, "pread", failing(errno.EIO))
    with FileDevice(disk) as device, pytest.raises(DiskError, match="read 32768 bytes at 0") as caught:
        open_volume(device, [KEY], None, mapper, "v")
    assert caught.value.code == "disk-io"
    assert mapper.tables == {}


def test_a_disk_that_is_shorter_than_it_said_opens_nothing(disk: Path) -> None:
    mapper = MemoryMapper()
    with FileDevice(disk) as device:
        os.truncate(disk, 100_000)
        with pytest.raises(DiskError, match="ends at 100000") as caught:
            open_volume(device, [KEY], None, mapper, "v")
    assert caught.value.code == "disk-short-read"
    assert mapper.tables == {}


def test_reads_and_writes_in_pieces_are_put_together(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: pread(fd, min(length, 1000), offset))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:1000], offset))
    with FileDevice(disk) as device:
        device.write(5000, bytes(range(250)) * 20)
        assert device.read(5000, 5000) == bytes(range(250)) * 20


def test_nothing_is_written_behind_the_end(disk: Path) -> None:
    with FileDevice(disk) as device, pytest.raises(DiskError) as caught:
        device.write(DISK_BYTES - 1, b"xx")
    assert caught.value.code == "disk-full"
    assert disk.stat().st_size == DISK_BYTES


def test_a_disk_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="absent: No such file") as caught:
        FileDevice(tmp_path / "absent")
    assert caught.value.code == "disk-io"
