"""The keys of a Machine's volumes as they lie in a Secret, and the answer that a machine gets.

    data["var.k1"]      the key k1 of the volume var, sealed; opens with the context of that Machine, volume and id alone

The key of a root that the Clevis pin opens lies there, too, as the text that the pin takes it for, and is never replaced: the pin
cannot change the key of a disk.

Ids rise and are never used twice. Two keys of a volume exist only while it is re-keyed: the newest comes first, and the machine
says in its next session which one its disk has.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.jwk import encoded
from fastness.crypto.secret import SecretBytes
from fastness.disks.volumes import Settings
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.protocol.disk_report import KEY_ID, VOLUME

KEY_BYTES: Final = 32
# Three bytes of chance are four characters of base64: 192 bits, and exactly the 32 characters that the pin wants as a key.
PIN_BYTES: Final = 24
VERSION: Final = 1
_PREFIX: Final = "disks-"
_CONTEXT: Final = b"fastness disk key\0"
# A number has the second of its release, and below that chance: also a record that was brought back from a backup, under a clock
# that was set back, gives none again that it gave before.
_CHANCE_BITS: Final = 20
# Numbers stay below 2**53 under any clock: the year 2106 leaves room for as many releases as there were seconds before.
_LAST_SECOND: Final = 2**32 - 1


def secret_name(machine: str) -> str:
    """The Secret with the keys of a Machine, by its uid."""
    return f"{_PREFIX}{machine}"


def entry_name(volume: str, key_id: str) -> str:
    """The entry of one key in that Secret."""
    return f"{volume}.{key_id}"


def context(machine: str, volume: str, key_id: str) -> bytes:
    """What a sealed key is tied to: whoever may edit Secrets cannot give one Machine the key of another."""
    return _CONTEXT + f"{machine}/{volume}/{key_id}".encode()


def key_ids(entries: Iterable[str], volume: str) -> list[str]:
    """The keys that a Secret has for a volume, newest first."""
    parts = (name.rpartition(".") for name in entries)
    ids = [key for owner, _, key in parts if owner == volume and KEY_ID.match(key)]
    return sorted(ids, key=_number, reverse=True)


def volumes_in(entries: Iterable[str]) -> list[str]:
    """The volumes that a Secret has keys for."""
    return sorted({owner for owner, _, _ in (name.rpartition(".") for name in entries) if VOLUME.match(owner)})


def next_id(ids: Iterable[str]) -> str:
    """An id that no key of a volume had; `ids` are those of now and of before."""
    return f"k{max((_number(key) for key in ids), default=0) + 1}"


def _number(key_id: str) -> int:
    return int(key_id[1:]) if KEY_ID.match(key_id) else 0


def superseded(entries: Iterable[str], volume: VolumeStatus) -> list[str]:
    """The keys of a volume that nothing opens any more: its disk was reported to have the newest alone."""
    if not volume.key_id or volume.next_key_id:
        return []
    return [key for key in key_ids(entries, volume.volume) if _number(key) < _number(volume.key_id)]


def is_rekeyed(volume: VolumeStatus) -> bool:
    """Whether a volume has a new key that its disk does not have yet."""
    return bool(volume.next_key_id)


def pin_text(chance: bytes) -> bytes:
    """A key for the Clevis pin, which takes it as text: 32 characters that JSON and a console leave as they are."""
    return base64.urlsafe_b64encode(chance)


def pin_answer(key: SecretBytes) -> SecretBytes:
    """What the Clevis pin gets: the key as it reads it, and nothing else."""
    return SecretBytes(json.encode({"key_type": "oct", "key": key.reveal().decode("ascii")}))


def next_opening(volume: VolumeStatus, now: datetime, entropy: RandomBytes) -> int:
    """The number of the next release of a volume's key: above all before it, and given by no other version of the record."""
    chance = int.from_bytes(entropy.token(4), "big") & ((1 << _CHANCE_BITS) - 1)
    second = min(max(int(now.timestamp()), 0), _LAST_SECOND)
    return max(second << _CHANCE_BITS, max(volume.released, volume.generation) + 1) + chance


def opened_at(number: int) -> datetime:
    """When a number was given out, by the clock of that time and to the second."""
    return datetime.fromtimestamp(min(number >> _CHANCE_BITS, _LAST_SECOND), UTC)


def answer(
    recorded: VolumeStatus, keys: Sequence[tuple[str, SecretBytes]], settings: Settings | None, opening: int
) -> SecretBytes:
    """What the machine gets: keys newest first, what the disk must look like, how to make one, and the number of the release."""
    document: JsonObject = {
        "version": VERSION, "volume": recorded.volume,
        "keys": [{"id": key_id, "key": encoded(key.reveal())} for key_id, key in keys],
        "expect": dict(recorded.header) or None, "opening": opening, "recorded": recorded.generation,
        "settings": {"integrity": settings.integrity if settings else "none"},
    }  # fmt: skip
    return SecretBytes(json.encode(document))
