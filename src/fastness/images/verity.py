"""dm-verity: a tree of hashes over a file system that is only read; its root says what every block of it is.

The root hash stands on the kernel command line, which firmware measures with the kernel, so registers say what a whole disk holds
while firmware hashes none of it. The kernel compares each block when it is read: a disk that a host changed gives errors.

Version 1 of the format, SHA-256, blocks of 4096 bytes, no salt: a salt hides which images hold equal blocks, and these are public
(Documentation/admin-guide/device-mapper/verity.rst).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

BLOCK: Final = 4096
_DIGESTS: Final = BLOCK // 32


@dataclass(frozen=True, slots=True)
class HashTree:
    """The tree over so many blocks: its root, and the bytes that follow the data on the disk, the highest level first."""

    root: bytes
    blocks: int
    content: bytes


def hash_tree(blocks: Iterable[bytes]) -> HashTree:
    """The tree over blocks of 4096 bytes each; raises ValueError where there is none, or one has another size."""
    level = [_digest(block) for block in blocks]
    if not level:
        raise ValueError("there is nothing to seal")
    count, levels = len(level), []
    while len(level) > 1:
        packed = [
            b"".join(level[first : first + _DIGESTS]).ljust(BLOCK, b"\0") for first in range(0, len(level), _DIGESTS)
        ]
        levels.append(b"".join(packed))
        level = [_digest(block) for block in packed]
    return HashTree(level[0], count, b"".join(reversed(levels)))


def _digest(block: bytes) -> bytes:
    if len(block) != BLOCK:
        raise ValueError(f"a block has {len(block)} bytes, not {BLOCK}")
    return sha256(block).digest()
