"""Programs of Linux as small as they can be: a head, segments, and the names of what they need. Nothing in them can run."""

from __future__ import annotations

import struct
from collections.abc import Sequence

X86_64, AARCH64 = 0x3E, 0xB7
SHIFT = 0x400000  # between the places of a file and the addresses of its memory, so that nobody takes one for the other


def elf(needed: Sequence[str] = (), loader: str = "", *, machine: int = X86_64, kind: int = 2) -> bytes:
    """A program; with `needed` or a `loader` it is a dynamic one."""
    count = 1 + bool(loader) + bool(needed)
    place = 64 + 56 * count
    named = loader.encode() + b"\0" if loader else b""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    strings_at = place + len(named)
    entries = [(1, strings.index(name.encode())) for name in needed]
    entries += [(5, SHIFT + strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries) if needed else b""
    body = named + strings + dynamic
    size = place + len(body)
    segments = [_segment(1, 0, size)]
    if loader:
        segments.append(_segment(3, place, len(named)))
    if needed:
        segments.append(_segment(2, strings_at + len(strings), len(dynamic)))
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, kind, machine, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    return head + b"".join(segments) + body


def _segment(kind: int, place: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, 5, place, SHIFT + place, 0, size, size, 8)
