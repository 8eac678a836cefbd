"""Unified kernel images: one PE file with boot stub, kernel, initial file system and command line (UAPI.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import PeImage, parse_pe

SECTIONS: Final = (
    ".linux", ".osrel", ".cmdline", ".initrd", ".ucode", ".splash", ".dtb", ".uname", ".sbat",
    ".pcrsig", ".pcrpkey", ".profile", ".dtbauto", ".hwids", ".efifw",
)  # fmt: skip
_STUB: Final = re.compile(r"#### LoaderInfo: systemd-stub (\d{1,4})([$-~]{0,64}) ####", re.ASCII)
_X64: Final = 0x8664
_BOOT_HEADER: Final = b"HdrS"
_RELEASE: Final = re.compile(rb"(\d{1,3})\.(\d{1,4})[!-~]{0,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Uki:
    """A unified kernel image: the whole, the kernel in it, its sections by name, the version of its boot stub."""

    image: PeImage
    kernel: PeImage
    sections: Mapping[str, bytes]
    stub: int
    stub_name: str
    release: str
    kernel_version: tuple[int, int]


def parse_uki(data: bytes) -> Uki:
    """Read a unified kernel image; raises ImageError."""
    image = parse_pe(data)
    # What the stub measures changed with its versions, so a prediction needs to know which one it is.
    magic = _STUB.match((image.section(".sdmagic") or b"").decode("latin-1"))
    if magic is None:
        raise ImageError(
            "no-stub",
            "the image does not name systemd-stub as its boot stub",
            hint="Give a unified kernel image; a bare kernel or another boot loader is measured in other ways.",
        )
    sections = {name: content for name in SECTIONS if (content := image.section(name)) is not None}
    if ".linux" not in sections:
        raise ImageError(
            "no-kernel", "the image has no section .linux", hint="Give a unified kernel image, not an add-on."
        )
    kernel = parse_pe(sections[".linux"])
    if image.machine != _X64 or kernel.machine != _X64:
        raise ImageError("other-machine", "the image is not for x86-64", hint="Images for x86-64 can be measured.")
    release, version = kernel_release(sections[".linux"])
    return Uki(image, kernel, sections, int(magic[1]), magic[1] + magic[2], release, version)


def kernel_release(data: bytes) -> tuple[str, tuple[int, int]]:
    """The release such as `6.1.0-49-cloud-amd64` and its first two numbers; raises ImageError.

    Documentation/arch/x86/boot.rst, the real-mode header.
    """
    if data[0x202:0x206] != _BOOT_HEADER:
        raise ImageError("not-linux", "the kernel is no bzImage for x86: it has no boot header")
    at = 0x200 + int.from_bytes(data[0x20E:0x210], "little")
    match = _RELEASE.match(data[at : at + 80])
    if match is None:
        raise ImageError("not-linux", "the kernel does not say its release where its boot header points")
    return match[0].decode("ascii"), (int(match[1]), int(match[2]))
