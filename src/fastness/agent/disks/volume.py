"""What callers pass and get: keys, settings, facts about a header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from fastness.agent.disks.errors import DiskError
from fastness.crypto.secret import SecretBytes

NO_INTEGRITY: Final = "none"
HMAC_SHA256: Final = "hmac-sha256"
IntegrityMode = Literal["none", "hmac-sha256"]
DISK_KEY_BYTES: Final = 32
_NAMES: Final = {"sector_size": "sectorSize", "segments_digest": "segmentsDigest"}


@dataclass(frozen=True, slots=True)
class DiskKey:
    """A disk key with its id (`k1`, `k2`, …)."""

    id: str
    key: SecretBytes

    def __post_init__(self) -> None:
        if len(self.key.reveal()) != DISK_KEY_BYTES or not 0 < len(self.id) <= 64 or not self.id.isascii():
            raise DiskError("bad-request", f"a disk key has {DISK_KEY_BYTES} bytes and an id of at most 64 characters")


@dataclass(frozen=True, slots=True)
class VolumeSettings:
    """What the pool chose for the volume."""

    integrity: IntegrityMode = NO_INTEGRITY

    def __post_init__(self) -> None:
        if self.integrity not in (NO_INTEGRITY, HMAC_SHA256):
            raise DiskError("bad-request", f"integrity is {self.integrity!r}; it can be none or hmac-sha256")


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """By what a volume is recognised later: recorded when it was made, compared whenever it is opened.

    `segments_digest` covers where the data lies, how it is encrypted and the digest of the volume key; slots are left out,
    because they change with every new disk key.
    """

    uuid: str
    cipher: str
    integrity: str
    sector_size: int
    segments_digest: str

    def to_json(self) -> dict[str, Any]:
        """As broker and agent write it."""
        return {_NAMES.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> HeaderFacts:
        """As `to_json` writes it; raises DiskError."""
        values = {field.name: document.get(_NAMES.get(field.name, field.name)) for field in fields(cls)}
        kinds = {name: int if name == "sector_size" else str for name in values}
        if len(document) != len(values) or any(type(values[name]) is not kind for name, kind in kinds.items()):
            raise DiskError("bad-request", f"what was recorded of a volume has exactly {', '.join(values)}")
        return cls(**values)  # type: ignore[arg-type]

    def differences(self, other: HeaderFacts) -> list[str]:
        """The names of the facts that differ."""
        return [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]


@dataclass(frozen=True, slots=True)
class OpenedVolume:
    """A volume that can be used: its device, the id of the key that opened it, and what its header is."""

    path: str
    key_id: str
    facts: HeaderFacts
