"""A file of an older version is brought forward when it is opened, and a copy of it is kept."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from fastness.apiserver.store import Store, StoreSettings
from fastness.apiserver.store.database import Database
from fastness.apiserver.store.journal import link
from fastness.apiserver.store.migrations import MIGRATIONS, version_of
from fastness.apiserver.store.tables import connect
from tests.component.apiserver.store.store_parts import put, remove

LATER = len(MIGRATIONS) + 1


def mark_every_row(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE journal ADD COLUMN mark INTEGER NOT NULL DEFAULT 7")


def refuse(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE journal")
    raise ValueError("this step does not work")


async def old_file(directory: Path) -> Path:
    store = await Store.open(directory, identity={"simulated": "true"})
    for name in ("a", "b", "c"):
        await put(store, name, name.encode())
    await remove(store, "b")
    await store.close()
    return directory / "state.db"


def version(path: Path) -> int:
    with contextlib.closing(connect(path, "ro")) as connection:
        return version_of(connection)


async def test_a_version_1_file_is_migrated_with_all_it_holds(tmp_path: Path) -> None:
    path = await old_file(tmp_path)
    before = version(path)
    database = Database.open(path, StoreSettings(), steps=(*MIGRATIONS, mark_every_row))
    facts = database.facts()
    assert facts.identity == {"simulated": "true"}
    assert len(link(database.rows(), facts.compacted).present) == 2
    database.close()
    assert (before, version(path)) == (LATER - 1, LATER)
    with contextlib.closing(connect(path, "ro")) as connection:
        assert set(connection.execute("SELECT mark FROM journal")) == {(7,)}


async def test_the_file_from_before_a_migration_is_kept(tmp_path: Path) -> None:
    path = await old_file(tmp_path)
    Database.open(path, StoreSettings(), steps=(*MIGRATIONS, mark_every_row)).close()
    backup = tmp_path / f"state.db.v{LATER - 1}"
    assert version(backup) == LATER - 1
    again = tmp_path / "again"
    again.mkdir()
    backup.rename(again / "state.db")
    store = await Store.open(again)
    assert store.count("example.dev", "things") == 2
    await store.close()


async def test_a_migration_that_fails_leaves_a_file_that_the_old_version_opens(tmp_path: Path) -> None:
    path = await old_file(tmp_path)
    with pytest.raises(ValueError, match="does not work"):
        Database.open(path, StoreSettings(), steps=(*MIGRATIONS, mark_every_row, refuse))
    store = await Store.open(tmp_path)
    assert store.count("example.dev", "things") == 2
    await store.close()
