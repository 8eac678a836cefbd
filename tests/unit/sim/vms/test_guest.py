"""What a real machine does to open its root: the calls that the kernel gets, and which disk it takes."""

from __future__ import annotations

import fcntl
import io
import pathlib
import struct
import sys
from pathlib import Path

import pytest

from fastness.sim.vms import guest
from fastness.sim.vms.guest import SEALED
from fastness.sim.vms.initrd import INIT

HASH = "ab" * 32
HEAD, TARGET = 312, 40  # sizes of struct dm_ioctl and struct dm_target_spec (include/uapi/linux/dm-ioctl.h)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bytes]]:
    """What the script asked the kernel for, with the disks vda (unnamed) and vdb (the root's)."""
    recorded: list[tuple[int, bytes]] = []
    for name, serial in (("vda", ""), ("vdb", f"{guest.ROOT_DISK}\n")):
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "serial").write_text(serial)
    monkeypatch.setattr(pathlib, "Path", lambda _: tmp_path / "block")
    monkeypatch.setattr(fcntl, "ioctl", lambda _, number, data: recorded.append((number, bytes(data))))
    monkeypatch.setattr(sys, "argv", ["sealed_root.py", "1000", HASH])
    return recorded


def test_the_kernel_is_told_to_compare_every_block_of_the_disk_with_the_measured_hash(
    calls: list[tuple[int, bytes]],
) -> None:
    exec(SEALED, {"open": lambda *_: io.BytesIO()})
    assert [number for number, _ in calls] == [0xC138FD03, 0xC138FD09, 0xC138FD06]
    for _, data in calls:
        assert struct.unpack_from("=3I", data)[0] == 4, "version of the interface"
        assert struct.unpack_from("=I", data, 12)[0] == len(data)
        assert data[48:53] == b"root\0"
    table = calls[1][1]
    assert struct.unpack_from("=QQ", table, HEAD) == (0, 1000 * 8)
    assert table[HEAD + 24 : HEAD + 31] == b"verity\0"
    words = table[HEAD + TARGET :].rstrip(b"\0").decode()
    assert words == f"1 /dev/vdb /dev/vdb 4096 4096 1000 1000 sha256 {HASH} -"


def test_without_a_disk_of_that_name_the_machine_does_not_go_on(calls: list[tuple[int, bytes]], tmp_path: Path) -> None:
    (tmp_path / "block" / "vdb" / "serial").write_text("other\n")
    with pytest.raises(SystemExit, match="no disk is named root"):
        exec(SEALED, {"open": lambda *_: io.BytesIO()})
    assert calls == []


def test_a_machine_switches_off_whose_root_is_not_the_measured_one() -> None:
    (line,) = (line for line in INIT.splitlines() if guest.OPENER in line)
    assert line.endswith("|| poweroff -f")


def test_only_a_machine_that_proved_itself_goes_on_into_its_root() -> None:
    before, _, after = INIT.partition('if [ $laid = 0 ] && [ $proved = 0 ] && [ -n "$sealed" ]; then')
    assert "switch_root" not in before
    assert "switch_root" in after.partition("elif")[0]
