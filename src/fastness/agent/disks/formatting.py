"""Making a volume: slots, tags, and the header last.

What was there before is made unreadable first, and the header is written when everything that it speaks of is on the disk: a
power cut leaves no volume, and the next boot makes one. With integrity every sector is written once, because the kernel refuses
to read a sector without a tag.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.header_writer import write_copies
from fastness.agent.disks.keyslots import new_digest, new_slot
from fastness.agent.disks.mapping import map_segment, prepare_tags, unmap_segment
from fastness.agent.disks.opening import read_volume, unlock
from fastness.agent.disks.ports import BlockDevice, DeviceMapper
from fastness.agent.disks.rules import CIPHER, KEY_BYTES, LUKS_HMAC, TOKEN
from fastness.agent.disks.volume import NO_INTEGRITY, DiskKey, HeaderFacts, VolumeSettings
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.binary import SALT_BYTES, BinaryHeader
from fastness.formats.luks2.header import HEADER_BYTES, HeaderCopy
from fastness.formats.luks2.metadata import JSON_BYTES, Integrity, Metadata, Segment, Settings, Token

DATA_OFFSET: Final = 1024**2
"""Room for three slots, or for two with integrity: a new key needs a second one beside the old."""
LEAST_BYTES: Final = 2 * 1024**2
LEAST_TAGGED_BYTES: Final = 16 * 1024**2
PIECE: Final = 1024**2


def format_volume(
    device: BlockDevice,
    key: SecretBytes,
    key_id: str,
    settings: VolumeSettings,
    entropy: RandomBytes,
    mapper: DeviceMapper | None = None,
) -> HeaderFacts:
    """Make a volume that one disk key opens; everything on the disk is lost; raises DiskError.

    `mapper` is needed for a volume with integrity, whose sectors all get their tags here.
    """
    tagged = settings.integrity != NO_INTEGRITY
    least = LEAST_TAGGED_BYTES if tagged else LEAST_BYTES
    if device.size < least:
        raise DiskError("disk-too-small", f"{device.path} has {device.size} bytes; a volume needs {least}")
    disk_key, uuid = DiskKey(key_id, key), str(UUID(bytes=entropy.token(16), version=4))
    volume_key = SecretBytes(entropy.token(KEY_BYTES[settings.integrity]))
    slot, material = new_slot(volume_key, key, HEADER_BYTES, entropy)
    # Also clears the space for slots: what is not a slot is zero, so a new key can tell what a power cut left (`rekeying`).
    device.write(0, bytes(DATA_OFFSET))
    device.flush()
    device.write(slot.area.offset, material)
    segment = _segment(device.size, tagged=tagged)
    if tagged:
        _write_tags(device, segment, volume_key, mapper, uuid)
    metadata = Metadata(
        keyslots={0: slot},
        segments={0: segment},
        digests={0: new_digest(volume_key, 0, entropy)},
        tokens={0: Token(TOKEN, (0,), {"key": key_id})},
        config=Settings(JSON_BYTES, DATA_OFFSET - HEADER_BYTES),
    )
    device.flush()
    write_copies(device, HeaderCopy(BinaryHeader(1, uuid, bytes(SALT_BYTES)), metadata), (1, 0), entropy)
    volume = read_volume(device, None)
    unlock(volume, [disk_key])
    return volume.checked.facts


def _segment(disk_bytes: int, *, tagged: bool) -> Segment:
    integrity = Integrity(LUKS_HMAC, "none", "none") if tagged else None
    # The kernel maps whole sectors, and cryptsetup opens no disk whose end is not one.
    sector_size = 512 if disk_bytes % 4096 else 4096
    return Segment("crypt", DATA_OFFSET, None, encryption=CIPHER, sector_size=sector_size, integrity=integrity)


def _write_tags(
    device: BlockDevice, segment: Segment, volume_key: SecretBytes, mapper: DeviceMapper | None, uuid: str
) -> None:
    """Write every sector of the volume once."""
    if mapper is None:
        raise DiskError("bad-request", "a volume with integrity is made with the kernel's mapper")
    name = f"fastness-new-{uuid}"
    prepare_tags(device, segment, mapper, name)
    mapped = map_segment(device, segment, volume_key, mapper, name, uuid)
    try:
        for offset in range(0, mapped.size, PIECE):
            mapped.write(offset, bytes(min(PIECE, mapped.size - offset)))
        mapped.flush()
    finally:
        mapped.close()
        unmap_segment(segment, mapper, name)
