"""Where an image of an operating system keeps what a machine boots, and what of it is there.

    is_asked_for("usr/lib/modules/6.1.0/vmlinuz")       a path that matters, or a directory above one
    found = boot_files(tree)                            unified kernel images, or shim, GRUB and kernel

Unified kernel images are looked for where bootc and kernel-install put them (UAPI.1, UAPI.5), shim and GRUB where bootupd keeps
what it copies to the EFI system partition. A path that leads through a link is none of these: what is behind it is decided on a
machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from fastness.formats.tar_stream import Member, MemberKind
from fastness.images.errors import Unpredictable

UKI, SHIM, GRUB, LOADER, KERNEL = "uki", "shim", "grub", "systemd-boot", "kernel"
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    UKI: ("boot/EFI/Linux/*.efi", "efi/EFI/Linux/*.efi", "boot/efi/EFI/Linux/*.efi", "usr/lib/modules/*/*.efi"),
    SHIM: (
        "usr/lib/bootupd/updates/EFI/*/shimx64.efi", "usr/lib/efi/*/*/EFI/*/shimx64.efi", "boot/efi/EFI/*/shimx64.efi",
    ),
    GRUB: (
        "usr/lib/bootupd/updates/EFI/*/grubx64.efi", "usr/lib/efi/*/*/EFI/*/grubx64.efi", "boot/efi/EFI/*/grubx64.efi",
    ),
    LOADER: (
        "boot/EFI/systemd/systemd-bootx64.efi", "boot/EFI/BOOT/BOOTX64.EFI", "usr/lib/systemd/boot/efi/systemd-bootx64.efi",
    ),
    KERNEL: ("usr/lib/modules/*/vmlinuz",),
}  # fmt: skip


def _with_directories(place: str) -> str:
    """A regular expression for the paths of a pattern and for every directory above them."""
    nested = ""
    for part in reversed(place.split("/")):
        words = "[^/]*".join(map(re.escape, part.split("*")))
        nested = f"(?:/{words}{nested})?"
    return nested.removeprefix("(?:/").removesuffix(")?")


# One expression for all: it is asked for every member of every layer.
_ASKED_FOR: Final = re.compile("|".join(_with_directories(place) for places in PLACES.values() for place in places))
_LOOK: Final = (
    "Look into the image with `skopeo copy` and `tar`; keep what boots as plain files below /boot or /usr/lib."
)


@dataclass(frozen=True, slots=True)
class BootFiles:
    """The boot files of an image by kind, each by its path, in order of paths."""

    files: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    def of(self, kind: str) -> Mapping[str, bytes]:
        """The files of a kind."""
        return self.files.get(kind, {})


def is_asked_for(path: str) -> bool:
    """Whether a path is one of a boot file, or of a directory above one; the root is."""
    return not path or _ASKED_FOR.fullmatch(path) is not None


def kind_of(path: str) -> str:
    """Which kind of boot file a path is of; empty for directories above one, and whatever else."""
    parts = path.split("/")
    for kind, places in PLACES.items():
        for place in places:
            pattern = place.split("/")
            if len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern)):
                return kind
    return ""


def boot_files(tree: Mapping[str, Member]) -> BootFiles:
    """What a machine can boot of the tree of an image, whose hard links were followed; raises Unpredictable."""
    by_kind: dict[str, dict[str, bytes]] = {}
    for path in sorted(tree):
        member, kind = tree[path], kind_of(path)
        if member.kind in (MemberKind.LINK, MemberKind.OTHER) and (kind or _leads_to_images(path)):
            what = f"/{path} is a {member.kind}" + (f" to {member.target[:80]}" if member.target else "")
            raise Unpredictable("boot-link", f"{what}: what a machine finds there is not known before it boots", _LOOK)
        if kind and member.content:
            by_kind.setdefault(kind, {})[path] = member.content
    return BootFiles(by_kind)


def _leads_to_images(path: str) -> bool:
    """Whether a directory of this path would hold unified kernel images or kernels, in the places that images keep them."""
    parts = path.split("/")
    return any(pattern[: len(parts)] == parts for pattern in (["usr", "lib", "modules"], ["boot", "EFI", "Linux"]))
