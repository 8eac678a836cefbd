"""The files of an image: those that are there (`Tree`), and those that are put there (`Piece`).

A tree is a port, because files lie in a directory, in a mounted disk or in an initial file system. Paths are absolute and those
of the machine that boots. Nobody follows the last link of a path: a masked unit *is* a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

NOWHERE: Final = "/dev/null"
UNITS: Final = "/usr/lib/systemd/system"
UNIT_DIRECTORIES: Final = (
    "/etc/systemd/system", "/usr/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
    "/lib/systemd/system",
)  # fmt: skip
GENERATOR_DIRECTORIES: Final = (
    "/etc/systemd/system-generators", "/usr/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators", "/lib/systemd/system-generators",
)  # fmt: skip


class Tree(Protocol):
    """Files, links and directories below one root."""

    def content(self, path: str) -> bytes | None:
        """What a regular file holds; None where there is none."""

    def target(self, path: str) -> str | None:
        """Where the link at a path leads; None where there is none."""

    def names(self, directory: str) -> Sequence[str]:
        """What a directory holds, in order; nothing where there is none."""


@dataclass(frozen=True, slots=True)
class MappedTree:
    """A tree in memory: an initial file system that was read from its archive."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def content(self, path: str) -> bytes | None:
        """What a regular file holds; None where there is none."""
        return self.files.get(path)

    def target(self, path: str) -> str | None:
        """Where the link at a path leads; None where there is none."""
        return self.links.get(path)

    def names(self, directory: str) -> Sequence[str]:
        """What a directory holds, in order."""
        prefix = directory.rstrip("/") + "/"
        below = (path[len(prefix) :] for path in (*self.files, *self.links) if path.startswith(prefix))
        return sorted({name.partition("/")[0] for name in below})


def text(tree: Tree, path: str) -> str:
    """A file as text, empty where there is none; bytes that are no text become signs that match nothing."""
    return (tree.content(path) or b"").decode(errors="replace")


def present(tree: Tree, path: str) -> bool:
    """Whether a file or a link is at a path."""
    return tree.target(path) is not None or tree.content(path) is not None


def unmasked(tree: Tree, name: str, directories: Sequence[str] = UNIT_DIRECTORIES) -> str | None:
    """Where systemd finds a unit or a generator that it would run; None where there is none, or where it is masked.

    The first directory that has the name decides (systemd.unit(5), "Unit File Load Path"); a link to /dev/null or an empty
    file there masks all the others.
    """
    for directory in directories:
        path = f"{directory}/{name}"
        if present(tree, path):
            return None if tree.target(path) == NOWHERE or tree.content(path) == b"" else path
    return None


def settings_path(tree: Tree, path: str) -> str:
    """Where a file of /etc lies in a tree: a commit of ostree has /usr/etc, and a /etc beside it would be an error there."""
    return f"/usr{path}" if tree.names("/usr/etc") and not tree.names("/etc") else path


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
