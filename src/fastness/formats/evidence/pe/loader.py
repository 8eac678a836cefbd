"""systemd-boot: the boot loader that firmware starts, and that starts a unified kernel image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import PeImage, parse_pe

_LOADER: Final = re.compile(r"#### LoaderInfo: systemd-boot (\d{1,4})([$-~]{0,64}) ####", re.ASCII)
_X64: Final = 0x8664


@dataclass(frozen=True, slots=True)
class Loader:
    """A boot loader: the program, and which version of systemd-boot it is."""

    image: PeImage
    version: int
    name: str


def parse_loader(data: bytes) -> Loader:
    """Read systemd-boot; raises ImageError."""
    image = parse_pe(data)
    magic = _LOADER.match((image.section(".sdmagic") or b"").decode("latin-1"))
    if magic is None:
        raise ImageError(
            "no-loader",
            "the program does not name itself systemd-boot",
            hint="Give systemd-bootx64.efi; what shim and GRUB measure is read from their own files.",
        )
    if image.machine != _X64:
        raise ImageError(
            "other-machine", "the boot loader is not for x86-64", hint="Images for x86-64 can be measured."
        )
    return Loader(image, int(magic[1]), magic[1] + magic[2])
