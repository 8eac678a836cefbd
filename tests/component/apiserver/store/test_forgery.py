"""What a thief of a disk or of a backup can do to the file: everything but compute a tag. Each edit has its checksum right.

The forger recomputes CRCs as the store does, keeps rows from earlier backups of the same cluster, and has no vault key.
"""

# ruff: noqa: ASYNC240 - a test looks at files between awaits

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fastness.apiserver.store import (
    Key,
    NotMigrated,
    SealBroken,
    Store,
    StoreDamaged,
    StoreForged,
    StoreSettings,
    restore,
)
from fastness.apiserver.store.journal import COLUMNS, SEALED, Row, checksum
from fastness.apiserver.store.migrations import write_meta
from fastness.apiserver.store.offline import authenticate, remove
from fastness.apiserver.store.records import SEALED_KINDS
from fastness.apiserver.store.restore import verify
from fastness.crypto.store_mac import Macs
from tests.component.apiserver.store.store_parts import MACS, Faults, ToyCipher, key, macs_of, put, reopened
from tests.component.apiserver.store.store_parts import remove as delete

NODE = key("nodes-may-nothing", "", "clusterrolebindings", "rbac.authorization.k8s.io")
SECRET = Key("", "secrets", "default", "password")

Edit = Callable[[sqlite3.Connection], None]


async def opened(directory: Path, macs: Macs | None = MACS, **options: object) -> Store:
    return await Store.open(directory, cipher=ToyCipher(), macs=macs, **options)  # type: ignore[arg-type]


@pytest.fixture(params=["log", "compacted"])
async def backup(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A backup of a small cluster; its rows are entries of the log, or all below it. `older.db` is one from before a change."""
    store = await opened(tmp_path / "source", identity={"simulated": "true"})
    await put(store, NODE, b'{"role":"nothing"}')
    await put(store, SECRET, b"canary-77")
    await put(store, "quarantined", b"barred")
    await put(store, "bystander", b"some")
    if request.param == "compacted":
        await store.compact()
    await store.backup(tmp_path / "older.db")
    await put(store, NODE, b'{"role":"still nothing"}')
    await put(store, "newest", b"n")
    if request.param == "compacted":
        await store.compact()
    await store.backup(tmp_path / "backup.db")
    await store.close()
    return tmp_path / "backup.db"


def edit(path: Path, change: Edit) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        change(connection)
        connection.commit()


def row_of(path: Path, name: str) -> Row:
    """The newest row of an object."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        statement = f"SELECT {', '.join(COLUMNS)} FROM journal WHERE name = ? ORDER BY revision DESC"
        return Row(*connection.execute(statement, (name,)).fetchone())


def written(row: Row, **columns: object) -> Edit:
    """Put a row in place of the one with its revision, with a checksum that fits."""
    fresh = row._replace(**columns)  # type: ignore[arg-type]
    fresh = fresh._replace(crc=checksum(fresh[:9], fresh.body))
    places = ", ".join("?" * len(COLUMNS))
    statement = f"INSERT OR REPLACE INTO journal ({', '.join(COLUMNS)}) VALUES ({places})"

    def change(connection: sqlite3.Connection) -> None:
        connection.execute(statement, fresh)

    return change


def dropped(name: str) -> Edit:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM journal WHERE name = ?", (name,))

    return change


async def refusal_everywhere(backup: Path, tmp_path: Path) -> str:
    """The same answer from `backup verify`, from `restore`, which touches nothing, and from opening the file in its place."""
    with pytest.raises((StoreForged, StoreDamaged)) as refused:
        verify(backup, MACS)
    with pytest.raises(type(refused.value)) as again:
        restore(backup, tmp_path / "target", macs=MACS)
    assert again.value.message == refused.value.message
    assert not (tmp_path / "target" / "state.db").exists()
    (tmp_path / "placed").mkdir()
    shutil.copyfile(backup, tmp_path / "placed" / "state.db")
    with pytest.raises(type(refused.value)):
        await opened(tmp_path / "placed")
    return refused.value.message


async def test_an_unchanged_backup_verifies_restores_and_opens(tmp_path: Path, backup: Path) -> None:
    checked = verify(backup, MACS)
    assert len(checked.present) == 5
    assert restore(backup, tmp_path / "target", macs=MACS).objects == 5
    store = await opened(tmp_path / "target")
    record = store.get(NODE)
    assert record is not None
    assert record.body == b'{"role":"still nothing"}'
    await put(store, "goes-on")
    store = await reopened(store, tmp_path / "target", cipher=ToyCipher(), macs=MACS)
    assert store.get(key("goes-on")) is not None
    await store.close()


async def test_a_changed_body_is_refused_and_named_although_its_checksum_fits(tmp_path: Path, backup: Path) -> None:
    edit(backup, written(row_of(backup, NODE.name), body=b'{"role":"cluster-admin"}'))
    assert NODE.name in await refusal_everywhere(backup, tmp_path)


@pytest.mark.parametrize(("column", "value"), [("name", "other"), ("at", 1), ("created", 1), ("namespace", "x")])
async def test_a_row_that_was_moved_or_back_dated_is_refused_and_named(
    tmp_path: Path, backup: Path, column: str, value: object
) -> None:
    row = row_of(backup, "bystander")
    edit(backup, written(row, **{column: value}))
    assert f"revision {row.revision}" in await refusal_everywhere(backup, tmp_path)


async def test_two_rows_with_their_contents_swapped_are_refused(tmp_path: Path, backup: Path) -> None:
    first, second = row_of(backup, "bystander"), row_of(backup, "quarantined")
    edit(backup, written(first, body=second.body, mac=second.mac))
    edit(backup, written(second, body=first.body, mac=first.mac))
    assert "quarantined" in await refusal_everywhere(backup, tmp_path)


async def test_a_dropped_row_is_refused_and_named(tmp_path: Path, backup: Path) -> None:
    edit(backup, dropped("quarantined"))
    message = await refusal_everywhere(backup, tmp_path)
    assert "example.dev/things/default/quarantined is missing" in message


async def test_the_newest_row_cannot_be_cut_off(tmp_path: Path, backup: Path) -> None:
    edit(backup, dropped("newest"))
    assert "newest is missing" in await refusal_everywhere(backup, tmp_path)


async def test_several_dropped_rows_are_refused_and_counted(tmp_path: Path, backup: Path) -> None:
    for name in ("quarantined", "bystander"):
        edit(backup, dropped(name))
    assert "2 rows are missing" in await refusal_everywhere(backup, tmp_path)


async def test_an_older_row_that_was_genuine_once_is_refused_and_named(tmp_path: Path, backup: Path) -> None:
    older, newer = row_of(tmp_path / "older.db", NODE.name), row_of(backup, NODE.name)
    edit(backup, dropped(NODE.name))
    edit(backup, written(older))
    message = await refusal_everywhere(backup, tmp_path)
    assert (NODE.name in message and str(newer.revision) in message) or "missing" in message


async def test_a_row_of_another_time_that_is_added_is_refused_and_named(tmp_path: Path, backup: Path) -> None:
    store = await opened(tmp_path / "source")
    await delete(store, "bystander")
    await store.compact()
    await store.close()
    shutil.copyfile(tmp_path / "source" / "state.db", tmp_path / "later.db")
    edit(tmp_path / "later.db", written(row_of(backup, "bystander")))
    message = await refusal_everywhere(tmp_path / "later.db", tmp_path)
    assert "bystander was put in" in message


async def test_a_clear_row_of_a_sealed_kind_is_refused_and_named(tmp_path: Path, backup: Path) -> None:
    row = row_of(backup, SECRET.name)
    edit(backup, written(row, body=b"mine", flags=row.flags & ~SEALED))
    assert SECRET.name in await refusal_everywhere(backup, tmp_path)


async def test_a_clear_row_of_a_sealed_kind_is_refused_even_with_a_tag(tmp_path: Path) -> None:
    """A row from a time when its kind was not sealed has a genuine tag."""
    store = await opened(tmp_path, settings=StoreSettings(sealed_kinds=frozenset()))
    await put(store, SECRET, b"clear")
    await store.close()
    clear = row_of(tmp_path / "state.db", SECRET.name)
    await (await opened(tmp_path)).close()
    edit(tmp_path / "state.db", written(clear))
    with pytest.raises(StoreForged, match="password lies open"):
        await opened(tmp_path)


async def test_the_head_of_an_older_backup_is_refused(tmp_path: Path, backup: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "older.db")) as connection:
        (head,) = connection.execute("SELECT value FROM meta WHERE key = 'head'").fetchone()
    edit(backup, lambda connection: write_meta(connection, {"head": head}))
    await refusal_everywhere(backup, tmp_path)


@pytest.mark.parametrize("fact", [{"identity/simulated": "false"}, {"floor": "5"}, {"sealed": "[]"}, {"head": "00"}])
async def test_a_changed_fact_or_head_is_refused(tmp_path: Path, backup: Path, fact: dict[str, str]) -> None:
    edit(backup, lambda connection: write_meta(connection, fact))
    message = await refusal_everywhere(backup, tmp_path)
    assert "head" in message or "fact" in message


async def test_stripping_every_tag_is_no_way_back(tmp_path: Path, backup: Path) -> None:
    def strip(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE journal SET mac = x'', head = x''")
        connection.execute("DELETE FROM meta WHERE key IN ('head', 'sealed')")

    edit(backup, strip)
    assert "carry no tags" in await refusal_everywhere(backup, tmp_path)
    (tmp_path / "again").mkdir()
    shutil.copyfile(backup, tmp_path / "again" / "state.db")
    with pytest.raises(StoreForged, match="carry no tags"):
        authenticate(tmp_path / "again", ToyCipher(), MACS, SEALED_KINDS)


async def test_another_vault_key_and_none_are_refused(tmp_path: Path, backup: Path) -> None:
    for macs in (macs_of(b"x"), None):
        with pytest.raises((SealBroken, StoreForged)):
            verify(backup, macs)
        with pytest.raises((SealBroken, StoreForged)):
            restore(backup, tmp_path / "target", macs=macs)


async def test_a_state_from_before_is_refused_until_it_is_migrated_and_sealed_then(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, identity={"simulated": "true"})
    record = await put(store, SECRET, b"canary-77")
    config = await put(store, Key("machineconfiguration.openshift.io", "machineconfigs", "", "m"), b"canary-78")
    await store.close()
    notices: list[str] = []
    before = macs_of(b"m", required=False)
    with pytest.raises(NotMigrated):
        await opened(tmp_path, before)
    report = authenticate(tmp_path, ToyCipher(), before, SEALED_KINDS, lambda: notices.append("required"))
    assert (report.rows, report.sealed, notices) == (2, 2, ["required"])
    report.before.unlink()
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"canary" not in everything
    store = await opened(tmp_path)
    assert [store.get(SECRET), store.get(config.key)] == [record, config]
    await store.close()


async def test_an_interrupted_migration_is_finished_by_the_next(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await put(store, SECRET, b"x")
    await store.close()

    def die() -> None:
        raise KeyboardInterrupt

    before = macs_of(b"m", required=False)
    with pytest.raises(KeyboardInterrupt):
        authenticate(tmp_path, ToyCipher(), before, SEALED_KINDS, die)
    notices: list[str] = []
    assert authenticate(tmp_path, ToyCipher(), before, SEALED_KINDS, lambda: notices.append("required")).rows == 0
    assert notices == ["required"]


async def test_an_object_that_is_taken_out_offline_leaves_a_store_that_opens(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    for name in ("a", "b"):
        await put(store, name, b"1")
        await put(store, name, b"2")
    revision = store.revision
    await store.close()
    assert remove(tmp_path, key("a"), MACS) == revision + 1
    store = await opened(tmp_path)
    assert (store.get(key("a")), store.count("example.dev", "things"), store.compacted) == (None, 1, revision + 1)
    await put(store, "a", b"3")
    await store.close()
    await (await opened(tmp_path)).close()


async def test_a_rotated_key_tags_everything_anew_and_the_old_one_is_not_needed(tmp_path: Path) -> None:
    store = await opened(tmp_path, macs_of(b"o"))
    for number in range(5):
        await put(store, f"n{number}")
    await store.reseal(macs_of(b"n", b"o"))
    await put(store, "after")
    store = await reopened(store, tmp_path, cipher=ToyCipher(), macs=macs_of(b"n"))
    assert store.count("example.dev", "things") == 6
    await store.close()


async def test_a_failed_commit_leaves_no_mark_in_the_ledger(tmp_path: Path) -> None:
    faults = Faults()
    store = await opened(tmp_path, failpoints=faults)
    await put(store, "a")
    faults.arm("commit.after-commit", OSError("reported although it is durable"))
    with contextlib.suppress(Exception):
        await put(store, "lost")
    await put(store, "b")
    store = await reopened(store, tmp_path, cipher=ToyCipher(), macs=MACS)
    assert [record.key.name for record in store.range("example.dev", "things").records] == ["a", "b"]
    await store.close()


async def test_kinds_that_a_later_version_seals_are_sealed_when_it_opens_the_store(tmp_path: Path) -> None:
    store = await opened(tmp_path, settings=StoreSettings(sealed_kinds=frozenset()))
    await put(store, SECRET, b"canary-79")
    await store.close()
    await (await opened(tmp_path)).close()
    assert b"canary-79" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    await (await opened(tmp_path)).close()
