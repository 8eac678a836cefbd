"""The certificates that a hypervisor hands to an SNP guest beside its report: a table of GUIDs, offsets and lengths.

    entry = GUID (16 bytes, mixed-endian), offset u32, length u32; an entry of zeros ends the table; the data follows

The table comes from the host, which nobody trusts: it is read within bounds, entries of unknown kinds are left out, and what it
holds counts only as far as a chain of signatures leads to AMD's root.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from fastness.formats.cursor import EvidenceError

# Four certificates have some ten kilobytes; the host chooses the rest.
MAX_TABLE: Final = 256 * 1024
MAX_ENTRIES: Final = 16
KINDS: Final = {
    UUID("63da758d-e664-4564-adc5-f4b93be8accd"): "VCEK",
    UUID("a8074bc2-a25a-483e-aae6-39c045a0b8a1"): "VLEK",
    UUID("4ab7b379-bbac-4fe4-a02f-05aef327c782"): "ASK",
    UUID("c0b406a4-a803-4952-9743-3fb6014cd0ae"): "ARK",
}
_ENTRY: Final = struct.Struct("<16sII")
_END: Final = bytes(16)


class TableEntry(NamedTuple):
    """A certificate (DER) and what it is."""

    kind: str
    data: bytes


def parse_table(data: bytes) -> tuple[TableEntry, ...]:
    """The certificates of a table, in its order; raises EvidenceError."""
    if len(data) > MAX_TABLE:
        raise EvidenceError("too-long", f"a table of certificates has at most {MAX_TABLE} bytes, not {len(data)}")
    entries: list[TableEntry] = []
    for place in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
        guid, offset, length = _ENTRY.unpack_from(data, place)
        if guid == _END:
            return tuple(entries)
        # An offset into the entries before it would have the table read as a certificate.
        if place >= MAX_ENTRIES * _ENTRY.size or offset + length > len(data) or offset < place + _ENTRY.size:
            break
        kind = KINDS.get(UUID(bytes_le=guid))
        if kind is not None and length:
            entries.append(TableEntry(kind, data[offset : offset + length]))
    if not data:
        return ()
    raise EvidenceError("bad-table", "the table of certificates leads outside of itself or does not end")


def table(entries: tuple[TableEntry, ...]) -> bytes:
    """A table of certificates, as hosts write it."""
    guids = {kind: guid for guid, kind in KINDS.items()}
    offset, heads, bodies = _ENTRY.size * (len(entries) + 1), b"", b""
    for entry in entries:
        heads += _ENTRY.pack(guids[entry.kind].bytes_le, offset + len(bodies), len(entry.data))
        bodies += entry.data
    return heads + bytes(_ENTRY.size) + bodies
