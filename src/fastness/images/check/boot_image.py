"""What a unified kernel image shows of itself: its command line, and the files of its initial file system.

An initial file system without /etc/initrd-release never hands over to another root: it is the root. Whatever was not looked at is
a note, because a check that is silent about half of an image would be read as praise of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastness.formats.cpio import CpioError, Unzstd, unpack_initrd
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images.check.check import Image
from fastness.images.check.kernel_line import words_of
from fastness.images.check.tree import MappedTree, Tree, present

NO_ROOT = "the root of the image was not looked at: give its directory with --root"
NO_SYSTEM = "the root that was given holds no system: it has no os-release, so nothing was looked at that will run"
NO_LINE = "the image has no command line inside: the kernel takes whatever firmware or a boot loader passes"


_RELEASES = ("/usr/lib/os-release", "/etc/os-release")


@dataclass(frozen=True, slots=True)
class Looked:
    """An image as far as it could be looked at, and what could not."""

    image: Image
    unseen: tuple[str, ...] = ()


def look_at(uki: bytes | None, root: Tree | None, unzstd: Unzstd | None = None) -> Looked:
    """Everything that a boot image and a root directory show; raises ImageError."""
    # An empty directory has no way in, and says nothing about the image.
    notes = [] if root is None or any(present(root, path) for path in _RELEASES) else [NO_SYSTEM]
    if uki is None:
        return Looked(Image(root=root), tuple(notes) if root is not None else (NO_ROOT,))
    sections = parse_uki(uki).sections
    if not sections.get(".cmdline", b"").strip(b" \n\0"):
        notes.append(NO_LINE)
    line = words_of(sections.get(".cmdline", b"").rstrip(b"\0").decode(errors="replace"))
    initrd = _initrd(sections.get(".initrd", b""), unzstd, notes)
    if root is None and initrd is not None and not present(initrd, "/etc/initrd-release"):
        root, initrd = initrd, None
    if root is None:
        notes.append(NO_ROOT)
    return Looked(Image(root, initrd, line), tuple(notes))


def _initrd(data: bytes, unzstd: Unzstd | None, notes: list[str]) -> Tree | None:
    try:
        unpacked = unpack_initrd(data, unzstd)
    except CpioError as error:
        notes.append(f"the initial file system was not looked at: {error.message}")
        return None
    return MappedTree(unpacked.files, unpacked.links) if unpacked.files else None
