"""From a volume key to a device: what is asked of the kernel, and what it answered.

A volume with integrity is two mappings, as LUKS2 stacks them: `NAME_dif` keeps a tag beside each sector, `NAME` encrypts and
authenticates above it. Whatever fails or differs takes back what was made.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Final

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.ports import BlockDevice, DeviceMapper
from fastness.agent.disks.tables import (
    KEY_PREFIX,
    SECTOR,
    TAG_BYTES,
    Target,
    authenticated_target,
    crypt_target,
    integrity_target,
    same_mapping,
)
from fastness.crypto.secret import SecretBytes
from fastness.formats.errors import Luks2Error
from fastness.formats.luks2.integrity import FIXED_PADDING, SUPERBLOCK_BYTES, Superblock, parse_superblock
from fastness.formats.luks2.metadata import Segment

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z", re.ASCII)
TAGS: Final = "_dif"


def map_segment(
    device: BlockDevice, segment: Segment, volume_key: SecretBytes, mapper: DeviceMapper, name: str, uuid: str
) -> BlockDevice:
    """The opened volume as a device; raises DiskError, and then no mapping is left."""
    if NAME.match(name) is None:
        raise DiskError("bad-request", f"{name[:100]!r} is no name for a mapping")
    end = device.size if segment.size is None else segment.offset + segment.size
    sectors = (end - segment.offset) // segment.sector_size * (segment.sector_size // SECTOR)
    with ExitStack() as undo:
        description = f"{KEY_PREFIX}{uuid}"
        key = f":{len(volume_key.reveal())}:logon:{description}"
        undo.enter_context(mapper.hold_key(description, volume_key))
        if segment.integrity is None:
            target = crypt_target(device.number, segment.offset, sectors, key, segment.sector_size)
        else:
            provided = tagged_sectors(device, segment)
            tags = integrity_target(device.number, segment.offset, provided, segment.sector_size)
            lower = checked_mapping(mapper, f"{name}{TAGS}", _mapping_uuid("SUBDEV", uuid, f"{name}{TAGS}"), tags)
            removal = undo.enter_context(ExitStack())
            removal.callback(mapper.remove, f"{name}{TAGS}")
            lower.close()
            target = authenticated_target(lower.number, provided, key, segment.sector_size)
        mapped = checked_mapping(mapper, name, _mapping_uuid("LUKS2", uuid, name), target)
        if segment.integrity is not None:
            removal.pop_all()
    return mapped


def unmap_segment(segment: Segment, mapper: DeviceMapper, name: str) -> None:
    """Take back what `map_segment` made; raises DiskError."""
    mapper.remove(name)
    if segment.integrity is not None:
        mapper.remove(f"{name}{TAGS}")


def prepare_tags(device: BlockDevice, segment: Segment, mapper: DeviceMapper, name: str) -> None:
    """Have the kernel lay out a data area with tags: it does so where it finds zeros; raises DiskError."""
    device.write(segment.offset, bytes(SUPERBLOCK_BYTES))
    device.flush()
    sectors = segment.sector_size // SECTOR
    target = integrity_target(device.number, segment.offset, sectors, segment.sector_size)
    mapper.create(f"{name}{TAGS}", _mapping_uuid("SUBDEV", "", f"{name}{TAGS}"), target).close()
    mapper.remove(f"{name}{TAGS}")


def checked_mapping(mapper: DeviceMapper, name: str, uuid: str, target: Target) -> BlockDevice:
    """A mapping that does what was meant, as the kernel says itself; raises DiskError, and then there is none."""
    mapped = mapper.create(name, uuid, target)
    actual = mapper.table(name)
    if not same_mapping(target, actual):
        mapped.close()
        mapper.remove(name)
        lines = "; ".join(f"{line.kind} {line.parameters}" for line in actual)
        raise DiskError("mapping-differs", f"{name} should be {target.kind} {target.parameters}, and is {lines}")
    return mapped


def tagged_sectors(device: BlockDevice, segment: Segment) -> int:
    """How many sectors are left for data beside their tags; raises DiskError."""
    try:
        superblock = parse_superblock(device.read(segment.offset, SUPERBLOCK_BYTES))
    except Luks2Error as error:
        raise DiskError("header-refused", f"the tags of the volume are refused: {error}") from error
    reason = _refusal(superblock, segment, device.size)
    if reason:
        raise DiskError("header-refused", f"the tags of the volume are refused: {reason}")
    return superblock.provided_sectors


def _refusal(superblock: Superblock, segment: Segment, disk_bytes: int) -> str | None:
    if superblock.flags & ~FIXED_PADDING:
        return f"the superblock has flags {superblock.flags:#x}, which we never set"
    if superblock.tag_size != TAG_BYTES or superblock.block_sectors * SECTOR != segment.sector_size:
        return f"tags have {superblock.tag_size} bytes for {superblock.block_sectors} sectors"
    room = (disk_bytes - segment.offset) // SECTOR
    if not 0 < superblock.provided_sectors < room or superblock.provided_sectors % superblock.block_sectors:
        return f"{superblock.provided_sectors} sectors do not fit beside their tags into {room}"
    return None


def _mapping_uuid(kind: str, uuid: str, name: str) -> str:
    """The name by which systemd and cryptsetup recognise an encrypted volume, at shutdown for instance."""
    return f"CRYPT-{kind}-{uuid.replace('-', '')}-{name}"[:128]
