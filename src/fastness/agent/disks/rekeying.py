"""A new key for a volume: add, prove, remove, at any moment a power cut.

    settle    both copies of the header say the same
    clear     slots that a power cut left, and that would fill the space after a few of them
    add       the new slot's bytes, durable; then the header that names it
    prove     everything read back from the disk, and the new key opens it
    remove    the header without the other slots; then their bytes

Every step begins from what is on the disk and can be repeated, so the whole is started again after a power cut, at whatever write
it came. Until `remove` the old key opens the volume, from then on the new one does; in between both. What remains is one slot.
The volume key stays: what ends an old copy of the disk is that the old disk key is destroyed at the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fastness.agent.disks.entropy import KernelEntropy
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.header_writer import replace_header
from fastness.agent.disks.keyslots import new_slot, slot_bytes
from fastness.agent.disks.opening import Unlocked, VolumeCopy, read_volume, unlock
from fastness.agent.disks.ports import BlockDevice
from fastness.agent.disks.rules import TOKEN, free_area
from fastness.agent.disks.volume import DiskKey, HeaderFacts
from fastness.crypto.entropy import RandomBytes
from fastness.formats.luks2.header import HEADER_BYTES
from fastness.formats.luks2.metadata import Keyslot, Metadata, Token

PIECE: Final = 65536


def rekey_volume(
    device: BlockDevice, keys: Sequence[DiskKey], expect: HeaderFacts | None, entropy: RandomBytes | None = None
) -> str:
    """Leave the first of the keys as the only one that opens the volume; its id. Raises DiskError; may be repeated.

    `keys` are newest first: the new one, and those that may still open the volume.
    """
    entropy = entropy or KernelEntropy()
    if not keys or len({key.id for key in keys}) != len(keys):
        raise DiskError("bad-request", "a new key needs keys with different ids")
    volume = read_volume(device, expect)
    expect = volume.checked.facts
    if not volume.checked.settled:
        volume = _replaced(device, volume, volume.checked.metadata, entropy)
    unlocked = unlock(volume, keys)
    if unlocked.key != keys[0]:
        unlocked = _added(device, volume, unlocked, keys[0], entropy)
    volume = read_volume(device, expect)
    last = only_slot(volume.checked.metadata, unlocked.slot, keys[0].id)
    if last != volume.checked.metadata:
        volume = _replaced(device, volume, last, entropy)
    _clear_unused(device, volume.checked.metadata)
    return keys[0].id


def _added(device: BlockDevice, volume: VolumeCopy, old: Unlocked, key: DiskKey, entropy: RandomBytes) -> Unlocked:
    """A slot for a key beside the one that was opened, proved; raises DiskError."""
    alone = only_slot(volume.checked.metadata, old.slot, old.key.id)
    if alone != volume.checked.metadata:
        volume = _replaced(device, volume, alone, entropy)
    old_slot = alone.keyslots[old.slot]
    offset = free_area(alone, slot_bytes(old_slot.key_size), [old_slot])
    slot, material = new_slot(old.volume_key, key.key, offset, entropy)
    device.write(offset, material)
    # The header must not name a slot whose bytes are still on their way.
    device.flush()
    volume = _replaced(device, volume, _with_slot(alone, old.slot, slot, key.id), entropy)
    return unlock(volume, [key])


def _replaced(device: BlockDevice, volume: VolumeCopy, metadata: Metadata, entropy: RandomBytes) -> VolumeCopy:
    """The volume with another header, as the disk has it now."""
    replace_header(device, volume.checked, metadata, entropy)
    return read_volume(device, volume.checked.facts)


def only_slot(metadata: Metadata, number: int, key_id: str) -> Metadata:
    """The same header with one of its slots alone, and with the id of its key."""
    digest = replace(metadata.digests[0], keyslots=(number,))
    tokens = {0: Token(TOKEN, (number,), {"key": key_id})}
    return replace(metadata, keyslots={number: metadata.keyslots[number]}, digests={0: digest}, tokens=tokens)


def _with_slot(alone: Metadata, old: int, slot: Keyslot, key_id: str) -> Metadata:
    """A header with a second slot."""
    number = 0 if old else 1
    slots = dict(sorted({**alone.keyslots, number: slot}.items()))
    digest = replace(alone.digests[0], keyslots=tuple(slots))
    tokens = {**alone.tokens, 1: Token(TOKEN, (number,), {"key": key_id})}
    return replace(alone, keyslots=slots, digests={0: digest}, tokens=tokens)


def _clear_unused(device: BlockDevice, metadata: Metadata) -> None:
    """Zero in the space for slots whatever belongs to none, also what a power cut kept an earlier run from clearing."""
    (slot,) = metadata.keyslots.values()
    end = HEADER_BYTES + metadata.config.keyslots_size
    for start, stop in ((HEADER_BYTES, slot.area.offset), (slot.area.end, end)):
        for offset in range(start, stop, PIECE):
            length = min(PIECE, stop - offset)
            if device.read(offset, length) != bytes(length):
                device.write(offset, bytes(length))
    device.flush()
