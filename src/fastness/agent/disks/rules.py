"""What may be opened: the rules about a header, and the comparison with what was recorded.

The header is written by whoever has the disk, and its checksum proves nothing. So there is a list of what is opened, and all
else is refused before any key is touched:

* one segment, `crypt`, `aes-xts-plain64` with a key of 512 bits, alone or with `hmac(sha256)` over each sector. A null cipher
  (also as `capi:ecb(cipher_null)`) or a `linear` segment would hand everything that is written to the host in clear.
* slots by PBKDF2 within bounds, encrypted with AES-XTS. A slot under a null cipher opens with any key and holds the attacker's
  volume key: CVE-2025-59054, CVE-2025-58356. Memory and time of argon2 are the host's to choose: refused.
* one digest, for that segment and for all slots; no flags, no requirements, no tokens but ours.
* everything lies where it belongs: header, then slots, then data, without overlaps, within the disk.
* whole copies say the same; while a new key is added, one may be a step ahead, and then only its slots differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.volume import HMAC_SHA256, NO_INTEGRITY, HeaderFacts
from fastness.crypto.digests import sha256
from fastness.crypto.volume_keys import AREA_KEY_BYTES, STRIPES, area_bytes
from fastness.formats import json
from fastness.formats.errors import Luks2Error
from fastness.formats.luks2.header import HEADER_BYTES, Header, HeaderCopy, parse_header
from fastness.formats.luks2.metadata import JSON_BYTES, KeyDigest, Keyslot, Metadata, Segment, digest_json, segment_json

CIPHER: Final = "aes-xts-plain64"
HASH: Final = "sha256"
LUKS_HMAC: Final = "hmac(sha256)"
KEY_BYTES: Final = {NO_INTEGRITY: 64, HMAC_SHA256: 96}
"""Bytes of a volume key: 512 bits for AES-XTS, and 256 for the tags of sectors."""
SECTOR_SIZES: Final = (512, 4096)
TOKEN: Final = "fastness"
MIN_ITERATIONS, MAX_ITERATIONS = 1000, 100_000
MAX_SLOTS: Final = 8
MAX_KEYSLOTS_BYTES: Final = 16 * 1024**2
MAX_AREA_BYTES: Final = 1024**2
# Room for the steps of a new key, far beyond what anybody counts to: adding must never wrap around to an old number.
MAX_SEQUENCE: Final = 2**62
ALIGNMENT: Final = 4096


@dataclass(frozen=True, slots=True)
class CheckedHeader:
    """A header that may be opened, with the copy that counts."""

    header: Header
    copy: HeaderCopy
    facts: HeaderFacts

    @property
    def metadata(self) -> Metadata:
        """What counts."""
        return self.copy.metadata

    @property
    def segment(self) -> Segment:
        """The one segment."""
        return self.metadata.segments[0]

    @property
    def digest(self) -> KeyDigest:
        """The one digest."""
        return self.metadata.digests[0]

    @property
    def key_ids(self) -> Mapping[int, str]:
        """By slot, the id of the key that our token names; a hint for the order, and never believed."""
        return {token.keyslots[0]: token.members["key"] for token in self.metadata.tokens.values()}

    @property
    def settled(self) -> bool:
        """Whether both copies are there and equal."""
        first, second = self.header.copies
        equal = first is not None and second is not None and first.metadata == second.metadata
        return equal and first.binary.sequence == second.binary.sequence  # type: ignore[union-attr]


def checked_header(data: bytes, disk_bytes: int) -> CheckedHeader:
    """The header in the first bytes of a disk of that size, if it may be opened; raises DiskError `header-refused`."""
    try:
        header = parse_header(data)
    except Luks2Error as error:
        raise DiskError("header-refused", f"the header of the volume is refused: {error}") from error
    for copy in header.whole:
        _check_copy(copy, disk_bytes)
    if len(header.whole) > 1:
        _check_agreement(*header.whole)
    copy = header.whole[0]
    return CheckedHeader(header, copy, facts_of(copy))


def compare(facts: HeaderFacts, expect: HeaderFacts) -> None:
    """Demand the header that was recorded when the volume was made; raises DiskError `disk-exchanged`."""
    names = facts.differences(expect)
    if names:
        detail = ", ".join(f"{name} is {getattr(facts, name)}, recorded {getattr(expect, name)}" for name in names)
        raise DiskError("disk-exchanged", f"this is not the volume that was recorded: {detail}")


def facts_of(copy: HeaderCopy) -> HeaderFacts:
    """By what the volume of a checked copy is recognised."""
    segment, digest = copy.metadata.segments[0], replace(copy.metadata.digests[0], keyslots=())
    covered = {"segments": {"0": segment_json(segment)}, "digests": {"0": digest_json(digest)}}
    return HeaderFacts(
        uuid=copy.binary.uuid,
        cipher=segment.encryption,
        integrity=HMAC_SHA256 if segment.integrity else NO_INTEGRITY,
        sector_size=segment.sector_size,
        segments_digest=str(sha256(json.canonical(covered))),
    )


def _check_copy(copy: HeaderCopy, disk_bytes: int) -> None:
    metadata = copy.metadata
    if copy.binary.sequence > MAX_SEQUENCE:
        raise _refused("its sequence number", f"is {copy.binary.sequence}, which nobody counts to")
    _check_settings(metadata)
    if set(metadata.segments) != {0}:
        raise _refused("segments", f"are {len(metadata.segments)}; one is opened, number 0")
    _check_segment(metadata.segments[0], metadata.config.keyslots_size, disk_bytes)
    _check_slots(metadata)
    _check_digests(metadata)
    _check_tokens(metadata)


def _check_settings(metadata: Metadata) -> None:
    config = metadata.config
    if config.json_size != JSON_BYTES:
        raise _refused("config.json_size", f"is {config.json_size}, not {JSON_BYTES}")
    if not 0 < config.keyslots_size <= MAX_KEYSLOTS_BYTES or config.keyslots_size % ALIGNMENT:
        raise _refused("config.keyslots_size", f"is {config.keyslots_size}")
    for name, values in (("flags", config.flags), ("requirements", config.requirements)):
        if values:
            raise _refused(f"config.{name}", f"has {values[0]!r}; none is allowed")


def _check_segment(segment: Segment, keyslots_size: int, disk_bytes: int) -> None:
    if segment.type != "crypt":
        raise _refused("segments.0.type", f"is {segment.type!r}: the host would read everything that is written")
    if segment.encryption != CIPHER:
        raise _refused("segments.0.encryption", f"is {segment.encryption!r}; only {CIPHER} is opened")
    if segment.sector_size not in SECTOR_SIZES or segment.iv_tweak:
        raise _refused("segments.0", f"has sectors of {segment.sector_size} bytes and a tweak of {segment.iv_tweak}")
    if segment.flags:
        raise _refused("segments.0.flags", f"has {segment.flags[0]!r}; none is allowed")
    integrity = segment.integrity
    # A journal key of its own would be a second secret that nothing here provides.
    if integrity and (integrity.type, integrity.journal_encryption, integrity.journal_integrity) != (
        LUKS_HMAC,
        "none",
        "none",
    ):
        raise _refused(
            "segments.0.integrity", f"is {integrity.type!r}; only {LUKS_HMAC} without journal keys is opened"
        )
    if integrity and integrity.key_size not in (None, KEY_BYTES[HMAC_SHA256] - KEY_BYTES[NO_INTEGRITY]):
        raise _refused("segments.0.integrity.key_size", f"is {integrity.key_size}")
    if segment.offset < HEADER_BYTES + keyslots_size or segment.offset % ALIGNMENT:
        raise _refused(
            "segments.0.offset", f"is {segment.offset}: data begins behind the slots, at a multiple of {ALIGNMENT}"
        )
    end = disk_bytes if segment.size is None else segment.offset + segment.size
    if end > disk_bytes or end - segment.offset < segment.sector_size or (segment.size or 0) % segment.sector_size:
        raise _refused("segments.0", f"lies from {segment.offset} to {end} on a disk of {disk_bytes} bytes")


def _check_slots(metadata: Metadata) -> None:
    if not 1 <= len(metadata.keyslots) <= MAX_SLOTS:
        raise _refused("keyslots", f"are {len(metadata.keyslots)}; a volume has 1 to {MAX_SLOTS}")
    key_bytes = KEY_BYTES[HMAC_SHA256 if metadata.segments[0].integrity else NO_INTEGRITY]
    for number, slot in metadata.keyslots.items():
        _check_slot(f"keyslots.{number}", slot, key_bytes, metadata.config.keyslots_size)
    places = sorted((slot.area.offset, slot.area.end, number) for number, slot in metadata.keyslots.items())
    for (_, end, number), (start, _, other) in pairwise(places):
        if start < end:
            raise _refused(f"keyslots.{other}.area", f"overlaps the area of slot {number}")


def _check_slot(path: str, slot: Keyslot, key_bytes: int, keyslots_size: int) -> None:
    area, kdf = slot.area, slot.kdf
    if slot.key_size != key_bytes:
        raise _refused(f"{path}.key_size", f"is {slot.key_size}, not {key_bytes}")
    if (area.encryption, area.key_size) != (CIPHER, AREA_KEY_BYTES):
        raise _refused(
            f"{path}.area.encryption",
            f"is {area.encryption!r} with a key of {area.key_size} bytes; only {CIPHER} is opened",
        )
    if (slot.af.hash, slot.af.stripes) != (HASH, STRIPES):
        raise _refused(f"{path}.af", f"is {slot.af.stripes} stripes with {slot.af.hash}")
    if kdf.type != "pbkdf2" or kdf.hash != HASH:
        raise _refused(f"{path}.kdf", f"is {kdf.type}; only pbkdf2 with {HASH} is computed")
    _check_iterations(f"{path}.kdf.iterations", kdf.iterations)
    inside = area.offset >= HEADER_BYTES and area.end <= HEADER_BYTES + keyslots_size
    if not inside or not area_bytes(key_bytes) <= area.size <= MAX_AREA_BYTES or (area.offset | area.size) % ALIGNMENT:
        raise _refused(
            f"{path}.area", f"lies from {area.offset} to {area.end}, outside of the space for slots or out of shape"
        )


def _check_digests(metadata: Metadata) -> None:
    if set(metadata.digests) != {0}:
        raise _refused("digests", f"are {len(metadata.digests)}; a volume has one, number 0")
    digest = metadata.digests[0]
    if digest.segments != (0,) or set(digest.keyslots) != set(metadata.keyslots):
        raise _refused("digests.0", "does not speak of the segment and of every slot")
    if digest.hash != HASH or len(digest.digest) != 32:
        raise _refused("digests.0", f"is {len(digest.digest)} bytes of {digest.hash}, not 32 of {HASH}")
    _check_iterations("digests.0.iterations", digest.iterations)


def _check_iterations(path: str, iterations: int) -> None:
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise _refused(path, f"is {iterations}; {MIN_ITERATIONS} to {MAX_ITERATIONS} are computed")


def _check_tokens(metadata: Metadata) -> None:
    slots: list[int] = []
    for number, token in metadata.tokens.items():
        ours = token.type == TOKEN and set(token.members) == {"key"} and _is_key_id(token.members["key"])
        if not ours or len(token.keyslots) != 1 or token.keyslots[0] not in metadata.keyslots:
            raise _refused(f"tokens.{number}", f"of type {token.type!r} is not one that a volume of ours has")
        slots += token.keyslots
    if len(set(slots)) != len(slots):
        raise _refused("tokens", "name two keys for one slot")


def _is_key_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64 and value.isascii() and value.isprintable()


def _check_agreement(newer: HeaderCopy, older: HeaderCopy) -> None:
    """Two whole copies: the same, or one step of a new key apart."""
    ahead = newer.binary.sequence - older.binary.sequence
    if facts_of(newer) != facts_of(older) or newer.metadata.config != older.metadata.config:
        raise _refused("the second copy", "describes another volume than the first")
    if ahead > 1 or (ahead == 0 and newer.metadata != older.metadata):
        raise _refused("the second copy", f"differs from the first and is {ahead} steps away from it")


def _refused(path: str, reason: str) -> DiskError:
    return DiskError("header-refused", f"the header of the volume is refused: {path} {reason}")


def free_area(metadata: Metadata, size: int, slots: Iterable[Keyslot]) -> int:
    """Where an area of that size fits between those of slots; raises DiskError."""
    offset, end = HEADER_BYTES, HEADER_BYTES + metadata.config.keyslots_size
    for area in sorted((slot.area for slot in slots), key=lambda area: area.offset):
        if area.offset - offset >= size:
            break
        offset = max(offset, area.end)
    if end - offset < size:
        raise DiskError("no-room-for-slot", f"between the slots of the volume are no {size} bytes free")
    return offset
