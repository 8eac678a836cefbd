"""Writing a header: always over the copy that does not count yet.

Both copies are written, each made durable before the other is touched. The first to be written is the one that does not count:
torn, or a step behind. A power cut then leaves the copy that counted, or the new one; never neither.
"""

from __future__ import annotations

from dataclasses import replace

from fastness.agent.disks.ports import BlockDevice
from fastness.agent.disks.rules import CheckedHeader
from fastness.crypto.entropy import RandomBytes
from fastness.formats.luks2.binary import COPY_BYTES, SALT_BYTES
from fastness.formats.luks2.header import HeaderCopy, encode_copy
from fastness.formats.luks2.metadata import Metadata


def replace_header(device: BlockDevice, checked: CheckedHeader, metadata: Metadata, entropy: RandomBytes) -> None:
    """Write what a header says from now on; raises DiskError."""
    binary = replace(checked.copy.binary, sequence=checked.copy.binary.sequence + 1)
    counts = 1 if checked.settled else checked.header.newest
    write_copies(device, HeaderCopy(binary, metadata), (1 - counts, counts), entropy)


def write_copies(device: BlockDevice, copy: HeaderCopy, order: tuple[int, int], entropy: RandomBytes) -> None:
    """Write both copies in an order, each with a salt of its own; raises DiskError."""
    for position in order:
        salted = replace(copy, binary=replace(copy.binary, salt=entropy.token(SALT_BYTES)))
        device.write(position * COPY_BYTES, encode_copy(salted, position))
        device.flush()
