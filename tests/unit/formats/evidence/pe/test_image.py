"""PE images: what is read, what is hashed, and what two readers could understand in two ways."""

from __future__ import annotations

import struct

import pytest

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.authenticode import certificates, covered
from fastness.formats.evidence.pe.image import MAX_FILLING, parse_pe
from fastness.formats.evidence.pe.uki import kernel_release
from tests.measuredboot import minted

PARTS = {".a": b"first" * 150, ".b": b"second"}


def patched(offset: int, layout: str, *values: int, of: bytes | None = None) -> bytes:
    data = bytearray(minted.pe(PARTS) if of is None else of)
    struct.pack_into(layout, data, offset, *values)
    return bytes(data)


def row(number: int) -> int:
    return parse_pe(minted.pe(PARTS)).table_offset + 40 * number


@pytest.mark.parametrize("wide", [True, False])
def test_sections_are_read_in_both_layouts(wide: bool) -> None:
    image = parse_pe(minted.pe(PARTS, wide=wide))
    assert [entry.name for entry in image.sections] == [".a", ".b"]
    assert image.section(".a") == PARTS[".a"]
    assert image.section(".b") == b"second"
    assert image.section(".c") is None


def test_content_ends_at_the_virtual_size_and_goes_on_with_zeros() -> None:
    shorter = parse_pe(patched(row(1) + 8, "<I", 3))
    longer = parse_pe(patched(row(1) + 8, "<I", 600))
    assert shorter.section(".b") == b"sec"
    assert longer.section(".b") == b"second".ljust(600, b"\0")


def test_a_section_cannot_claim_memory_without_end() -> None:
    image = parse_pe(patched(row(1) + 8, "<I", 512 + MAX_FILLING + 1))
    with pytest.raises(ImageError, match="claims") as caught:
        image.section(".b")
    assert caught.value.code == "too-large"


def test_a_section_that_is_there_twice_is_refused_when_it_is_asked_for() -> None:
    data = bytearray(minted.pe(PARTS))
    data[row(1) : row(1) + 8] = b".a".ljust(8, b"\0")
    with pytest.raises(ImageError) as caught:
        parse_pe(bytes(data)).section(".a")
    assert caught.value.code == "repeated-section"


def test_the_hash_leaves_out_checksum_directory_entry_and_certificates_and_nothing_else() -> None:
    plain = minted.pe(PARTS, tail=b"behind!!")
    image = parse_pe(plain)
    left_out = {*range(image.checksum_offset, image.checksum_offset + 4)}
    left_out |= {*range(image.security_offset, image.security_offset + 8)}
    pieces = b"".join(covered(image))
    assert pieces == bytes(byte for at, byte in enumerate(plain) if at not in left_out)
    signed = parse_pe(minted.with_certificates(plain, [b"signature"]))
    assert b"".join(covered(signed)) == pieces


def test_sections_are_hashed_by_their_place_in_the_file() -> None:
    data = bytearray(minted.pe(PARTS))
    first, second = (data[row(number) : row(number) + 40] for number in (0, 1))
    data[row(0) : row(0) + 80] = second + first
    image = parse_pe(bytes(data))
    assert b"".join(covered(image)).endswith(PARTS[".a"].ljust(1024, b"\0") + b"second".ljust(512, b"\0"))


def test_certificates_are_given_in_their_order() -> None:
    image = parse_pe(minted.with_certificates(minted.pe(PARTS), [b"one", b"another"]))
    assert [entry.pkcs7 for entry in certificates(image)] == [b"one", b"another"]
    assert certificates(parse_pe(minted.pe(PARTS))) == ()


@pytest.mark.parametrize(
    ("offset", "value", "code"),
    [
        (0, 0, "bad-certificates"),
        (0, 8, "bad-certificates"),
        (0, 1 << 31, "bad-certificates"),
        (4, 0x00020100, "unknown-signature"),
        (4, 0x0EF10200, "unknown-signature"),
    ],
)
def test_damaged_certificate_tables_are_refused(offset: int, value: int, code: str) -> None:
    plain = minted.pe(PARTS)
    data = patched(len(plain) + offset, "<I", value, of=minted.with_certificates(plain, [b"signature"]))
    with pytest.raises(ImageError) as caught:
        certificates(parse_pe(data))
    assert caught.value.code == code


def test_bytes_between_certificates_and_the_end_are_refused() -> None:
    plain = minted.pe(PARTS)
    data = bytearray(minted.with_certificates(plain, [b"signature"]))
    data[-1] = 1
    assert certificates(parse_pe(bytes(data))), "filling inside the last entry is not looked at"
    signed = minted.with_certificates(plain, [b"signature"]) + b"\0\0\0\1" + bytes(4)
    longer = patched(parse_pe(plain).security_offset + 4, "<I", len(signed) - len(plain), of=signed)
    with pytest.raises(ImageError) as caught:
        certificates(parse_pe(longer))
    assert caught.value.code == "bad-certificates"


@pytest.mark.parametrize(
    ("what", "data", "code"),
    [
        ("empty", b"", "not-pe"),
        ("an ELF file", b"\x7fELF" + bytes(100), "not-pe"),
        ("only MZ", b"MZ", "cut-off"),
        ("header far away", patched(0x3C, "<I", 0xFFFFFFF0), "not-pe"),
        ("too many sections", patched(0x80 + 6, "<H", 97), "too-many-sections"),
        ("sections beyond the headers", patched(0x80 + 6, "<H", 20), "bad-layout"),
        ("unknown magic", patched(0x98, "<H", 0x30B), "not-pe"),
        ("no directories", patched(0x98 + 108, "<I", 4), "no-security-directory"),
        ("too many directories", patched(0x98 + 108, "<I", 17), "no-security-directory"),
        ("short optional header", patched(0x80 + 20, "<H", 100), "no-security-directory"),
        ("headers beyond the file", patched(0x98 + 60, "<I", 1 << 30), "bad-layout"),
        ("section in the headers", patched(row(0) + 20, "<I", 0x200), "bad-layout"),
        ("sections that overlap", patched(row(1) + 20, "<I", 0x600), "bad-layout"),
        ("section beyond the file", patched(row(1) + 16, "<I", 1 << 20), "cut-off"),
        ("certificates in the middle", patched(0x98 + 112 + 32, "<II", 0x400, 8), "bad-certificates"),
        ("certificates beyond the file", patched(0x98 + 112 + 32, "<II", 1 << 30, 8), "bad-certificates"),
    ],
)  # fmt: skip
def test_images_that_cannot_be_understood_in_one_way_are_refused(what: str, data: bytes, code: str) -> None:
    with pytest.raises(ImageError) as caught:
        parse_pe(data)
    assert caught.value.code == code, what
    assert caught.value.hint


def test_sections_without_bytes_may_point_anywhere() -> None:
    image = parse_pe(patched(row(1) + 16, "<II", 0, 0xFFFFFFFF))
    assert image.section(".b") == bytes(6)


def test_a_kernel_tells_its_release() -> None:
    assert kernel_release(minted.kernel("6.12.3-cloud")) == ("6.12.3-cloud", (6, 12))
    assert kernel_release(minted.kernel("6.1.0-\xff\x1b[2J")) == ("6.1.0-", (6, 1)), "nothing for terminals to obey"
    for data in (minted.pe(PARTS), minted.kernel("unknown"), b""):
        with pytest.raises(ImageError) as caught:
            kernel_release(data)
        assert caught.value.code == "not-linux"
