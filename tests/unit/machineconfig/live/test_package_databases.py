"""Packages of an image: real databases of rpm and dpkg, and what hostile ones are refused for."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

from fastness.formats.package_lists import Package, PackageListError
from fastness.machineconfig.live.package_databases import packages

RPM, DPKG = "var/lib/rpm/rpmdb.sqlite", "var/lib/dpkg/status"
STRING, INT32 = 6, 4


def header(*tags: tuple[int, int, bytes]) -> bytes:
    """A header as rpm stores it."""
    index, data = b"", b""
    for tag, kind, value in tags:
        index += struct.pack(">IIiI", tag, kind, len(data), 1)
        data += value
    return struct.pack(">II", len(tags), len(data)) + index + data


USBGUARD = header((1000, STRING, b"usbguard\0"), (1003, INT32, b"\0\0\0\2"), (1001, STRING, b"1\0"), (1002, STRING, b"3\0"),
                  (1022, STRING, b"noarch\0"), (63, 7, b"x" * 16))  # fmt: skip


def database(*statements: str, blobs: tuple[object, ...] = ()) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements or ("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)",):
        connection.execute(statement)
    if blobs:
        connection.executemany("INSERT INTO Packages (blob) VALUES (?)", [(blob,) for blob in blobs])
    connection.commit()
    return bytes(connection.serialize())


def test_a_database_of_rpm_names_every_package() -> None:
    plain = header(
        (1000, STRING, b"bash\0"), (1001, STRING, b"5.2\0"), (1002, STRING, b"1\0"), (1022, STRING, b"x86_64\0")
    )
    assert packages(RPM, database(blobs=(USBGUARD, plain))) == (
        Package("bash", "5.2-1", "x86_64"), Package("usbguard", "2:1-3", "noarch"),
    )  # fmt: skip


def test_what_rpm_wrote_beside_its_database_and_never_brought_in_counts(tmp_path: Path) -> None:
    place = tmp_path / "rpmdb.sqlite"
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    connection.execute("INSERT INTO Packages (blob) VALUES (?)", (USBGUARD,))
    connection.commit()
    content, ahead = place.read_bytes(), (tmp_path / "rpmdb.sqlite-wal").read_bytes()
    connection.close()
    assert [package.name for package in packages(RPM, content, ahead)] == ["usbguard"]


def test_of_dpkgs_paragraphs_those_that_are_installed_count() -> None:
    text = (
        "Package: sysstat\nStatus: install ok installed\nArchitecture: amd64\nVersion: 12\nDescription: x\n Version: no\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    assert packages(DPKG, text.encode()) == (Package("sysstat", "12", "amd64"),)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cannot be read"),
        (b"nonsense" * 100, "not a database"),
        (database("CREATE TABLE other (x)", "CREATE VIEW Packages AS SELECT 1 AS blob"), "no table of packages"),
        (database(blobs=("text",)), "no blob"),
        (database(blobs=(b"1234",)), "cut off"),
        (database(blobs=(struct.pack(">II", 2**31, 8),)), "cut off"),
        (database(blobs=(USBGUARD[:-1],)), "cut off"),
        (
            database(
                "CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB GENERATED ALWAYS AS "
                "(zeroblob(9)) VIRTUAL, x)",
                "INSERT INTO Packages (x) VALUES (1)",
            ),
            "names no package",
        ),
    ],
)
def test_what_is_no_database_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(PackageListError, match=why):
        packages(RPM, content)
