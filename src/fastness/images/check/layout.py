"""What an image gets: the agent, whom it believes, what starts it, and what closes the ways in.

    /usr/lib/fastness/agent, /usr/lib/fastness/trust.json     the agent and whom it believes
    /usr/lib/ignition/user.ign                                the pointer: Ignition never asks for user-data
    /usr/lib/dracut/modules.d/50fastness, …/dracut.conf.d     both in the initial file system, and no afterburn there
    /usr/lib/systemd/system/fastness-*.service                enabled in /usr, where they are measured with the image
    /usr/lib/fastness/kubelet.conf.d, and a drop-in           the kubelet makes no keys of its own (`node`)
    /etc/systemd/system/*, system-generators/*                links to /dev/null
    /etc/kernel/cmdline, or /usr/lib/bootc/kargs.d            words of the kernel command line

Pure: the tree as it is goes in, because a command line that is there keeps its words; pieces come out. Writing them is a
driver's, and writing them twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.formats import json
from fastness.images.check.kernel_line import (  # fmt: skip
    BOOTC,
    KERNEL_INSTALL,
    PLATFORM,
    bootc_words,
    lines_of,
    without_contradictions,
    words_of,
)
from fastness.images.check.node import node_pieces, rotating
from fastness.images.check.tree import (
    NOWHERE,
    UNITS,
    FilePiece,
    LinkPiece,
    Piece,
    Shape,
    Tree,
    present,
    settings_path,
    text,
    unmasked,
)
from fastness.images.check.ways import MASKED_GENERATORS, MASKED_UNITS, WAYS, WORDS
from fastness.protocol.pointer import SYSTEM_CONFIG, SYSTEM_CONFIG_MODE, image_pointer

AGENT: Final = "/usr/lib/fastness/agent"
PROGRAM: Final = f"{AGENT}/bin/fastness-agent"
TRUST: Final = "/usr/lib/fastness/trust.json"
DRACUT: Final = "/usr/lib/dracut"
DRACUT_CONFIG: Final = (
    'add_dracutmodules+=" fastness "\nomit_dracutmodules+=" afterburn rhcos-afterburn-checkin systemd-pcrphase "\n'
)
BOOTC_FILE: Final = f"{BOOTC}/50-fastness.toml"
# systemd adds a word to PCR 11 at each stage of a boot, and writes that into no log that a verifier gets: a machine would prove
# itself in its initial file system and never again.
PHASES: Final = (
    "systemd-pcrphase-initrd.service", "systemd-pcrphase-sysinit.service", "systemd-pcrphase.service",
    "systemd-pcrphase-factory-reset.service", "systemd-pcrphase-storage-target-mode.service",
)  # fmt: skip
_WANTED_BY: Final = re.compile(r"^WantedBy=(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parts:
    """What comes from outside of the image: files by their name below the place that they get."""

    agent: Mapping[str, FilePiece]
    trust: bytes
    dracut_module: Mapping[str, bytes]
    units: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Lack:
    """What an image does not have, and what follows from that for its machines."""

    path: str
    consequence: str


_PROVES_NOTHING: Final = "machines of this image prove nothing"
_MODULE: Final = f"{DRACUT}/modules.d/50fastness/module-setup.sh"
_PARTS: Final = {
    PROGRAM: _PROVES_NOTHING,
    TRUST: _PROVES_NOTHING,
    _MODULE: _PROVES_NOTHING,
    "fastness-attest.service": "its machines prove themselves once, and their nodes lose their certificates",
    "fastness-identity.service": "its machines are others after every reboot",
    "fastness-agent.service": "nothing brings a changed configuration to its machines",
}
_ROTATES: Final = "its kubelet makes keys that no proof names, and is denied"
_PHASED: Final = "it changes PCR 11 after the boot, and no later proof of its machines is accepted"
_NO_PLATFORM: Final = "its agent does not know where user-data lies: give --platform"


def pieces(shape: Shape, tree: Tree, parts: Parts, platform: str = "") -> list[Piece]:
    """Everything that an image of this shape must hold, in the order in which it is written.

    `platform` is what Ignition calls it; an image that names one already keeps it where none is given.
    """
    return [
        *(FilePiece(f"{AGENT}/{name}", file.content, file.mode) for name, file in sorted(parts.agent.items())),
        FilePiece(TRUST, parts.trust),
        FilePiece(f"/{SYSTEM_CONFIG}", image_pointer(), SYSTEM_CONFIG_MODE),
        *_boot(parts),
        *_services(parts),
        *_masks(tree),
        *(FilePiece(settings_path(tree, path), content.encode()) for way in WAYS for path, content in way.files.items()),
        *node_pieces(shape, tree),
        _kernel_line(shape, tree, (*([f"{PLATFORM}={platform}"] if platform else ()), *WORDS)),
    ]  # fmt: skip


def lacks(shape: Shape, tree: Tree) -> list[Lack]:
    """What an image of this shape lacks, and why that matters."""
    absent = [
        Lack(path, consequence)
        for name, consequence in _PARTS.items()
        for path in _places(name)
        if not present(tree, path)
    ]
    kubelet = [Lack(place, _ROTATES) for place in rotating(shape, tree)]
    phases = [Lack(f"a mask for {unit}", _PHASED) for unit in PHASES if unmasked(tree, unit) is not None]
    return absent + kubelet + phases + list(_platform(tree))


def _places(name: str) -> tuple[str, ...]:
    """Where a part lies; a unit counts only where something starts it."""
    return (name,) if name.startswith("/") else (f"{UNITS}/{name}", f"{UNITS}/multi-user.target.wants/{name}")


def _platform(tree: Tree) -> Iterator[Lack]:
    named = {
        place: {word for word in words if word.startswith(f"{PLATFORM}=")} for place, words in lines_of(tree).items()
    }
    if not any(named.values()):
        yield Lack(f"{PLATFORM} on the kernel command line", _NO_PLATFORM)
    for place, words in named.items():
        if len(words) > 1:
            yield Lack(f"one {PLATFORM} in {place} ({', '.join(sorted(words))})", _NO_PLATFORM)


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
    for directory, names in (("system", (*MASKED_UNITS, *PHASES)), ("system-generators", MASKED_GENERATORS)):
        yield from (LinkPiece(settings_path(tree, f"/etc/systemd/{directory}/{name}"), NOWHERE) for name in names)


def _kernel_line(shape: Shape, tree: Tree, words: Sequence[str]) -> Piece:
    if shape is Shape.DEBIAN:
        line = without_contradictions(words_of(text(tree, KERNEL_INSTALL)), words)
        return FilePiece(KERNEL_INSTALL, f"{' '.join(line)}\n".encode())
    # One file per owner: bootc puts the words of all of them on the line.
    line = without_contradictions(bootc_words(tree, BOOTC_FILE), words)
    return FilePiece(BOOTC_FILE, f"kargs = {json.encode(list(line)).decode()}\n".encode())
