"""EFI_SIGNATURE_LIST: what PK, KEK, db and dbx hold (UEFI 2.10 §32.4.1), and the GUIDs that measured boot needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from fastness.formats.errors import ImageError


def guid(text: str) -> bytes:
    """The sixteen bytes of a GUID as firmware stores it."""
    return UUID(text).bytes_le


def guid_text(value: bytes) -> str:
    """A GUID in the usual notation."""
    return str(UUID(bytes_le=value))


GLOBAL: Final = guid("8be4df61-93ca-11d2-aa0d-00e098032b8c")
IMAGE_SECURITY: Final = guid("d719b2cb-3d3a-4596-a3bc-dad00e67656f")
SIG_X509: Final = guid("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
SIG_SHA256: Final = guid("c1c41626-504c-4092-aca9-41f936934328")
SIG_X509_SHA256: Final = guid("3bd2a492-96c0-4079-b420-fcf98ef103ed")
STORE_VOLUME: Final = guid("fff12b8d-7696-4c8b-a985-2747075b4f50")
STORE_AUTHENTICATED: Final = guid("aaf32c78-947b-439a-a180-2e144ec37792")


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
