"""The initial file system of a boot image, as the kernel reads it."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from fastness.formats import cpio
from fastness.formats.cpio import HELD, CpioError, unpack_initrd
from fastness.sim.vms.initrd import archive

FIRST = archive({"etc/os-release": b"ID=one\n", "usr/bin/large": b"x" * (HELD + 9)}, {"init": "usr/bin/large"})
SECOND = archive({"etc/os-release": b"ID=two\n"}, {"usr/bin/large": "/dev/null"})

SIZED = archive({"a": bytes(0x777)}, {})


@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, mtime=0), lzma.compress, bz2.compress])
def test_files_and_links_are_found_however_they_are_packed(pack: type[bytes]) -> None:
    initrd = unpack_initrd(pack(FIRST))
    assert initrd.files["/etc/os-release"] == b"ID=one\n"
    assert len(initrd.files["/usr/bin/large"]) == HELD
    assert initrd.links == {"/init": "usr/bin/large"}


@pytest.mark.parametrize("gap", [0, 4, 512])
def test_a_later_archive_replaces_what_an_earlier_one_has(gap: int) -> None:
    initrd = unpack_initrd(FIRST + bytes(gap) + gzip.compress(SECOND, mtime=0))
    assert initrd.files == {"/etc/os-release": b"ID=two\n"}
    assert initrd.links == {"/init": "usr/bin/large", "/usr/bin/large": "/dev/null"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x28\xb5\x2f\xfd rest", "other-packing"),
        (b"something else", "not-cpio"),
        (FIRST[:200], "damaged"),
        (gzip.compress(FIRST)[:-20], "damaged"),
        (SIZED.replace(b"00000777", b"-0000777", 1), "damaged"),
        (SIZED.replace(b"00000777", b"7fffffff", 1), "damaged"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(data: bytes, code: str) -> None:
    with pytest.raises(CpioError) as refused:
        unpack_initrd(data)
    assert refused.value.code == code
    assert refused.value.hint


def raw_frame(content: bytes, *, checksum: bool = False) -> bytes:
    """A zstd frame with two blocks that hold their content as it is."""
    half = len(content) // 2
    head = b"\x28\xb5\x2f\xfd" + (b"\x04" if checksum else b"\x00") + b"\x58"
    first = (half << 3).to_bytes(3, "little") + content[:half]
    last = ((len(content) - half) << 3 | 1).to_bytes(3, "little") + content[half:]
    return head + first + last + (b"cksm" if checksum else b"")


@pytest.mark.parametrize("checksum", [False, True])
def test_a_frame_of_zstd_is_cut_out_before_it_is_unpacked(checksum: bool) -> None:
    frames = []

    def unzstd(frame: bytes, most: int) -> bytes:
        frames.append(frame)
        return FIRST

    packed = raw_frame(FIRST, checksum=checksum)
    initrd = unpack_initrd(packed + bytes(8) + gzip.compress(SECOND, mtime=0), unzstd)
    assert frames == [packed]
    assert initrd.files == {"/etc/os-release": b"ID=two\n"}


def test_a_frame_that_holds_more_than_may_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpio, "MAX_UNPACKED", 64)
    with pytest.raises(CpioError) as refused:
        unpack_initrd(raw_frame(FIRST), lambda _, most: FIRST[: most + 1])
    assert refused.value.code == "too-large"


@pytest.mark.parametrize(
    "data", [raw_frame(FIRST)[:-1], raw_frame(FIRST)[:4], raw_frame(FIRST)[:7], b"\x28\xb5\x2f\xfd\x00\x58\x07\x00\x00"]
)
def test_half_a_frame_is_never_handed_on(data: bytes) -> None:
    def unzstd(frame: bytes, most: int) -> bytes:
        raise AssertionError("a frame that is not whole")

    with pytest.raises(CpioError) as refused:
        unpack_initrd(data, unzstd)
    assert refused.value.code == "damaged"
