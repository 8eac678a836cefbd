"""Opening a volume: everything read once, checked, opened from that copy.

A host can answer a second read differently, so whoever checks a disk and lets a program read it again has checked nothing. Here
the header is read into memory, then the areas of its slots, each byte once; rules, keys and tables work on those bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.keyslots import opened
from fastness.agent.disks.mapping import map_segment
from fastness.agent.disks.ports import BlockDevice, DeviceMapper
from fastness.agent.disks.rules import CheckedHeader, checked_header, compare
from fastness.agent.disks.volume import DiskKey, HeaderFacts, OpenedVolume
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.header import HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Unlocked:
    """Which key opened which slot, and the volume key that was in it."""

    key: DiskKey
    slot: int
    volume_key: SecretBytes


@dataclass(frozen=True, slots=True)
class VolumeCopy:
    """A volume's header and slots in memory, checked."""

    checked: CheckedHeader
    areas: Mapping[int, bytes]

    def unlocked(self, key: DiskKey) -> Unlocked | None:
        """What a key opens: slots that name it are tried first, those that name another one last."""
        for number in sorted(self.areas, key=lambda slot: _turn(self.checked.key_ids.get(slot), key.id)):
            slot = self.checked.metadata.keyslots[number]
            volume_key = opened(slot, self.areas[number], key.key, self.checked.digest)
            if volume_key is not None:
                return Unlocked(key, number, volume_key)
        return None


def _turn(named: str | None, key_id: str) -> int:
    if named == key_id:
        return 0
    return 1 if named is None else 2


def read_volume(device: BlockDevice, expect: HeaderFacts | None) -> VolumeCopy:
    """Header and slots of a disk, each byte read once; raises DiskError."""
    if device.size < HEADER_BYTES:
        raise DiskError("disk-too-small", f"{device.path} has {device.size} bytes, less than a header")
    checked = checked_header(device.read(0, HEADER_BYTES), device.size)
    if expect is not None:
        compare(checked.facts, expect)
    areas = {
        number: device.read(slot.area.offset, slot.area.size) for number, slot in checked.metadata.keyslots.items()
    }
    return VolumeCopy(checked, areas)


def unlock(volume: VolumeCopy, keys: Sequence[DiskKey]) -> Unlocked:
    """What the first of the keys opens that opens anything; raises DiskError."""
    attempts: Iterator[Unlocked | None] = (volume.unlocked(key) for key in keys)
    unlocked = next((attempt for attempt in attempts if attempt is not None), None)
    if unlocked is None:
        names = ", ".join(key.id for key in keys) or "none"
        raise DiskError(
            "key-does-not-open", f"no slot of volume {volume.checked.facts.uuid} opens with the keys: {names}"
        )
    return unlocked


def open_volume(
    device: BlockDevice, keys: Sequence[DiskKey], expect: HeaderFacts | None, mapper: DeviceMapper, name: str
) -> OpenedVolume:
    """Open a volume by the first key that fits, under a name; raises DiskError, and then nothing is mapped.

    `expect` is what was recorded when the volume was made; None where that is not known yet: then the rules alone decide.
    """
    volume = read_volume(device, expect)
    unlocked = unlock(volume, keys)
    checked = volume.checked
    mapped = map_segment(device, checked.segment, unlocked.volume_key, mapper, name, checked.facts.uuid)
    mapped.close()
    return OpenedVolume(mapped.path, unlocked.key.id, checked.facts)
