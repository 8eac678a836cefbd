"""What an image is made of here: files and links at absolute paths, for an image of one of three shapes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

UNITS: Final = "/usr/lib/systemd/system"


class Shape(Enum):
    """The kind of system an image is: what builds its boot image reads the kernel command line from different places."""

    DEBIAN = "debian"
    FCOS = "fcos"
    RHCOS = "rhcos"


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A file of the image."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class LinkPiece:
    """A link of the image."""

    path: str
    target: str


Piece = FilePiece | LinkPiece
