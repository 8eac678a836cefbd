"""zstd frames by the real program: whole, too large, damaged, and without the program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastness.agent.host.image import unzstd as module
from fastness.agent.host.image.unzstd import unzstd
from fastness.formats.cpio import CpioError, unpack_initrd
from fastness.formats.zstd import frame_length
from fastness.sim.vms.initrd import archive
from tests.components import require_program

pytestmark = pytest.mark.processes

ARCHIVE = archive({"etc/initrd-release": b"ID=test\n", "usr/bin/large": b"x" * 300_000}, {})


def packed(data: bytes, *words: str) -> bytes:
    require_program(Path("/usr/bin/zstd"), "zstd")
    return subprocess.run(["/usr/bin/zstd", "-q", "-c", *words], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("words", [(), ("-19",), ("--no-check",), ("-T0", "--ultra", "-22"), ("--no-content-size",)])
def test_an_initial_file_system_is_read_that_the_program_packed_and_something_may_follow(
    words: tuple[str, ...],
) -> None:
    frame = packed(ARCHIVE, *words)
    assert frame_length(frame + b"rest") == len(frame)
    assert unpack_initrd(frame + bytes(512) + archive({"etc/late": b""}, {}), unzstd).files.keys() == {
        "/etc/initrd-release", "/usr/bin/large", "/etc/late",
    }  # fmt: skip


def test_a_block_that_repeats_one_byte_has_one_byte() -> None:
    frame = packed(bytes(10_000_000))
    assert frame_length(frame + bytes(9)) == len(frame)


def test_no_more_is_unpacked_than_is_wanted() -> None:
    assert len(unzstd(packed(bytes(50_000_000)), 1000)) == 1001


def test_a_damaged_frame_is_refused_with_what_the_program_says() -> None:
    frame = bytearray(packed(ARCHIVE))
    frame[-1] ^= 1
    with pytest.raises(CpioError, match=r"cannot be unpacked: .*[Cc]hecksum") as refused:
        unzstd(bytes(frame), 10_000_000)
    assert refused.value.code == "damaged"


def test_where_the_program_is_missing_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", "zstd-that-nobody-has")
    with pytest.raises(CpioError, match="packed with zstd, and the program zstd cannot be run") as refused:
        unzstd(b"", 10)
    assert "Install zstd" in refused.value.hint
