"""PE/COFF images as UEFI firmware loads them (Microsoft PE format; UEFI 2.10 §2.1).

Only what decides a measurement is read: the headers, the section table, the place of the checksum and of the certificate
table. An image that two readers could understand in two ways is refused, because its prediction would be worth nothing:

* every section lies in the file, behind the headers, before the certificate table, and none overlaps another;
* the certificate table is the end of the file, as Authenticode wants it;
* names are not repeated where a boot stub looks sections up by name (`section` refuses those).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import ImageError

MAX_IMAGE: Final = 1024 * 1024 * 1024
MAX_SECTIONS: Final = 96
# A section may claim more memory than it has bytes; the rest is zeros that a claim would make us allocate.
MAX_FILLING: Final = 1024 * 1024
_DIRECTORY_SECURITY: Final = 4
_LAYOUTS: Final = {0x10B: (92, 28, 4), 0x20B: (108, 24, 8)}  # magic → offsets of directory count, ImageBase; its size


@dataclass(frozen=True, slots=True)
class Section:
    """One row of the section table."""

    name: str
    virtual_size: int
    virtual_address: int
    raw_size: int
    raw_offset: int
    characteristics: int

    @property
    def raw_end(self) -> int:
        """Where its bytes end in the file."""
        return self.raw_offset + self.raw_size


@dataclass(frozen=True, slots=True)
class PeImage:
    """An image and where its parts are."""

    data: bytes
    machine: int
    optional_offset: int
    image_base: int
    section_alignment: int
    file_alignment: int
    headers_size: int
    table_offset: int
    checksum_offset: int
    security_offset: int
    certificates: tuple[int, int]
    sections: tuple[Section, ...]

    def section(self, name: str) -> bytes | None:
        """What a section holds in memory: its bytes up to its virtual size, then zeros; None when there is none."""
        rows = [row for row in self.sections if row.name == name]
        if len(rows) > 1:
            raise ImageError(
                "repeated-section",
                f"the image has {len(rows)} sections {name}",
                hint="Which of them counts depends on the boot stub. Build the image with one.",
            )
        return self._content(rows[0]) if rows else None

    def _content(self, row: Section) -> bytes:
        if row.virtual_size - row.raw_size > MAX_FILLING:
            raise ImageError(
                "too-large", f"section {row.name!r} claims {row.virtual_size} bytes and has {row.raw_size}"
            )
        return self.data[row.raw_offset : row.raw_offset + min(row.raw_size, row.virtual_size)].ljust(
            row.virtual_size, b"\0"
        )


def parse_pe(data: bytes) -> PeImage:
    """Read an image; raises ImageError."""
    if len(data) > MAX_IMAGE:
        raise ImageError("too-large", f"an image has at most {MAX_IMAGE} bytes, not {len(data)}")
    if data[:2] != b"MZ":
        raise ImageError("not-pe", "the file does not begin as a PE image does (MZ)")
    (coff,) = _unpack(data, "<I", 0x3C, "the offset of the PE header")
    if data[coff : coff + 4] != b"PE\0\0":
        raise ImageError("not-pe", "the file has no PE signature where its header says")
    machine, count, optional_size = _unpack(data, "<HH12xH", coff + 4, "the COFF header")
    optional = coff + 24
    (magic,) = _unpack(data, "<H", optional, "the optional header")
    if magic not in _LAYOUTS:
        raise ImageError("not-pe", f"the optional header has the unknown magic {magic:#x}")
    directories, base_at, base_size = _LAYOUTS[magic]
    if optional_size < directories + 4 + 8 * (_DIRECTORY_SECURITY + 1):
        raise ImageError(
            "no-security-directory", "the image has no entry for a certificate table: firmware loads none such"
        )
    (entries,) = _unpack(data, "<I", optional + directories, "the number of directories")
    # A count that the header has no room for would take section headers for directories.
    if not _DIRECTORY_SECURITY < entries <= (optional_size - directories - 4) // 8:
        raise ImageError("no-security-directory", f"the image announces {entries} directories in {optional_size} bytes")
    section_alignment, file_alignment = _unpack(data, "<II", optional + 32, "the alignments")
    (headers_size,) = _unpack(data, "<I", optional + 60, "the size of the headers")
    security = optional + directories + 4 + 8 * _DIRECTORY_SECURITY
    offset, size = _unpack(data, "<II", security, "the certificate directory")
    table = optional + optional_size
    sections = _sections(data, table, count)
    _laid_out(data, sections, table, headers_size, (offset, size))
    return PeImage(
        data=data,
        machine=machine,
        optional_offset=optional,
        image_base=int.from_bytes(data[optional + base_at : optional + base_at + base_size], "little"),
        section_alignment=section_alignment,
        file_alignment=file_alignment,
        headers_size=headers_size,
        table_offset=table,
        checksum_offset=optional + 64,
        security_offset=security,
        certificates=(offset, size) if size else (len(data), 0),
        sections=sections,
    )


def _unpack(data: bytes, layout: str, offset: int, what: str) -> tuple[int, ...]:
    if offset + struct.calcsize(layout) > len(data):
        raise ImageError("cut-off", f"the image ends before {what}")
    return struct.unpack_from(layout, data, offset)


def _sections(data: bytes, table: int, count: int) -> tuple[Section, ...]:
    if count > MAX_SECTIONS:
        raise ImageError("too-many-sections", f"an image has at most {MAX_SECTIONS} sections, not {count}")
    sections = []
    for number in range(count):
        at = table + 40 * number
        size, address, raw_size, raw_offset, flags = _unpack(data, "<8xIIII12xI", at, f"section {number}")
        name = data[at : at + 8].rstrip(b"\0").decode("latin-1")
        sections.append(Section(name, size, address, raw_size, raw_offset if raw_size else 0, flags))
    return tuple(sections)


def _laid_out(
    data: bytes, sections: tuple[Section, ...], table: int, headers_size: int, certificates: tuple[int, int]
) -> None:
    """Refuse sections and certificates that run into each other or out of the file."""
    offset, size = certificates
    # Bytes behind the table would be in no hash: anybody could add them to a signed image.
    if size and offset + size != len(data):
        raise ImageError("bad-certificates", "the certificate table is not the end of the file")
    end = offset if size else len(data)
    if not table + 40 * len(sections) <= headers_size <= end:
        raise ImageError(
            "bad-layout", f"headers of {headers_size} bytes do not hold the section table, or leave the file"
        )
    floor = headers_size
    for row in sorted((row for row in sections if row.raw_size), key=lambda row: row.raw_offset):
        # Overlapping bytes are hashed twice by one reader and once by another.
        if row.raw_offset < floor:
            raise ImageError("bad-layout", f"section {row.name!r} overlaps what is before it in the file")
        if row.raw_end > end:
            raise ImageError("cut-off", f"section {row.name!r} runs out of the image")
        floor = row.raw_end
