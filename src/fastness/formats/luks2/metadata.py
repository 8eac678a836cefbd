"""What the JSON of a copy says: keyslots, segments, digests, tokens, settings.

Both directions: `parse_metadata` from the bytes behind the binary header, `encode_metadata` to as many. Keys that stand twice in
an object are refused, because readers differ on which of them counts (CVE-2025-59054 was opened that way as well as by its plain
form); so is anything behind the JSON but zero bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, Luks2Error
from fastness.formats.luks2.fields import Fields, decimal

JSON_BYTES: Final = 12288
DYNAMIC: Final = "dynamic"
_LIMITS: Final = json.JsonLimits(max_bytes=JSON_BYTES, max_depth=8, max_reported_duplicates=1)


@dataclass(frozen=True, slots=True)
class Kdf:
    """How a key of a person becomes the key of a slot; `iterations` is the time of argon2, `memory` its KiB."""

    type: str
    salt: bytes
    iterations: int
    hash: str = ""
    memory: int = 0
    cpus: int = 0


@dataclass(frozen=True, slots=True)
class AntiForensic:
    """How a volume key is spread over a slot's area."""

    type: str
    stripes: int
    hash: str


@dataclass(frozen=True, slots=True)
class Area:
    """Where a slot's bytes lie, and how they are encrypted."""

    type: str
    offset: int
    size: int
    encryption: str
    key_size: int

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Keyslot:
    """A copy of the volume key that one key opens."""

    type: str
    key_size: int
    area: Area
    kdf: Kdf
    af: AntiForensic
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Integrity:
    """How sectors are authenticated."""

    type: str
    journal_encryption: str
    journal_integrity: str
    key_size: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the disk with data; `size` is None where it reaches to the end of the disk."""

    type: str
    offset: int
    size: int | None
    iv_tweak: int = 0
    encryption: str = ""
    sector_size: int = 0
    integrity: Integrity | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyDigest:
    """By what a volume key is recognised, for which slots and segments."""

    type: str
    keyslots: tuple[int, ...]
    segments: tuple[int, ...]
    hash: str
    iterations: int
    salt: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Token:
    """A note about slots; what else it has depends on its type."""

    type: str
    keyslots: tuple[int, ...]
    members: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the space before the data is divided, and what a reader must know to go on."""

    json_size: int
    keyslots_size: int
    flags: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metadata:
    """Everything that the JSON of a header says."""

    keyslots: Mapping[int, Keyslot]
    segments: Mapping[int, Segment]
    digests: Mapping[int, KeyDigest]
    tokens: Mapping[int, Token]
    config: Settings


def parse_metadata(data: bytes) -> Metadata:
    """The JSON of a copy, with the zero bytes behind it; raises Luks2Error."""
    text, _, padding = data.partition(b"\0")
    if padding.strip(b"\0"):
        raise Luks2Error("trailing-bytes", "something stands behind the JSON of the header")
    try:
        value, repeated = json.decode_reporting_duplicates(text, _LIMITS)
    except JsonError as error:
        raise Luks2Error("bad-json", f"the JSON of the header: {error}", hint=error.hint) from error
    if repeated:
        raise Luks2Error("repeated-key", "stands twice; readers differ on which of them counts", repeated[0])
    fields = Fields(value, "")
    metadata = Metadata(
        keyslots=fields.entries("keyslots", _keyslot),
        segments=fields.entries("segments", _segment),
        digests=fields.entries("digests", _digest),
        tokens=fields.entries("tokens", _token),
        config=_settings(fields.inner("config")),
    )
    fields.finish()
    return metadata


def _keyslot(fields: Fields) -> Keyslot:
    _is(fields, "type", "luks2")
    slot = Keyslot(
        type="luks2",
        key_size=fields.u32("key_size"),
        area=_area(fields.inner("area")),
        kdf=_kdf(fields.inner("kdf")),
        af=_anti_forensic(fields.inner("af")),
        priority=fields.u32("priority") if fields.has("priority") else None,
    )
    fields.finish()
    return slot


def _area(fields: Fields) -> Area:
    _is(fields, "type", "raw")
    area = Area(
        type="raw",
        offset=fields.u64("offset"),
        size=fields.u64("size"),
        encryption=fields.text("encryption"),
        key_size=fields.u32("key_size"),
    )
    fields.finish()
    return area


def _kdf(fields: Fields) -> Kdf:
    kind, salt = fields.text("type"), fields.octets("salt")
    if kind == "pbkdf2":
        kdf = Kdf(kind, salt, fields.u32("iterations"), hash=fields.text("hash"))
    elif kind in ("argon2i", "argon2id"):
        kdf = Kdf(kind, salt, fields.u32("time"), memory=fields.u32("memory"), cpus=fields.u32("cpus"))
    else:
        raise _unknown(fields.at("type"), kind)
    fields.finish()
    return kdf


def _anti_forensic(fields: Fields) -> AntiForensic:
    _is(fields, "type", "luks1")
    af = AntiForensic("luks1", fields.u32("stripes"), fields.text("hash"))
    fields.finish()
    return af


def _segment(fields: Fields) -> Segment:
    kind, offset = fields.text("type"), fields.u64("offset")
    size = _size(fields.take("size"), fields.at("size"))
    flags = fields.names("flags") if fields.has("flags") else ()
    if kind == "linear":
        segment = Segment(kind, offset, size, flags=flags)
    elif kind == "crypt":
        segment = Segment(
            kind,
            offset,
            size,
            iv_tweak=fields.u64("iv_tweak"),
            encryption=fields.text("encryption"),
            sector_size=fields.u32("sector_size"),
            integrity=_integrity(fields.inner("integrity")) if fields.has("integrity") else None,
            flags=flags,
        )
    else:
        raise _unknown(fields.at("type"), kind)
    fields.finish()
    return segment


def _size(value: Any, path: str) -> int | None:
    return None if value == DYNAMIC else decimal(value, path)


def _integrity(fields: Fields) -> Integrity:
    integrity = Integrity(
        type=fields.text("type"),
        journal_encryption=fields.text("journal_encryption"),
        journal_integrity=fields.text("journal_integrity"),
        key_size=fields.u32("key_size") if fields.has("key_size") else None,
    )
    fields.finish()
    return integrity


def _digest(fields: Fields) -> KeyDigest:
    _is(fields, "type", "pbkdf2")
    digest = KeyDigest(
        type="pbkdf2",
        keyslots=fields.ids("keyslots"),
        segments=fields.ids("segments"),
        hash=fields.text("hash"),
        iterations=fields.u32("iterations"),
        salt=fields.octets("salt"),
        digest=fields.octets("digest"),
    )
    fields.finish()
    return digest


def _token(fields: Fields) -> Token:
    return Token(fields.text("type"), fields.ids("keyslots"), fields.rest())


def _settings(fields: Fields) -> Settings:
    settings = Settings(
        json_size=fields.u64("json_size"),
        keyslots_size=fields.u64("keyslots_size"),
        flags=fields.names("flags") if fields.has("flags") else (),
        requirements=_requirements(fields.inner("requirements")) if fields.has("requirements") else (),
    )
    fields.finish()
    return settings


def _requirements(fields: Fields) -> tuple[str, ...]:
    names = fields.names("mandatory") if fields.has("mandatory") else ()
    fields.finish()
    return names


def _is(fields: Fields, name: str, only: str) -> None:
    value = fields.text(name)
    if value != only:
        raise _unknown(fields.at(name), value)


def _unknown(path: str, value: str) -> Luks2Error:
    return Luks2Error("unknown-type", f"is {value!r}, which is not read here", path)


def encode_metadata(metadata: Metadata) -> bytes:
    """The JSON of a copy with zero bytes behind it; raises Luks2Error where it does not fit."""
    text = json.encode(to_json(metadata))
    # One zero byte must follow: cryptsetup reads the JSON as a C string.
    if len(text) >= JSON_BYTES:
        raise Luks2Error("too-large", f"the JSON of the header has {len(text)} bytes; {JSON_BYTES - 1} fit")
    return text.ljust(JSON_BYTES, b"\0")


def to_json(metadata: Metadata) -> dict[str, Any]:
    """The metadata as LUKS2 writes it."""
    return {
        "keyslots": {str(number): _keyslot_json(slot) for number, slot in metadata.keyslots.items()},
        "tokens": {
            str(number): {"type": token.type, "keyslots": _numbers(token.keyslots), **token.members}
            for number, token in metadata.tokens.items()
        },
        "segments": {str(number): segment_json(segment) for number, segment in metadata.segments.items()},
        "digests": {str(number): digest_json(digest) for number, digest in metadata.digests.items()},
        "config": {
            "json_size": str(metadata.config.json_size),
            "keyslots_size": str(metadata.config.keyslots_size),
            **({"flags": list(metadata.config.flags)} if metadata.config.flags else {}),
            **(
                {"requirements": {"mandatory": list(metadata.config.requirements)}}
                if metadata.config.requirements
                else {}
            ),
        },
    }


def _keyslot_json(slot: Keyslot) -> dict[str, Any]:
    area, kdf = slot.area, slot.kdf
    cost: dict[str, Any] = {"hash": kdf.hash, "iterations": kdf.iterations}
    if kdf.type != "pbkdf2":
        cost = {"time": kdf.iterations, "memory": kdf.memory, "cpus": kdf.cpus}
    return {
        "type": slot.type,
        "key_size": slot.key_size,
        **({} if slot.priority is None else {"priority": slot.priority}),
        "af": {"type": slot.af.type, "stripes": slot.af.stripes, "hash": slot.af.hash},
        "area": {
            "type": area.type, "offset": str(area.offset), "size": str(area.size), "encryption": area.encryption,
            "key_size": area.key_size,
        },
        "kdf": {"type": kdf.type, **cost, "salt": _b64(kdf.salt)},
    }  # fmt: skip


def segment_json(segment: Segment) -> dict[str, Any]:
    """A segment as LUKS2 writes it."""
    whole: dict[str, Any] = {
        "type": segment.type,
        "offset": str(segment.offset),
        "size": DYNAMIC if segment.size is None else str(segment.size),
    }
    if segment.type == "crypt":
        whole |= {
            "iv_tweak": str(segment.iv_tweak),
            "encryption": segment.encryption,
            "sector_size": segment.sector_size,
        }
    if segment.integrity:
        whole["integrity"] = {
            "type": segment.integrity.type,
            "journal_encryption": segment.integrity.journal_encryption,
            "journal_integrity": segment.integrity.journal_integrity,
            **({} if segment.integrity.key_size is None else {"key_size": segment.integrity.key_size}),
        }
    return whole | ({"flags": list(segment.flags)} if segment.flags else {})


def digest_json(digest: KeyDigest) -> dict[str, Any]:
    """A digest as LUKS2 writes it."""
    return {
        "type": digest.type, "keyslots": _numbers(digest.keyslots), "segments": _numbers(digest.segments),
        "hash": digest.hash, "iterations": digest.iterations, "salt": _b64(digest.salt), "digest": _b64(digest.digest),
    }  # fmt: skip


def _numbers(numbers: tuple[int, ...]) -> list[str]:
    return [str(number) for number in numbers]


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
