"""The table of certificates that a host hands to an SNP guest, which nobody trusts."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.certificate_table import MAX_TABLE, TableEntry, parse_table, table

ENTRIES = st.lists(
    st.builds(TableEntry, st.sampled_from(["VCEK", "VLEK", "ASK", "ARK"]), st.binary(min_size=1, max_size=50)),
    max_size=8,
)


@given(ENTRIES)
def test_what_is_written_is_read(entries: list[TableEntry]) -> None:
    assert parse_table(table(tuple(entries))) == tuple(entries)


def test_a_guid_is_read_in_its_mixed_order() -> None:
    raw = bytes.fromhex("8d75da6364e66445adc5f4b93be8accd") + struct.pack("<II", 48, 3) + bytes(24) + b"der"
    assert parse_table(raw) == (TableEntry("VCEK", b"der"),)


def test_entries_of_unknown_kinds_are_left_out_and_no_table_is_an_empty_one() -> None:
    raw = b"\x01" * 16 + struct.pack("<II", 48, 3) + bytes(24) + b"der"
    assert parse_table(raw) == ()
    assert parse_table(b"") == ()
    assert parse_table(bytes(24)) == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"\x01" * 16 + struct.pack("<II", 48, 4) + bytes(24) + b"der",
        b"\x01" * 16 + struct.pack("<II", 0, 3) + bytes(24) + b"der",
        b"\x01" * 16 + struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF) + bytes(24),
        b"\x01" * 16 + struct.pack("<II", 24, 0),
        b"short",
        (b"\x01" * 16 + struct.pack("<II", 2000, 1)) * 20 + bytes(3000),
        bytes(MAX_TABLE + 1),
    ],
)
def test_a_table_that_leads_outside_of_itself_is_refused(raw: bytes) -> None:
    with pytest.raises(EvidenceError):
        parse_table(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_an_error(raw: bytes) -> None:
    with suppress(EvidenceError):
        parse_table(raw)
