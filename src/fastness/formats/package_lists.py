"""Which packages an image has: a header of rpm's database, and the text of dpkg's.

rpm keeps header blobs: two lengths, an index of 16 bytes for each tag, then the values (rpm's manual, "RPM v3 header"). dpkg
keeps paragraphs of text. Both come from an image that anybody may have built. `machineconfig/live/package_databases` reads the
table that rpm's headers are in.
"""

from __future__ import annotations

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
_NAME, _VERSION, _RELEASE, _ARCHITECTURE, _EPOCH = 1000, 1001, 1002, 1022, 1003
_INT32, _STRING = 4, 6
_ENTRY: Final = struct.Struct(">IIiI")
_LONGEST: Final = 512


class PackageListError(FormatError):
    """A database of packages cannot be read."""


class Package(NamedTuple):
    """One package, as its manager names it."""

    name: str
    version: str
    architecture: str


def bad_list(text: str) -> PackageListError:
    """The error for a database that cannot be read."""
    why = f"the database of packages cannot be read: {text}"
    return PackageListError(
        "package-list", why, hint="List them with the package manager of the image, in a container of it."
    )


def dpkg_packages(content: bytes) -> Iterator[Package]:
    """The packages that dpkg calls installed; raises PackageListError."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise bad_list("it is no text") from error
    for paragraph in text.split("\n\n")[: 2 * MOST_PACKAGES]:
        fields = {
            name: value.strip()[:_LONGEST]
            for name, colon, value in (line.partition(":") for line in paragraph.split("\n"))
            if colon and name[:1] not in (" ", "\t")
        }  # fmt: skip
        if fields.get("Package") and fields.get("Status", "").endswith(" installed"):
            yield Package(fields["Package"], fields.get("Version", ""), fields.get("Architecture", ""))


def rpm_package(blob: bytes) -> Package:
    """Name, version and architecture of one header; raises PackageListError."""
    if len(blob) < 8:
        raise bad_list("a header is cut off")
    count, size = struct.unpack_from(">II", blob)
    data = 8 + count * _ENTRY.size
    if data + size > len(blob):
        raise bad_list("a header is cut off")
    values: dict[int, str] = {}
    for number in range(count):
        tag, kind, offset, _ = _ENTRY.unpack_from(blob, 8 + number * _ENTRY.size)
        if tag in (_NAME, _VERSION, _RELEASE, _ARCHITECTURE) and kind == _STRING and 0 <= offset < size:
            raw = blob[data + offset : data + min(offset + _LONGEST, size)]
            values[tag] = raw.partition(b"\0")[0].decode("utf-8", "replace")
        elif tag == _EPOCH and kind == _INT32 and 0 <= offset <= size - 4:
            values[tag] = str(struct.unpack_from(">I", blob, data + offset)[0])
    if not values.get(_NAME):
        raise bad_list("a header names no package")
    epoch = f"{values[_EPOCH]}:" if values.get(_EPOCH, "0") != "0" else ""
    version = f"{epoch}{values.get(_VERSION, '')}-{values.get(_RELEASE, '')}"
    return Package(values.get(_NAME, ""), version, values.get(_ARCHITECTURE, ""))
