"""What a program of Linux says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.formats.elf import Elf, ElfError, parse_elf
from tests.elves import AARCH64, elf

LOADER = "/lib64/ld-linux-x86-64.so.2"


def test_a_static_program_needs_nothing() -> None:
    assert parse_elf(elf()) == Elf("x86-64")


def test_libraries_are_named_in_the_order_of_the_loader() -> None:
    assert parse_elf(elf(["libseccomp.so.2", "libc.so.6"], LOADER)) == Elf(
        "x86-64", LOADER, ("libseccomp.so.2", "libc.so.6")
    )


def test_another_processor_is_named() -> None:
    assert parse_elf(elf(machine=AARCH64)).machine == "aarch64"
    assert parse_elf(elf(machine=0x1234)).machine == "processor 4660"


def test_one_of_32_bits_or_of_the_other_order_is_no_program_for_us_and_has_a_name() -> None:
    narrow = bytearray(elf(machine=0x03))
    narrow[4] = 1
    assert parse_elf(bytes(narrow)).machine == "i386"
    wide = bytearray(elf())
    wide[4] = 1
    assert parse_elf(bytes(wide)).machine == "x86-64 with 32 bits"
    other = bytearray(elf())
    other[5:6], other[18:20] = b"\x02", b"\x00\x16"
    assert parse_elf(bytes(other)).machine == "s390x"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not-elf"),
        (b"#!/bin/sh\n", "not-elf"),
        (elf()[:40], "cut-off"),
        (elf()[:100], "cut-off"),
        (elf(["libc.so.6"], LOADER)[:-8], "cut-off"),
        (elf(kind=1), "not-linked"),
        (elf()[:56] + b"\xff\xff" + elf()[58:], "segments"),
    ],
    ids=["empty", "a script", "half a head", "half a table", "half a segment", "an object", "segments without number"],
)
def test_what_is_no_program_is_refused_by_its_kind(data: bytes, code: str) -> None:
    with pytest.raises(ElfError) as raised:
        parse_elf(data)
    assert raised.value.code == code
    assert raised.value.hint


def test_a_name_outside_of_the_strings_is_refused() -> None:
    whole = elf(["libc.so.6"])
    strings = whole.index(b"libc.so.6") - 1
    with pytest.raises(ElfError):
        parse_elf(whole.replace((b"\1" + bytes(7)) * 2, b"\1" + bytes(7) + b"\xff" * 8))
    with pytest.raises(ElfError):
        parse_elf(whole.replace((0x400000 + strings).to_bytes(8, "little"), bytes(8)))


def test_it_agrees_with_a_program_of_this_host() -> None:
    shell = parse_elf(Path("/bin/sh").resolve().read_bytes())
    assert "libc.so.6" in shell.needed
    assert shell.loader.startswith("/lib")
