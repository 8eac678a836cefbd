"""GUIDs in EFI's mixed byte order, and those that measured boot needs."""

from __future__ import annotations

from typing import Final
from uuid import UUID


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
