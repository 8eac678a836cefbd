"""The record as bytes: tiles, bundles of entries and checkpoints, in the shape of C2SP tlog-tiles.

    tile/0/x001/x234/067         256 hashes of level 0; `.p/17` behind it while only 17 are there
    tile/entries/067             the entries themselves, each behind its length (16 bits)
    checkpoint                   origin, size, root hash; then signatures (see `crypto.notes`)

Total functions with limits: a log comes from a disk or a network that nobody vouches for.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
HASH_SIZE: Final = 32
MAX_ENTRY: Final = (1 << 16) - 1
MAX_LEVEL: Final = 7
MAX_NOTE: Final = 16 * 1024
MAX_ORIGIN: Final = 253
_MAX_DIGITS: Final = 18


class TlogError(ValueError):
    """Bytes that are not a tile, a bundle or a checkpoint."""

    code = "bad-log"
    hint = "The file was damaged or is not part of a record."


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How long a log is and what its root hash is."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def parse_checkpoint(text: str) -> Checkpoint:
    """The text of a note as a checkpoint; raises TlogError. Further lines belong to extensions and are allowed."""
    lines = text.split("\n")
    if len(text) > MAX_NOTE or len(lines) < 4 or lines[-1]:
        raise TlogError("a checkpoint has three lines: origin, size and root hash")
    origin, size, root = lines[0], lines[1], lines[2]
    if not origin or len(origin) > MAX_ORIGIN:
        raise TlogError("the origin of a checkpoint is missing or too long")
    entries = parse_size(size, "the size of a checkpoint")
    try:
        digest = base64.b64decode(root, validate=True)
    except binascii.Error as error:
        raise TlogError("the root hash of a checkpoint is not base64") from error
    if len(digest) != HASH_SIZE:
        raise TlogError(f"the root hash of a checkpoint has {len(digest)} bytes, not {HASH_SIZE}")
    return Checkpoint(origin, entries, digest)


def parse_size(text: str, what: str) -> int:
    """A number of entries, in decimal without leading zeroes; raises TlogError."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS or (text != "0" and text[0] == "0"):
        raise TlogError(f"{what} is not a decimal number")
    return int(text)


def tile_path(level: int, index: int, width: int = WIDTH) -> str:
    """Where a tile of hashes lives; a partial one has its width in its name."""
    return f"tile/{level}/{_number(index)}{_partial(width)}"


def entries_path(index: int, width: int = WIDTH) -> str:
    """Where a bundle of entries lives."""
    return f"tile/entries/{_number(index)}{_partial(width)}"


def encode_hashes(hashes: Sequence[bytes]) -> bytes:
    """A tile."""
    return b"".join(hashes)


def decode_hashes(data: bytes, width: int) -> list[bytes]:
    """The hashes of a tile of a known width; raises TlogError."""
    if len(data) != width * HASH_SIZE or not 0 < width <= WIDTH:
        raise TlogError(f"a tile of {width} hashes has {width * HASH_SIZE} bytes, not {len(data)}")
    return [data[at : at + HASH_SIZE] for at in range(0, len(data), HASH_SIZE)]


def encode_bundle(entries: Sequence[bytes]) -> bytes:
    """A bundle of entries; raises TlogError for one that is too long."""
    if any(len(entry) > MAX_ENTRY for entry in entries):
        raise TlogError(f"an entry has more than {MAX_ENTRY} bytes")
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def decode_bundle(data: bytes, width: int) -> list[bytes]:
    """The entries of a bundle of a known width; raises TlogError."""
    entries: list[bytes] = []
    at = 0
    while at < len(data) and len(entries) < width:
        if at + 2 > len(data):
            break
        size = int.from_bytes(data[at : at + 2], "big")
        if at + 2 + size > len(data):
            break
        entries.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    if at != len(data) or len(entries) != width:
        raise TlogError(f"a bundle holds {len(entries)} whole entries in {at} of {len(data)} bytes, not {width}")
    return entries


def _number(index: int) -> str:
    digits = f"{index:03d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    return "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])


def _partial(width: int) -> str:
    return "" if width == WIDTH else f".p/{width}"
