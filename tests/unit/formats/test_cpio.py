"""The initial file system of a boot image, as the kernel reads it."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from fastness.formats.cpio import HELD, CpioError, unpack_initrd
from fastness.sim.vms.initrd import archive

FIRST = archive({"etc/os-release": b"ID=one\n", "usr/bin/large": b"x" * (HELD + 9)}, {"init": "usr/bin/large"})
SECOND = archive({"etc/os-release": b"ID=two\n"}, {"usr/bin/large": "/dev/null"})

SIZED = archive({"a": bytes(0x777)}, {})


@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, mtime=0), lzma.compress, bz2.compress])
def test_files_and_links_are_found_however_they_are_packed(pack: type[bytes]) -> None:
    found = unpack_initrd(pack(FIRST))
    assert found.files["/etc/os-release"] == b"ID=one\n"
    assert len(found.files["/usr/bin/large"]) == HELD
    assert found.links == {"/init": "usr/bin/large"}


@pytest.mark.parametrize("gap", [0, 4, 512])
def test_a_later_archive_replaces_what_an_earlier_one_has(gap: int) -> None:
    found = unpack_initrd(FIRST + bytes(gap) + gzip.compress(SECOND, mtime=0))
    assert found.files == {"/etc/os-release": b"ID=two\n"}
    assert found.links == {"/init": "usr/bin/large", "/usr/bin/large": "/dev/null"}


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
