"""The database of packages of an image: rpm's table in SQLite, in a directory that goes again, dpkg's text.

    packages(path, content)     every package of the database at a path of `DATABASES`; raises PackageListError

Anybody may have built the image: everything is bounded, a table that is no table is refused, a query that does not end is ended.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fastness.formats.package_lists import DPKG, MOST_PACKAGES, Package, bad_list, dpkg_packages, rpm_package

WRITE_AHEAD: Final = "-wal"
"""How the file is called that SQLite writes beside a database, and brings in when the last program closes it."""
MOST_BYTES: Final = 256 * 1024 * 1024
_MOST_STEPS: Final = 2000
_STEP: Final = 10_000


def packages(path: str, content: bytes, ahead: bytes = b"") -> tuple[Package, ...]:
    """Every package of a database, by name; `ahead` is what rpm wrote beside its file and did not bring in (`WRITE_AHEAD`).

    Raises PackageListError.
    """
    if len(content) + len(ahead) > MOST_BYTES:
        raise bad_list(f"it has more than {MOST_BYTES} bytes")
    listed = list(dpkg_packages(content) if path in DPKG else _rpm(content, ahead))
    if len(listed) > MOST_PACKAGES:
        raise bad_list(f"it has more than {MOST_PACKAGES} packages")
    return tuple(sorted(listed))


def _rpm(content: bytes, ahead: bytes) -> Iterator[Package]:
    with tempfile.TemporaryDirectory(prefix="fastness-packages-") as place:
        database = Path(place, "rpmdb.sqlite")
        database.write_bytes(content)
        if ahead:
            Path(f"{database}{WRITE_AHEAD}").write_bytes(ahead)
        yield from _headers(database)


def _headers(database: Path) -> Iterator[Package]:
    connection = sqlite3.connect(database)
    steps = iter(range(_MOST_STEPS))
    try:
        connection.set_progress_handler(lambda: next(steps, None) is None, _STEP)
        connection.execute("PRAGMA trusted_schema=OFF")
        kinds = connection.execute("SELECT type FROM sqlite_master WHERE name='Packages'").fetchall()
        if kinds != [("table",)]:
            raise bad_list("it has no table of packages")
        for (blob,) in connection.execute("SELECT blob FROM Packages LIMIT ?", (MOST_PACKAGES + 1,)):
            if not isinstance(blob, bytes):
                raise bad_list("a header is no blob")
            yield rpm_package(blob)
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        raise bad_list(str(error)) from error
    finally:
        connection.close()
