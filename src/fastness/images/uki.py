"""Writing unified kernel images: a boot stub and sections, the same bytes for the same input.

    write_uki(stub, {".osrel": b"ID=…", ".cmdline": b"quiet", ".initrd": initrd, ".linux": kernel})

Sections are placed behind those of the stub, in memory on pages of their own and in the file on its alignment. No time stamp,
no symbol table, no checksum: what is measured is what was given. The kernel comes last in memory, because the stub of older
versions runs it in place and it needs room behind itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import PeImage, Section, parse_pe
from fastness.formats.evidence.pe.uki import SECTIONS

_PAGE: Final = 4096
_READ_ONLY_DATA: Final = 0x40000040
_ROW: Final = 40


def write_uki(stub: bytes, sections: Mapping[str, bytes]) -> bytes:
    """The image; raises ImageError for a stub without room, or a section that no stub knows."""
    image = parse_pe(stub)
    unknown = sorted(set(sections) - set(SECTIONS))
    taken = sorted({row.name for row in image.sections} & set(sections))
    if unknown or taken:
        raise ImageError(
            "bad-section",
            f"sections {', '.join(unknown or taken)} are {'unknown to boot stubs' if unknown else 'in the stub already'}",
            hint=f"Sections of an image are {', '.join(SECTIONS)}.",
        )
    rows, body = _placed(image, sections)
    used = max(row.raw_end for row in image.sections)
    head = bytearray(stub[:used].ljust(_up(used, image.file_alignment), b"\0"))
    _table(head, image, rows)
    return bytes(head) + b"".join(body)


def _placed(image: PeImage, sections: Mapping[str, bytes]) -> tuple[list[Section], list[bytes]]:
    address = max(row.virtual_address + row.virtual_size for row in image.sections)
    offset = _up(max(row.raw_end for row in image.sections), image.file_alignment)
    rows, body = list[Section](), list[bytes]()
    for name in sorted(sections, key=lambda name: (name == ".linux", SECTIONS.index(name))):
        content = sections[name]
        address = _up(address, max(_PAGE, image.section_alignment))
        raw = content.ljust(_up(len(content), image.file_alignment), b"\0")
        rows.append(Section(name, len(content), address, len(raw), offset, _READ_ONLY_DATA))
        body.append(raw)
        address, offset = address + len(content), offset + len(raw)
    return rows, body


def _table(head: bytearray, image: PeImage, rows: list[Section]) -> None:
    at = image.table_offset + _ROW * len(image.sections)
    if at + _ROW * len(rows) > image.headers_size:
        raise ImageError(
            "no-room",
            "the headers of the boot stub have no room for more sections",
            hint="Use another build of the stub.",
        )
    for row in rows:
        name = row.name.encode("ascii").ljust(8, b"\0")
        struct.pack_into(
            "<8sIIII12xI", head, at,
            name, row.virtual_size, row.virtual_address, row.raw_size, row.raw_offset, row.characteristics,
        )  # fmt: skip
        at += _ROW
    coff = image.optional_offset - 20
    last = max(rows, key=lambda row: row.virtual_address)
    struct.pack_into("<HIII", head, coff + 2, len(image.sections) + len(rows), 0, 0, 0)
    struct.pack_into("<I", head, image.optional_offset + 56, _up(last.virtual_address + last.virtual_size, _PAGE))
    struct.pack_into("<I", head, image.checksum_offset, 0)


def _up(value: int, step: int) -> int:
    return value + -value % step
