"""The schema of `state.db` and the way forward to it.

A numbered step takes a file from the version before it to its own; the file's `user_version` says where it stands. All steps
that are missing run in one transaction, so a file is at one version or at another and never between. A file from a newer
version is refused untouched. `application_id` marks the file as a store, so that another program's database is not taken
for one. The first step is the baseline: a new store is an empty file that was migrated.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final
from zlib import crc32

from fastness.apiserver.store.errors import NewerSchema, NotAStore, StoreDamaged

APPLICATION_ID: Final = 0x46737453

Step = Callable[[sqlite3.Connection], None]


def baseline(connection: sqlite3.Connection) -> None:
    """Version 1: facts about the store, and the journal of changes."""
    connection.execute(
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE journal (revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, grp TEXT NOT NULL, plural TEXT NOT NULL,"
        " namespace TEXT NOT NULL, name TEXT NOT NULL, created INTEGER NOT NULL, previous INTEGER NOT NULL,"
        " flags INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL) STRICT"
    )


def authentication(connection: sqlite3.Connection) -> None:
    """Version 2: a tag for each row and a head for each batch; empty until the state is migrated with its vault key."""
    connection.execute("ALTER TABLE journal ADD COLUMN mac BLOB NOT NULL DEFAULT x''")
    connection.execute("ALTER TABLE journal ADD COLUMN head BLOB NOT NULL DEFAULT x''")


MIGRATIONS: Final[tuple[Step, ...]] = (baseline, authentication)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a file of ours; raises NotAStore."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # SQLite's own mark for such a purpose (sqlite.org/pragma.html, application_id): without it any database with two fitting
    # tables would be taken for a state.
    if application != APPLICATION_ID or version < 1:
        raise NotAStore("the file is a SQLite database, but not a store")
    return int(version)


def require_known(version: int, steps: Sequence[Step] = MIGRATIONS) -> None:
    """Refuse a file of a later version; raises NewerSchema."""
    # Refused untouched: a newer version may keep something where this one would write.
    if version > len(steps):
        raise NewerSchema(f"the file has schema version {version}; this version knows up to {len(steps)}")


def migrate(connection: sqlite3.Connection, version: int, steps: Sequence[Step] = MIGRATIONS) -> int:
    """Run the missing steps in one transaction; how many ran. Raises NewerSchema."""
    require_known(version, steps)
    missing = steps[version:]
    if not missing:
        return 0
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in missing:
            step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return len(missing)


def write_meta(connection: sqlite3.Connection, facts: dict[str, str]) -> None:
    """Set facts, each with its checksum, inside the caller's transaction."""
    connection.executemany(
        "INSERT INTO meta (key, value, crc) VALUES (?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc",
        [(key, value, _sum(key, value)) for key, value in facts.items()],
    )


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """All facts; raises StoreDamaged when one does not match its checksum."""
    facts: dict[str, str] = {}
    for key, value, crc in connection.execute("SELECT key, value, crc FROM meta"):
        if crc != _sum(key, value):
            raise StoreDamaged(f"the fact {key!r} does not match its checksum")
        facts[key] = value
    return facts


def _sum(key: str, value: str) -> int:
    return crc32(f"{key}\0{value}".encode("utf-8", "surrogatepass"))
