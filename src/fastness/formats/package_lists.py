"""Which packages an image has: the databases of rpm and dpkg, read without their programs.

    packages(path, content)     every package of the database at a path of `DATABASES`; raises PackageListError

rpm keeps an SQLite table of header blobs: two lengths, an index of 16 bytes for each tag, then the values (rpm's manual, "RPM v3
header"). dpkg keeps paragraphs of text. Both come from an image that anybody may have built: everything is bounded, a table that
is no table is refused, and a query that does not end is ended.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from fastness.formats.errors import FormatError

RPM: Final = tuple(
    f"{directory}/rpmdb.sqlite" for directory in ("usr/lib/sysimage/rpm", "usr/share/rpm", "var/lib/rpm")
)
DPKG: Final = ("var/lib/dpkg/status", "usr/lib/dpkg-db/status")
DATABASES: Final = (*RPM, *DPKG)
MOST_PACKAGES: Final = 20_000
MOST_BYTES: Final = 256 * 1024 * 1024
_NAME, _VERSION, _RELEASE, _ARCHITECTURE, _EPOCH = 1000, 1001, 1002, 1022, 1003
_INT32, _STRING = 4, 6
_ENTRY: Final = struct.Struct(">IIiI")
_LONGEST: Final = 512
_MOST_STEPS: Final = 2000
_STEP: Final = 10_000


class PackageListError(FormatError):
    """A database of packages cannot be read."""


class Package(NamedTuple):
    """One package, as its manager names it."""

    name: str
    version: str
    architecture: str


def packages(path: str, content: bytes) -> tuple[Package, ...]:
    """Every package of a database, by name; raises PackageListError."""
    if len(content) > MOST_BYTES:
        raise _bad(f"it has more than {MOST_BYTES} bytes")
    listed = list(_dpkg(content) if path in DPKG else _rpm(content))
    if len(listed) > MOST_PACKAGES:
        raise _bad(f"it has more than {MOST_PACKAGES} packages")
    return tuple(sorted(listed))


def _bad(text: str) -> PackageListError:
    why = f"the database of packages cannot be read: {text}"
    return PackageListError(
        "package-list", why, hint="List them with the package manager of the image, in a container of it."
    )


def _dpkg(content: bytes) -> Iterator[Package]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _bad("it is no text") from error
    for paragraph in text.split("\n\n")[: 2 * MOST_PACKAGES]:
        fields = {
            name: value.strip()[:_LONGEST]
            for name, colon, value in (line.partition(":") for line in paragraph.split("\n"))
            if colon and name[:1] not in (" ", "\t")
        }  # fmt: skip
        if fields.get("Package") and fields.get("Status", "").endswith(" installed"):
            yield Package(fields["Package"], fields.get("Version", ""), fields.get("Architecture", ""))


def _rpm(content: bytes) -> Iterator[Package]:
    connection = sqlite3.connect(":memory:")
    steps = iter(range(_MOST_STEPS))
    try:
        connection.set_progress_handler(lambda: next(steps, None) is None, _STEP)
        # The journal in the header would make SQLite look for a second file: there is only this one.
        connection.deserialize(content[:18] + b"\x01\x01" + content[20:])
        connection.execute("PRAGMA trusted_schema=OFF")
        kinds = connection.execute("SELECT type FROM sqlite_master WHERE name='Packages'").fetchall()
        if kinds != [("table",)]:
            raise _bad("it has no table of packages")
        for (blob,) in connection.execute("SELECT blob FROM Packages LIMIT ?", (MOST_PACKAGES + 1,)):
            if not isinstance(blob, bytes):
                raise _bad("a header is no blob")
            yield _header(blob)
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        raise _bad(str(error)) from error
    finally:
        connection.close()


def _header(blob: bytes) -> Package:
    """Name, version and architecture of one header."""
    if len(blob) < 8:
        raise _bad("a header is cut off")
    count, size = struct.unpack_from(">II", blob)
    data = 8 + count * _ENTRY.size
    if data + size > len(blob):
        raise _bad("a header is cut off")
    values: dict[int, str] = {}
    for number in range(count):
        tag, kind, offset, _ = _ENTRY.unpack_from(blob, 8 + number * _ENTRY.size)
        if tag in (_NAME, _VERSION, _RELEASE, _ARCHITECTURE) and kind == _STRING and 0 <= offset < size:
            raw = blob[data + offset : data + min(offset + _LONGEST, size)]
            values[tag] = raw.partition(b"\0")[0].decode("utf-8", "replace")
        elif tag == _EPOCH and kind == _INT32 and 0 <= offset <= size - 4:
            values[tag] = str(struct.unpack_from(">I", blob, data + offset)[0])
    if not values.get(_NAME):
        raise _bad("a header names no package")
    epoch = f"{values[_EPOCH]}:" if values.get(_EPOCH, "0") != "0" else ""
    version = f"{epoch}{values.get(_VERSION, '')}-{values.get(_RELEASE, '')}"
    return Package(values.get(_NAME, ""), version, values.get(_ARCHITECTURE, ""))
