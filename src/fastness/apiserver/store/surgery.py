"""Looking at records that cannot be read, and taking one away, without an API server.

An object that no reader can decode cannot be deleted through the API either: finalizers, admission and watchers all need its
content. `find` reads a store that may be in use; `remove_unreadable` needs it for itself and takes nothing away but what is set
aside, because anything else has a path of its own, with its finalizers and its entry in the record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from fastness.apiserver.store import files, offline
from fastness.apiserver.store.errors import NotSetAside
from fastness.apiserver.store.journal import replay
from fastness.apiserver.store.records import Key
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.set_aside import Aside, Judge, set_aside
from fastness.apiserver.store.tables import authentic_of, connect, facts_of, rows_of, translated
from fastness.crypto.store_mac import Macs


def find(directory: Path, judge: Judge, cipher: Cipher | None, macs: Macs | None) -> Mapping[Key, Aside]:
    """What a store would set aside, also while it is in use; raises StoreError."""
    database = directory / files.DATABASE
    files.require_database(database)
    with translated(f"cannot read {database.name}"), contextlib.closing(connect(database, "ro")) as connection:
        connection.execute("BEGIN")  # one moment for both reads
        facts = facts_of(connection)
        state = replay(rows_of(connection), facts.compacted, cipher, authentic_of(facts, macs))
        return set_aside(state, judge)[0]


def remove_unreadable(directory: Path, key: Key, judge: Judge, cipher: Cipher | None, macs: Macs | None) -> Aside:
    """Take away a record that is set aside; raises NotSetAside, StoreInUse and other StoreErrors."""
    aside = find(directory, judge, cipher, macs).get(key)
    if aside is None:
        raise NotSetAside(f"{'/'.join(filter(None, key))} is not set aside: it can be read, or is not there")
    offline.remove(directory, key, macs)
    return aside
