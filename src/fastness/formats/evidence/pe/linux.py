"""What a Linux kernel image for x86 says about itself (Documentation/arch/x86/boot.rst, the real-mode header)."""

from __future__ import annotations

import re
from typing import Final

from fastness.formats.evidence.pe.errors import ImageError

_MAGIC: Final = b"HdrS"
_RELEASE: Final = re.compile(rb"(\d{1,3})\.(\d{1,4})[!-~]{0,64}", re.ASCII)


def kernel_release(data: bytes) -> tuple[str, tuple[int, int]]:
    """The release such as `6.1.0-49-cloud-amd64` and its first two numbers; raises ImageError."""
    if data[0x202:0x206] != _MAGIC:
        raise ImageError("not-linux", "the kernel is no bzImage for x86: it has no boot header")
    at = 0x200 + int.from_bytes(data[0x20E:0x210], "little")
    match = _RELEASE.match(data[at : at + 80])
    if match is None:
        raise ImageError("not-linux", "the kernel does not say its release where its boot header points")
    return match[0].decode("ascii"), (int(match[1]), int(match[2]))
