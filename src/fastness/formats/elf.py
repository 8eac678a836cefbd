"""Programs and libraries of Linux (ELF, System V ABI, 64 bits): for which processor, and what they need beside themselves.

Only what decides whether a program can start is read: the head, the segments, and the names in the dynamic section. A file for
another processor is read as far as that it can be named.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import FormatError

MAX_SEGMENTS: Final = 256
MAX_DYNAMIC: Final = 65_536
MAX_NAMES: Final = 256
MAX_NAME: Final = 4096
MACHINES: Final = {
    0x03: "i386",
    0x28: "arm",
    0x3E: "x86-64",
    0xB7: "aarch64",
    0xF3: "riscv64",
    0x15: "ppc64",
    0x16: "s390x",
}
X86_64: Final = "x86-64"
_MAGIC: Final = b"\x7fELF"
_WIDE, _LITTLE = 2, 1
_HEAD: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_LOAD, _DYNAMIC_SEGMENT, _INTERPRETER = 1, 2, 3
_END, _NEEDED, _STRINGS, _STRINGS_SIZE = 0, 1, 5, 10
_STARTS: Final = (2, 3)


class ElfError(FormatError):
    """The bytes are no program of Linux, or a damaged one."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Give the file as it was built; it may be cut off.")


@dataclass(frozen=True, slots=True)
class Elf:
    """A program or library: its processor, who loads it (empty: nobody, it is static), and the libraries that it names."""

    machine: str
    loader: str = ""
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def parse_elf(data: bytes) -> Elf:
    """Read a program; raises ElfError."""
    if data[:4] != _MAGIC:
        raise ElfError(
            "not-elf", "it is no program of Linux (ELF)", hint="Give the program itself, not an archive or a script."
        )
    if len(data) < _HEAD.size:
        raise ElfError("cut-off", f"it has {len(data)} bytes, fewer than a head")
    number = int.from_bytes(data[18:20], "little" if data[5] == _LITTLE else "big")
    machine = MACHINES.get(number, f"processor {number}")
    if data[4] != _WIDE or data[5] != _LITTLE:
        return Elf(machine if machine != X86_64 else "x86-64 with 32 bits")
    _, kind, _, _, _, segments_at, _, _, _, size, count, *_ = _HEAD.unpack_from(data)
    if kind not in _STARTS:
        raise ElfError("not-linked", "it is an object file and cannot be started")
    if count > MAX_SEGMENTS or (count and size != _SEGMENT.size):
        raise ElfError("segments", f"it has {count} segments of {size} bytes")
    segments = [_segment(data, segments_at + index * size) for index in range(count)]
    loader = next((_text(_content(data, entry)) for entry in segments if entry.kind == _INTERPRETER), "")
    return Elf(machine, loader, tuple(_needed(data, segments)))


def _segment(data: bytes, place: int) -> _Segment:
    if place + _SEGMENT.size > len(data):
        raise ElfError("cut-off", "its table of segments lies behind its end")
    kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack_from(data, place)
    return _Segment(kind, offset, address, size)


def _content(data: bytes, segment: _Segment) -> bytes:
    if segment.offset + segment.size > len(data):
        raise ElfError("cut-off", "a segment lies behind its end")
    return data[segment.offset : segment.offset + min(segment.size, MAX_DYNAMIC * _DYNAMIC.size)]


def _needed(data: bytes, segments: list[_Segment]) -> Iterator[str]:
    """Names of libraries, in the order in which the loader takes them."""
    content = next((_content(data, entry) for entry in segments if entry.kind == _DYNAMIC_SEGMENT), b"")
    offsets: list[int] = []
    strings = size = 0
    for tag, value in _DYNAMIC.iter_unpack(content[: len(content) // _DYNAMIC.size * _DYNAMIC.size]):
        if tag == _END:
            break
        if tag == _NEEDED:
            offsets.append(value)
        strings, size = (value if tag == _STRINGS else strings), (value if tag == _STRINGS_SIZE else size)
    if len(offsets) > MAX_NAMES:
        raise ElfError("names", f"it names {len(offsets)} libraries, more than {MAX_NAMES}")
    start = _place(segments, strings) if offsets else 0
    for offset in offsets:
        if offset >= size:
            raise ElfError("names", "the name of a library lies outside of its strings")
        yield _text(data[start + offset : start + min(size, offset + MAX_NAME)])


def _place(segments: list[_Segment], address: int) -> int:
    """Where in the file an address of memory comes from."""
    for segment in segments:
        if segment.kind == _LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    raise ElfError("strings", "its strings are in no segment")


def _text(content: bytes) -> str:
    name, separator, _ = content.partition(b"\0")
    if not separator or not name or len(name) > MAX_NAME:
        raise ElfError("name", "a name in it is empty or has no end")
    return name.decode("utf-8", "replace")
