"""A whole file, checked: structure, every checksum and tag, the chain of revisions, the head."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from fastness.apiserver.store.journal import link
from fastness.apiserver.store.ledger import Ledger
from fastness.apiserver.store.migrations import MIGRATIONS, migrate, require_known, version_of
from fastness.apiserver.store.records import Key
from fastness.apiserver.store.tables import (
    Facts,
    authentic_of,
    check_structure,
    facts_of,
    ledger_of,
    not_authenticated,
    rows_of,
)
from fastness.crypto.store_mac import Macs


@dataclass(frozen=True, slots=True)
class Verified:
    """A file that was checked whole: its facts, the revisions of live records, the newest one, and its ledger if it has tags."""

    facts: Facts
    present: dict[Key, int]
    revision: int
    ledger: Ledger | None


def verified(connection: sqlite3.Connection, macs: Macs | None) -> Verified:
    """Check structure, checksums, chain, tags and head; raises StoreDamaged, StoreForged, NotMigrated, SealBroken, NewerSchema.

    A file without tags passes without `macs` alone.
    """
    version = version_of(connection)
    require_known(version)
    check_structure(connection)
    # An older file has no tags yet. To bring it up to date would put good tags on whatever somebody wrote into it.
    if version < len(MIGRATIONS):
        if macs is not None:
            raise not_authenticated(macs)
        migrate(connection, version)
    facts = facts_of(connection)
    authentic = authentic_of(facts, macs)
    # Chain and tags in one walk over the rows: a file that changes under two walks could show each what it wants to see.
    chain = link(rows_of(connection), facts.compacted, authentic)
    ledger = ledger_of(authentic, facts) if authentic is not None else None
    return Verified(facts, chain.present, max(facts.floor, facts.compacted, chain.revision), ledger)
