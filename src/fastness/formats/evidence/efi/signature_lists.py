"""EFI_SIGNATURE_LIST: what PK, KEK, db and dbx hold (UEFI 2.10 §32.4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats.evidence.efi.guid import guid_text
from fastness.formats.evidence.pe.errors import ImageError

MAX_DATABASE: Final = 1024 * 1024
MAX_ENTRIES: Final = 16_384
_HEADER: Final = 28
_OWNER: Final = 16


@dataclass(frozen=True, slots=True)
class Signature:
    """EFI_SIGNATURE_DATA and the kind of list that it is in."""

    kind: bytes
    owner: bytes
    data: bytes

    @property
    def raw(self) -> bytes:
        """The bytes that firmware measures when this entry let an image start."""
        return self.owner + self.data


def parse_siglists(database: bytes) -> tuple[Signature, ...]:
    """All entries of all lists in order; raises ImageError."""
    if len(database) > MAX_DATABASE:
        raise ImageError("too-large", f"a signature database has at most {MAX_DATABASE} bytes")
    signatures: list[Signature] = []
    at = 0
    while at < len(database):
        head = database[at : at + _HEADER]
        kind, size, extra, each = head[:16], _u32(head, 16), _u32(head, 20), _u32(head, 24)
        if len(head) < _HEADER or size < _HEADER + extra or at + size > len(database):
            raise ImageError("bad-signature-list", f"a signature list at {at} does not fit into its database")
        body = database[at + _HEADER + extra : at + size]
        # Entries of no size would never end, and a rest that is no entry would be read by some firmware and not by other.
        if each <= _OWNER or len(body) % each:
            raise ImageError(
                "bad-signature-list", f"a list of {guid_text(kind)} has {len(body)} bytes in entries of {each} bytes"
            )
        if len(signatures) + len(body) // each > MAX_ENTRIES:
            raise ImageError("too-many-signatures", f"a signature database has at most {MAX_ENTRIES} entries")
        signatures += [
            Signature(kind, body[start : start + _OWNER], body[start + _OWNER : start + each])
            for start in range(0, len(body), each)
        ]
        at += size
    return tuple(signatures)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")
