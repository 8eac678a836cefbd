"""What an image gets: the agent, whom it believes, what starts it, and what closes the ways in.

    /usr/lib/fastness/agent, /usr/lib/fastness/trust.json     the agent and whom it believes
    /usr/lib/ignition/user.ign                                the pointer: Ignition never asks for user-data
    /usr/lib/dracut/modules.d/50fastness, …/dracut.conf.d     both in the initial file system, and no afterburn there
    /usr/lib/systemd/system/fastness-*.service                enabled in /usr, where they are measured with the image
    /etc/systemd/system/*, system-generators/*                links to /dev/null
    /etc/kernel/cmdline, or /usr/lib/bootc/kargs.d            words of the kernel command line

Pure: the tree as it is goes in, because a command line that is there keeps its words; pieces come out. Writing them is a
driver's, and writing them twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fastness.domain.imagecheck.kernelline import BOOTC, KERNEL_INSTALL, without_contradictions, words_of
from fastness.domain.imagecheck.tree import NOWHERE, Tree, settings_path, text
from fastness.domain.imagecheck.ways import MASKED_GENERATORS, MASKED_UNITS, WAYS, WORDS
from fastness.formats import json
from fastness.formats.pointer import SYSTEM_CONFIG, SYSTEM_CONFIG_MODE, image_pointer

AGENT: Final = "/usr/lib/fastness/agent"
PROGRAM: Final = f"{AGENT}/bin/fastness-agent"
TRUST: Final = "/usr/lib/fastness/trust.json"
UNITS: Final = "/usr/lib/systemd/system"
DRACUT: Final = "/usr/lib/dracut"
DRACUT_CONFIG: Final = 'add_dracutmodules+=" fastness "\nomit_dracutmodules+=" afterburn "\n'
_WANTED_BY: Final = re.compile(r"^WantedBy=(.+)$", re.MULTILINE)


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


@dataclass(frozen=True, slots=True)
class Parts:
    """What comes from outside of the image: files by their name below the place that they get."""

    agent: Mapping[str, FilePiece]
    trust: bytes
    dracut_module: Mapping[str, bytes]
    units: Mapping[str, bytes]


def pieces(shape: Shape, tree: Tree, parts: Parts) -> list[Piece]:
    """Everything that an image of this shape must hold, in the order in which it is written."""
    return [
        *(FilePiece(f"{AGENT}/{name}", file.content, file.mode) for name, file in sorted(parts.agent.items())),
        FilePiece(TRUST, parts.trust),
        FilePiece(f"/{SYSTEM_CONFIG}", image_pointer(), SYSTEM_CONFIG_MODE),
        *_boot(parts),
        *_services(parts),
        *_masks(tree),
        *(FilePiece(settings_path(tree, path), content.encode()) for way in WAYS for path, content in way.files.items()),
        _kernel_line(shape, tree),
    ]  # fmt: skip


def missing_parts(tree: Tree) -> list[str]:
    """What an image lacks without which its machines prove nothing."""
    needed = (PROGRAM, TRUST, f"{DRACUT}/modules.d/50fastness/module-setup.sh", f"{UNITS}/fastness-attest.service")
    return [path for path in needed if not tree.content(path)]


def _boot(parts: Parts) -> Iterator[Piece]:
    module = f"{DRACUT}/modules.d/50fastness"
    for name, content in sorted(parts.dracut_module.items()):
        yield FilePiece(f"{module}/{name}", content, 0o755 if name.endswith(".sh") else 0o644)
    yield FilePiece(f"{DRACUT}/dracut.conf.d/50-fastness.conf", DRACUT_CONFIG.encode())


def _services(parts: Parts) -> Iterator[Piece]:
    for name, content in sorted(parts.units.items()):
        yield FilePiece(f"{UNITS}/{name}", content)
        for targets in _WANTED_BY.findall(content.decode()):
            yield from (LinkPiece(f"{UNITS}/{target}.wants/{name}", f"../{name}") for target in targets.split())


def _masks(tree: Tree) -> Iterator[Piece]:
    for directory, names in (("system", MASKED_UNITS), ("system-generators", MASKED_GENERATORS)):
        yield from (LinkPiece(settings_path(tree, f"/etc/systemd/{directory}/{name}"), NOWHERE) for name in names)


def _kernel_line(shape: Shape, tree: Tree) -> Piece:
    if shape is Shape.DEBIAN:
        line = without_contradictions(words_of(text(tree, KERNEL_INSTALL)), WORDS)
        return FilePiece(KERNEL_INSTALL, f"{' '.join(line)}\n".encode())
    # One file per owner: bootc puts the words of all of them on the line.
    return FilePiece(f"{BOOTC}/50-fastness.toml", f"kargs = {json.encode(list(WORDS)).decode()}\n".encode())
