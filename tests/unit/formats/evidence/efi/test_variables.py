"""Stores of firmware variables, and lists of signatures."""

from __future__ import annotations

import hashlib
import struct

import pytest

from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.signature_lists import (
    GLOBAL,
    IMAGE_SECURITY,
    SIG_SHA256,
    SIG_X509,
    guid,
    guid_text,
    parse_siglists,
)
from fastness.formats.evidence.efi.variables import parse_store, variable_data
from tests.measuredboot import minted

VARIABLES = {(GLOBAL, "PK"): b"key", (IMAGE_SECURITY, "db"): b"list" * 9, (GLOBAL, "Empty"): b""}


def refused(data: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        parse_store(data)
    assert caught.value.hint
    return caught.value.code


def patched(offset: int, layout: str, value: int) -> bytes:
    data = bytearray(minted.store(VARIABLES))
    struct.pack_into(layout, data, offset, value)
    return bytes(data)


def test_guids_have_efis_byte_order() -> None:
    text = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert guid(text).hex() == "61dfe48bca93d211aa0d00e098032b8c"
    assert guid_text(guid(text)) == text


@pytest.mark.parametrize(
    ("name", "data", "digest"),
    [
        ("SecureBoot", b"\1", "ccfc4bb32888a345bc8aeadaba552b627d99348c767681ab3141f5b01e40a40e"),
        ("SecureBoot", b"\0", "115aa827dbccfb44d216ad9ecfda56bdea620b860a94bed5b7a27bba1c4d02d8"),
        ("PK", b"", "dea7b80ab53a3daaa24d5cc46c64e1fa9ffd03739f90aadbd8c0867c4a5b4890"),
    ],
)
def test_variables_are_measured_as_every_firmware_does(name: str, data: bytes, digest: str) -> None:
    """These digests are in the event log of any machine that has Secure Boot off, on, or no platform key."""
    assert hashlib.sha256(variable_data(GLOBAL, name, data)).hexdigest() == digest


def test_a_store_gives_its_variables() -> None:
    assert parse_store(minted.store(VARIABLES)) == VARIABLES
    assert parse_store(minted.store({})) == {}


def test_deleted_variables_are_gone_and_half_replaced_ones_are_kept() -> None:
    states = {"PK": 0x3D, "db": 0x3E, "Empty": 0x7F}
    assert parse_store(minted.store(VARIABLES, states=states)) == {(IMAGE_SECURITY, "db"): b"list" * 9}


def test_a_replaced_variable_has_its_new_value() -> None:
    whole = {(GLOBAL, "PK"): b"new", (IMAGE_SECURITY, "PK"): b"old"}
    data = minted.store(whole).replace(IMAGE_SECURITY, GLOBAL)
    assert parse_store(data) == {(GLOBAL, "PK"): b"old"}, "both added: the later one counts"
    first_half = bytearray(data)
    at = first_half.index(struct.pack("<H", 0x55AA), first_half.index(struct.pack("<H", 0x55AA)) + 2)
    first_half[at + 2] = 0x3E
    assert parse_store(bytes(first_half)) == {(GLOBAL, "PK"): b"new"}


@pytest.mark.parametrize(
    ("what", "data", "code"),
    [
        ("empty", b"", "not-a-variable-store"),
        ("no volume", patched(0x28, "<I", 0), "not-a-variable-store"),
        ("another volume", patched(16, "<Q", 0), "not-a-variable-store"),
        ("volume longer than the file", patched(0x20, "<Q", 1 << 40), "cut-off"),
        ("store behind the end", patched(0x30, "<H", 0xFFFF), "cut-off"),
        ("another kind of store", patched(0x48, "<Q", 0), "not-a-variable-store"),
        ("not formatted", patched(0x48 + 20, "<B", 0xFF), "bad-store"),
        ("store longer than the volume", patched(0x48 + 16, "<I", 0x9000), "bad-store"),
        ("name without end", patched(0x48 + 28 + 36, "<I", 0xFFFFFFF0), "bad-variable"),
        ("name of odd length", patched(0x48 + 28 + 36, "<I", 5), "bad-variable"),
        ("data without end", patched(0x48 + 28 + 40, "<I", 0xFFFFFFF0), "bad-variable"),
        ("name that is no text", patched(0x48 + 28 + 60, "<H", 0xD800), "bad-variable"),
    ],
)  # fmt: skip
def test_damaged_stores_are_refused(what: str, data: bytes, code: str) -> None:
    assert refused(data) == code, what


def test_a_store_has_limits() -> None:
    assert refused(bytes(16 * 1024 * 1024 + 1)) == "too-large"
    many = {(GLOBAL, f"v{number}"): b"" for number in range(4097)}
    assert refused(minted.store(many, size=0x100000)) == "too-many-variables"


def test_signature_lists_give_their_entries_in_order() -> None:
    entries = parse_siglists(minted.siglist(SIG_X509, b"certificate", b"c2") + minted.siglist(SIG_SHA256, bytes(32)))
    assert [(entry.kind, entry.data) for entry in entries] == [
        (SIG_X509, b"certificate"),
        (SIG_X509, b"c2"),
        (SIG_SHA256, bytes(32)),
    ]
    assert entries[0].raw == minted.OWNER + b"certificate"
    assert parse_siglists(b"") == ()


def test_entries_of_one_list_have_one_size() -> None:
    body = minted.OWNER + bytes(32) + minted.OWNER + b"\1" * 32
    entries = parse_siglists(SIG_SHA256 + struct.pack("<III", 28 + 4 + len(body), 4, 48) + b"head" + body)
    assert [entry.data for entry in entries] == [bytes(32), b"\1" * 32]


@pytest.mark.parametrize(
    "header",
    [
        (28 + 48, 0, 0),
        (28 + 48, 0, 16),
        (28 + 48, 0, 47),
        (28 + 49, 0, 48),
        (27, 0, 48),
        (28 + 48, 60, 48),
        (1 << 31, 0, 48),
    ],
)
def test_damaged_lists_are_refused(header: tuple[int, int, int]) -> None:
    with pytest.raises(ImageError) as caught:
        parse_siglists(SIG_SHA256 + struct.pack("<III", *header) + bytes(48))
    assert caught.value.code == "bad-signature-list"


def test_databases_have_limits() -> None:
    with pytest.raises(ImageError) as caught:
        parse_siglists(bytes(1024 * 1024 + 1))
    assert caught.value.code == "too-large"
    body = bytes(17 * 16_385)
    with pytest.raises(ImageError) as caught:
        parse_siglists(SIG_SHA256 + struct.pack("<III", 28 + len(body), 0, 17) + body)
    assert caught.value.code == "too-many-signatures"
