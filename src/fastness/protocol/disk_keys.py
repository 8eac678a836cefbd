"""The keys of a machine's disks, as the broker answers with them: what a machine needs to make or open one volume.

    resource machine/<uid>/disk-<volume>:
    {"version": 1, "volume", "keys": [{"id", "key"}, …], "expect": null | {what the header said}, "settings": {"integrity"},
     "opening": 9, "recorded": 7}

* `keys` has the newest first; there are two only while a re-key is under way.
* `expect` is what was recorded of the header when the disk was made. Null says that it was never made: only a first boot may
  format it then.
* `opening` is the number of this release; `recorded` that of the last one whose machine gave proof, zero when there is none.
* The answer comes sealed from a broker that the image believes. It is read strictly all the same: half of an answer must not
  decide whether a disk is formatted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.jwk import decoded
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_report import KEY_ID, VOLUME, is_header

VERSION: Final = 1
KEY_BYTES: Final = 32
MOST_KEYS: Final = 2
INTEGRITY: Final = ("none", "hmac-sha256")
_LIMITS: Final = json.JsonLimits(max_bytes=16 * 1024, max_depth=6)
_MOST: Final = 2**53
_MEMBERS: Final = frozenset({"version", "volume", "keys", "expect", "settings", "opening", "recorded"})


class BadDiskAnswer(Exception):
    """The broker's answer about a disk cannot be understood."""

    code = "bad-disk-answer"


@dataclass(frozen=True, slots=True)
class DiskKey:
    """One key of a disk, and its name in the disk's header."""

    id: str
    key: SecretBytes


@dataclass(frozen=True, slots=True)
class DiskAnswer:
    """What a machine needs to make or open one volume."""

    volume: str
    keys: tuple[DiskKey, ...]
    expect: JsonObject | None
    integrity: str
    opening: int
    recorded: int

    @property
    def newest(self) -> DiskKey:
        """The key that the disk has in the end."""
        return self.keys[0]


def is_volume(name: object) -> bool:
    """Whether this can be the name of a volume."""
    return isinstance(name, str) and VOLUME.match(name) is not None


def disk_resource(machine: str, volume: str) -> str:
    """The path of a disk's key at the broker."""
    return f"machine/{machine}/disk-{volume}"


def read_answer(content: SecretBytes, volume: str) -> DiskAnswer:
    """The answer about one volume; raises BadDiskAnswer, whose text never has a key."""
    try:
        value, repeated = json.decode_reporting_duplicates(content.reveal(), _LIMITS)
    except JsonError:
        raise BadDiskAnswer("it is not JSON") from None  # the cause would quote what it could not read
    if not isinstance(value, dict) or repeated or value.keys() != _MEMBERS or value["version"] != VERSION:
        raise BadDiskAnswer(f"it is not an object of version {VERSION} with {', '.join(sorted(_MEMBERS))}, each once")
    if value["volume"] != volume:
        raise BadDiskAnswer("it is about another volume")
    settings = value["settings"]
    integrity = settings.get("integrity") if isinstance(settings, dict) else None
    if integrity not in INTEGRITY:
        raise BadDiskAnswer(f"integrity is one of {', '.join(INTEGRITY)}")
    opening, recorded = value["opening"], value["recorded"]
    if type(opening) is not int or type(recorded) is not int or not 0 <= recorded < opening < _MOST:
        raise BadDiskAnswer("a release has a number, above the one that is recorded")
    return DiskAnswer(volume, _keys(value["keys"]), _header(value["expect"]), str(integrity), opening, recorded)


def _keys(value: Any) -> tuple[DiskKey, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_KEYS:
        raise BadDiskAnswer(f"it has one key, or {MOST_KEYS} while the disk gets a new one")
    keys = tuple(_key(entry) for entry in value)
    if len({key.id for key in keys}) != len(keys):
        raise BadDiskAnswer("two keys have one name")
    return keys


def _key(entry: Any) -> DiskKey:
    names_key = isinstance(entry, Mapping) and entry.keys() == {"id", "key"}
    if not names_key or not isinstance(entry["id"], str) or KEY_ID.match(entry["id"]) is None:
        raise BadDiskAnswer("a key has an id such as k1, and its bytes")
    try:
        material = decoded(entry["key"]) if isinstance(entry["key"], str) else b""
    except CryptoError:
        material = b""
    if len(material) != KEY_BYTES:
        raise BadDiskAnswer(f"a key has {KEY_BYTES} bytes in base64url")
    return DiskKey(entry["id"], SecretBytes(material))


def _header(value: Any) -> JsonObject | None:
    if value is not None and not is_header(value):
        raise BadDiskAnswer("what was recorded of the header cannot be read")
    return dict(value) if value is not None else None
