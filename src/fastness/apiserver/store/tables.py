"""What is in a `state.db`, read and written over a connection that the caller owns: facts, rows, the head.

Used by the running store (`database`) and by whatever works on a file that nobody has open (`copies`, `restore`, `offline`).
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.apiserver.store.errors import NotMigrated, SealBroken, StoreDamaged, StoreForged, translate
from fastness.apiserver.store.journal import COLUMNS, DELETED, SEALED, Authentic, Row
from fastness.apiserver.store.ledger import Ledger, LedgerRow, Stated
from fastness.apiserver.store.migrations import read_meta, write_meta
from fastness.apiserver.store.records import Key
from fastness.apiserver.store.seal import Cipher, unseal
from fastness.crypto.digests import sha256
from fastness.crypto.store_mac import Macs

Kinds = frozenset[tuple[str, str]]

IDENTITY: Final = "identity/"
_HEAD: Final = "head"
_SEALED: Final = "sealed"
_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM journal ORDER BY revision"  # noqa: S608 - our own column names
_SELECT_ABOVE: Final = _SELECT.replace("ORDER BY", "WHERE revision > ? ORDER BY") + " LIMIT ?"
_NEWEST: Final = (
    "SELECT flags, body FROM journal WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?"
    " ORDER BY revision DESC LIMIT 1"
)
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Facts:
    """What `meta` says: the store's id, its immutable identity, where the log begins, the least revision, which kinds are sealed
    without exception, the head at the last housekeeping (empty: rows are not authenticated), and the digest of all but that."""

    store: str
    identity: dict[str, str]
    compacted: int
    floor: int
    sealed: Kinds
    head: bytes
    digest: bytes


def facts_of(connection: sqlite3.Connection) -> Facts:
    """The facts in a file's `meta`; raises StoreDamaged when one is missing or wrong."""
    meta = read_meta(connection)
    head = meta.pop(_HEAD, "")
    try:
        store, compacted, floor = meta["store"], int(meta["compacted"]), int(meta["floor"])
        sealed = frozenset((str(group), str(plural)) for group, plural in json.loads(meta.get(_SEALED, "[]")))
        raw = bytes.fromhex(head)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreDamaged(f"a fact is missing or wrong: {error}") from error
    identity = {key.removeprefix(IDENTITY): value for key, value in meta.items() if key.startswith(IDENTITY)}
    digest = sha256(json.dumps(meta, sort_keys=True).encode()).value
    return Facts(store, identity, compacted, floor, sealed, raw, digest)


def write_head(connection: sqlite3.Connection, ledger: Ledger, sealed: Kinds | None = None) -> bytes:
    """Put the head of a ledger into `meta`, with the kinds that are sealed from now on; the digest of the facts.

    Inside the caller's transaction, after every other change to `meta`.
    """
    if sealed is not None:
        write_meta(connection, {_SEALED: json.dumps(sorted(sealed))})
    digest = facts_of(connection).digest
    write_meta(connection, {_HEAD: ledger.head(digest).hex()})
    return digest


def gather_heads(connection: sqlite3.Connection, ledger: Ledger) -> None:
    """Leave the newest head alone, in `meta`: a file with older ones could be cut at one of them."""
    # Rows up to the last housekeeping had their heads taken away by it: only newer ones need to be rewritten.
    since = Stated(facts_of(connection).head).last
    with transaction(connection):
        connection.execute("UPDATE journal SET head = x'' WHERE revision > ? AND length(head) > 0", (since,))
        write_head(connection, ledger)


def authentic_of(facts: Facts, macs: Macs | None) -> Authentic | None:
    """How to check the rows of a file; None for a store without a vault. Raises NotMigrated, StoreForged, SealBroken."""
    if facts.head:
        if macs is None:
            raise SealBroken("the rows of the store are authenticated and no vault key was given")
        return Authentic(macs, facts.sealed)
    if macs is not None:
        raise not_authenticated(macs)
    return None


def not_authenticated(macs: Macs) -> NotMigrated | StoreForged:
    """Why a file without tags is refused to the holder of a vault key."""
    if macs.required:
        # Otherwise whoever takes all tags away would be back where a checksum was the only guard.
        return StoreForged("the rows carry no tags, and the vault key says that this store has them")
    return NotMigrated("the state is from before rows were authenticated")


def ledger_of(authentic: Authentic, facts: Facts) -> Ledger:
    """The ledger of the rows that `authentic` followed, if the newest head is about them; raises StoreForged, SealBroken."""
    head, entries = Stated(facts.head), authentic.entries
    if entries and entries[-1].revision > head.last:
        # The head in `meta` is of the last housekeeping; rows that came since bring their own, and the newest is the one that
        # must fit.
        head = Stated(authentic.head)
    return head.confirm(entries, authentic.macs, facts.digest)


def rows_of(connection: sqlite3.Connection) -> Iterator[Row]:
    """All rows of a file in order of revision."""
    return (Row(*values) for values in connection.execute(_SELECT))


def rows_above(connection: sqlite3.Connection, after: int, limit: int) -> list[Row]:
    """Some rows above a revision, in order."""
    return [Row(*values) for values in connection.execute(_SELECT_ABOVE, (after, limit))]


def body_of(connection: sqlite3.Connection, key: Key, cipher: Cipher | None) -> bytes | None:
    """The newest body under a key, opened; None if it is deleted or never was. Raises SealBroken."""
    row = connection.execute(_NEWEST, key).fetchone()
    if row is None or row[0] & DELETED:
        return None
    return unseal(cipher, row[1], key) if row[0] & SEALED else bytes(row[1])


def rewrite_rows(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Replace what rows hold, their place stays; inside the caller's transaction."""
    connection.executemany(
        "UPDATE journal SET body = ?, flags = ?, crc = ?, mac = ? WHERE revision = ?",
        [(row.body, row.flags, row.crc, row.mac, row.revision) for row in rows],
    )


def entries_at(connection: sqlite3.Connection, revisions: Sequence[int]) -> list[LedgerRow]:
    """What the ledger needs of rows that are there."""
    entries: list[LedgerRow] = []
    for part, places in _parts(revisions):
        statement = f"SELECT revision, grp, plural, namespace, name, mac FROM journal WHERE revision IN ({places})"  # noqa: S608 - only places
        entries += [LedgerRow(revision, Key(*key), mac) for revision, *key, mac in connection.execute(statement, part)]
    return entries


def delete_rows(connection: sqlite3.Connection, revisions: Sequence[int]) -> None:
    """Delete rows by revision inside the caller's transaction."""
    for part, places in _parts(revisions):
        connection.execute(f"DELETE FROM journal WHERE revision IN ({places})", part)  # noqa: S608 - only places


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection in autocommit that never creates a file."""
    quoted = path.resolve().as_uri()
    # mode=rw without c: SQLite would make an empty database where the state is missing, and we would start as if it was new.
    return sqlite3.connect(
        f"{quoted}?mode={mode}", uri=True, isolation_level=None, cached_statements=300, check_same_thread=False
    )


def check_structure(connection: sqlite3.Connection) -> None:
    """Ask SQLite whether its pages hold together; raises StoreDamaged."""
    try:
        # Structure only, and the first three problems of it: content has checksums and tags of its own.
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"the file is damaged: {error}") from error
    if problems != ["ok"]:
        raise StoreDamaged(f"the file is damaged: {'; '.join(map(str, problems))}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements inside, or none."""
    # IMMEDIATE takes the write lock now; a deferred transaction would fail with SQLITE_BUSY in the middle, at its first write.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Errors of SQLite and of the operating system inside become the store's own."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translate(error, doing) from error


def _parts(revisions: Sequence[int]) -> Iterator[tuple[Sequence[int], str]]:
    for start in range(0, len(revisions), _AT_ONCE):
        part = revisions[start : start + _AT_ONCE]
        yield part, ", ".join("?" * len(part))
