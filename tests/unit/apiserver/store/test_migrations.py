"""Numbered steps forward, in one transaction, and never backward. The databases are in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from fastness.apiserver.store.errors import NewerSchema, NotAStore, StoreDamaged
from fastness.apiserver.store.migrations import MIGRATIONS, baseline, migrate, read_meta, version_of, write_meta


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def add_note(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE journal ADD COLUMN note TEXT NOT NULL DEFAULT ''")


def break_down(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE half_done (x TEXT)")
    raise RuntimeError("the step fails")


def test_an_empty_file_becomes_the_present_version(connection: sqlite3.Connection) -> None:
    assert migrate(connection, 0) == len(MIGRATIONS)
    assert version_of(connection) == len(MIGRATIONS)
    assert migrate(connection, version_of(connection)) == 0


def test_an_old_file_gets_only_the_missing_steps_and_keeps_its_rows(connection: sqlite3.Connection) -> None:
    migrate(connection, 0, (baseline,))
    connection.execute("INSERT INTO journal VALUES (2, 0, 'g', 'p', 'n', 'a', 2, 0, 0, x'00', 1)")
    assert migrate(connection, version_of(connection), (baseline, add_note)) == 1
    assert version_of(connection) == 2
    assert connection.execute("SELECT revision, note FROM journal").fetchall() == [(2, "")]


def test_a_failing_step_leaves_the_old_version(connection: sqlite3.Connection) -> None:
    migrate(connection, 0, (baseline,))
    with pytest.raises(RuntimeError):
        migrate(connection, 1, (baseline, add_note, break_down))
    assert version_of(connection) == 1
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "half_done" not in tables
    assert "note" not in {column[1] for column in connection.execute("PRAGMA table_info(journal)")}


def test_a_newer_file_is_refused(connection: sqlite3.Connection) -> None:
    migrate(connection, 0, (baseline, add_note))
    with pytest.raises(NewerSchema, match="version 2"):
        migrate(connection, version_of(connection), (baseline,))


def test_a_foreign_database_is_not_ours(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.execute("PRAGMA user_version = 1")
    with pytest.raises(NotAStore):
        version_of(connection)


def test_facts_are_replaced_and_checked(connection: sqlite3.Connection) -> None:
    migrate(connection, 0)
    write_meta(connection, {"a": "1", "b": "2"})
    write_meta(connection, {"a": "3"})
    assert read_meta(connection) == {"a": "3", "b": "2"}
    connection.execute("UPDATE meta SET value = '4' WHERE key = 'a'")
    with pytest.raises(StoreDamaged, match="'a'"):
        read_meta(connection)
