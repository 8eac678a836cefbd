"""The initial file system of a boot image: one or more cpio archives (newc), each bare or packed, one behind the other.

That is how the kernel reads it (Documentation/driver-api/early-userspace/buffer-format.rst): an archive may be followed by zeros
and by the next one, and a later file replaces an earlier one. Archives are unpacked with what Python brings (gzip, xz, bzip2);
for zstd, which most distributions use by now, somebody lends an unpacker. Of one that is packed otherwise nothing is guessed.

Only what is looked at is held: names, links, and the first bytes of each file.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from fastness.formats import zstd
from fastness.formats.errors import FormatError

MAX_UNPACKED: Final = 1024 * 1024 * 1024
MAX_ENTRIES: Final = 200_000
MAX_NAME: Final = 4096
HELD: Final = 64 * 1024
_HEADER: Final = 110
_MAGICS: Final = (b"070701", b"070702")
_NUMBERS: Final = re.compile(rb"[0-9A-Fa-f]{104}")
_TRAILER: Final = "TRAILER!!!"
_LINK, _FILE, _KIND = 0o120000, 0o100000, 0o170000
_OTHERS: Final = {zstd.MAGIC: "zstd", b"\x02\x21\x4c\x18": "lz4", b"\x89LZO": "lzo"}
Unzstd = Callable[[bytes, int], bytes]
"""Unpacks one zstd frame: what it holds, or a byte more than the number where it holds more; raises CpioError."""


class CpioError(FormatError):
    """The bytes are no initial file system that can be read here."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Give the image as it was built; it may be cut off.")


@dataclass(slots=True)
class Unpacked:
    """Files by absolute path, each with its first bytes, and links by absolute path."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def put(self, path: str, kind: int, content: bytes) -> None:
        """Add an entry; a later one of the same path replaces an earlier one."""
        self.files.pop(path, None)
        self.links.pop(path, None)
        if kind == _LINK:
            self.links[path] = content.decode("utf-8", "replace")
        elif kind == _FILE:
            self.files[path] = content


class _Decompressor(Protocol):
    @property
    def unused_data(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def unpack_initrd(data: bytes, unzstd: Unzstd | None = None) -> Unpacked:
    """Read every archive of an initial file system; raises CpioError, also for zstd where nobody unpacks it."""
    unpacked, rest, room = Unpacked(), data.lstrip(b"\0"), MAX_UNPACKED
    while rest:
        if rest.startswith(_MAGICS):
            rest = _archive(rest, unpacked).lstrip(b"\0")
            continue
        content, rest = _decompressed(rest, room, unzstd)
        room -= len(content)
        inner = content.lstrip(b"\0")
        while inner:
            inner = _archive(inner, unpacked).lstrip(b"\0")
        rest = rest.lstrip(b"\0")
    return unpacked


def _decompressed(data: bytes, most: int, unzstd: Unzstd | None) -> tuple[bytes, bytes]:
    """What one packed piece holds, and what is behind it."""
    if unzstd is not None and data.startswith(zstd.MAGIC):
        try:
            end = zstd.frame_length(data)
        except zstd.ZstdError as error:
            raise CpioError("damaged", f"the initial file system cannot be unpacked: {error.message}") from error
        content, rest = unzstd(data[:end], most), data[end:]
    else:
        content, rest = _unpacked_by_python(data, most)
    if len(content) > most:
        raise CpioError("too-large", f"the initial file system has more than {MAX_UNPACKED} bytes")
    return content, rest


def _unpacked_by_python(data: bytes, most: int) -> tuple[bytes, bytes]:
    unpacker = _unpacker(data)
    try:
        content = unpacker.decompress(data, most + 1)
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise CpioError("damaged", f"the initial file system cannot be unpacked: {error}") from error
    if len(content) <= most and not unpacker.eof:
        raise CpioError("damaged", "the initial file system is cut off")
    return content, unpacker.unused_data


def _unpacker(data: bytes) -> _Decompressor:
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31)
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ)
    if data.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    name = next((name for magic, name in _OTHERS.items() if data.startswith(magic)), "")
    hint = "Pack it with gzip or xz, or look at it unpacked."
    if name:
        raise CpioError(
            "other-packing", f"the initial file system is packed with {name}, which is not read here", "", hint
        )
    raise CpioError("not-cpio", "the initial file system is no archive that the kernel reads", "", hint)


def _archive(data: bytes, unpacked: Unpacked) -> bytes:
    """Read one bare archive; what is behind it."""
    place = 0
    for _ in range(MAX_ENTRIES):
        if data[place : place + 6] not in _MAGICS:
            raise CpioError("damaged", f"no entry of an archive at byte {place}")
        # int() alone would take signs and blanks, and a negative size would lead backwards.
        if _NUMBERS.match(data, place + 6) is None:
            raise CpioError("damaged", f"the entry at byte {place} has no numbers where they belong")
        mode, size, named = (int(data[place + at : place + at + 8], 16) for at in (14, 54, 94))
        name, start = _name(data, place + _HEADER, named)
        end = start + size
        if end > len(data):
            raise CpioError("damaged", f"{name} is cut off")
        place = end + -end % 4
        if name == _TRAILER:
            return data[place:]
        unpacked.put(f"/{name.removeprefix('./').strip('/')}", mode & _KIND, data[start : min(end, start + HELD)])
    raise CpioError("too-large", f"the initial file system has more than {MAX_ENTRIES} entries")


def _name(data: bytes, place: int, length: int) -> tuple[str, int]:
    """The name of an entry, and where its content begins."""
    end = place + length
    if not 0 < length <= MAX_NAME or end > len(data):
        raise CpioError("damaged", f"the entry at byte {place - _HEADER} has no name")
    return data[place : end - 1].decode("utf-8", "replace"), end + -end % 4
