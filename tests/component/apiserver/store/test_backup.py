"""Backups are consistent while writes go on; a restore refuses what is wrong and never rewrites history under old numbers."""

# ruff: noqa: ASYNC240 - a test looks at files between awaits

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from fastness.apiserver.store import (
    Compacted,
    DirectoryNotEmpty,
    Key,
    NewerSchema,
    NotAStore,
    Store,
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    WriteStep,
    restore,
)
from fastness.apiserver.store.restore import REVISION_JUMP
from tests.component.apiserver.store.store_parts import Faults, ToyCipher, key, put, remove

GROUP, PLURAL = "example.dev", "things"


@pytest.fixture
async def backup(tmp_path: Path) -> Path:
    """A backup of three records, one of them changed, and of one that was deleted."""
    store = await Store.open(tmp_path / "source", identity={"simulated": "true"})
    for name in ("a", "b", "c", "gone"):
        await put(store, name, name.encode())
    await put(store, "b", b"changed")
    await remove(store, "gone")
    report = await store.backup(tmp_path / "backup.db")
    assert (report.revision, report.objects) == (store.revision, 3)
    assert report.size == (tmp_path / "backup.db").stat().st_size
    await store.close()
    return tmp_path / "backup.db"


async def test_a_backup_is_one_private_file_and_leaves_nothing_beside_it(tmp_path: Path, backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.db", "source"]


async def test_a_backup_while_writing_has_whole_writes_and_all_that_was_answered_before(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "source")
    stop, busy = asyncio.Event(), asyncio.Event()
    answered = 0

    async def write() -> None:
        nonlocal answered
        while not stop.is_set():
            pair = [WriteStep(key(f"left-{answered}"), b"{}"), WriteStep(key(f"right-{answered}"), b"{}")]
            await store.write(lambda _, pair=pair: pair)  # type: ignore[misc]
            answered += 1
            if answered == 20:
                busy.set()

    writer = asyncio.create_task(write())
    await busy.wait()
    before = answered
    report = await store.backup(tmp_path / "backup.db")
    stop.set()
    await writer
    await store.close()
    assert report.objects % 2 == 0
    assert report.objects >= 2 * before
    restore(tmp_path / "backup.db", tmp_path / "target")
    copy = await Store.open(tmp_path / "target")
    names = {record.key.name for record in copy.range(GROUP, PLURAL).records}
    assert {name.replace("left", "right") for name in names if name.startswith("left")} == {
        name for name in names if name.startswith("right")
    }
    await copy.close()


async def test_a_backup_replaces_the_one_of_yesterday_only_when_it_is_whole(tmp_path: Path, faults: Faults) -> None:
    store = await Store.open(tmp_path / "source", failpoints=faults)
    target = tmp_path / "backup.db"
    target.write_bytes(b"yesterday")
    faults.arm("backup.before-rename", OSError(28, "No space left on device"))
    with pytest.raises(StoreUnavailable):
        await store.backup(target)
    assert target.read_bytes() == b"yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.db", "source"]
    await store.backup(target)
    assert target.read_bytes().startswith(b"SQLite")
    await store.close()


async def test_a_backup_into_a_missing_directory_is_a_clear_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        await store.backup(tmp_path / "nowhere" / "backup.db")


async def test_a_restored_store_has_everything_and_a_revision_far_ahead(tmp_path: Path, backup: Path) -> None:
    report = restore(backup, tmp_path / "target")
    store = await Store.open(tmp_path / "target")
    assert store.revision == report.revision == report.backup_revision + REVISION_JUMP
    assert (report.objects, report.set_aside) == (3, None)
    assert dict(store.identity) == {"simulated": "true"}
    records = store.range(GROUP, PLURAL).records
    assert [(record.key.name, record.body) for record in records] == [("a", b"a"), ("b", b"changed"), ("c", b"c")]
    assert (await put(store, "next")).revision == report.revision + 1
    await store.close()


async def test_watches_and_lists_from_before_a_restore_are_refused(tmp_path: Path, backup: Path) -> None:
    report = restore(backup, tmp_path / "target")
    store = await Store.open(tmp_path / "target")
    for revision in (1, report.backup_revision, report.backup_revision + 500, report.revision - 1):
        with pytest.raises(Compacted):
            store.subscribe(GROUP, PLURAL, since=revision)
        with pytest.raises(Compacted):
            store.range(GROUP, PLURAL, at=revision)
    store.subscribe(GROUP, PLURAL, since=report.revision).close()
    await store.close()


async def test_a_restored_store_can_be_changed_compacted_and_backed_up_again(tmp_path: Path, backup: Path) -> None:
    first = restore(backup, tmp_path / "target")
    store = await Store.open(tmp_path / "target")
    await put(store, "b", b"again")
    await remove(store, "a")
    await store.compact()
    await store.backup(tmp_path / "second.db")
    await store.close()
    second = restore(tmp_path / "second.db", tmp_path / "target", force=True)
    assert second.revision > first.revision + REVISION_JUMP
    assert second.objects == 2


async def test_a_store_in_the_way_is_refused_and_with_force_set_aside(tmp_path: Path, backup: Path) -> None:
    target = tmp_path / "target"
    store = await Store.open(target)
    await put(store, "precious")
    await store.close()
    with pytest.raises(DirectoryNotEmpty):
        restore(backup, target)
    report = restore(backup, target, force=True)
    assert report.set_aside is not None
    old = await Store.open(report.set_aside)
    assert old.get(key("precious")) is not None
    await old.close()
    assert restore(backup, target, force=True).set_aside == target / "replaced-2"


async def test_a_damaged_store_can_be_replaced(tmp_path: Path, backup: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "state.db").write_bytes(b"noise")
    (target / "state.db-wal").write_bytes(b"more noise")
    report = restore(backup, target, force=True)
    assert report.set_aside is not None
    assert (report.set_aside / "state.db-wal").read_bytes() == b"more noise"
    store = await Store.open(target)
    assert store.count(GROUP, PLURAL) == 3
    await store.close()


async def test_a_directory_in_use_is_refused(tmp_path: Path, backup: Path) -> None:
    store = await Store.open(tmp_path / "target")
    with pytest.raises(StoreInUse):
        restore(backup, tmp_path / "target", force=True)
    await put(store, "still works")
    await store.close()


def _flip(path: Path, marker: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(marker)] ^= 0x40
    path.write_bytes(content)


async def test_a_backup_with_a_flipped_byte_is_refused_before_anything_is_touched(tmp_path: Path, backup: Path) -> None:
    _flip(backup, b"changed")
    target = tmp_path / "target"
    store = await Store.open(target)
    await put(store, "precious")
    await store.close()
    with pytest.raises(StoreDamaged):
        restore(backup, target, force=True)
    store = await Store.open(target)
    assert store.get(key("precious")) is not None
    await store.close()
    assert not list(target.glob("*restoring*"))


async def test_a_truncated_backup_is_refused(tmp_path: Path, backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:-4096])
    with pytest.raises(StoreDamaged):
        restore(backup, tmp_path / "target")


async def test_a_missing_or_foreign_backup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        restore(tmp_path / "nothing.db", tmp_path / "target")
    (tmp_path / "notes.txt").write_text("not a database")
    with pytest.raises(NotAStore):
        restore(tmp_path / "notes.txt", tmp_path / "target")


async def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path, backup: Path) -> None:
    connection = sqlite3.connect(backup)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NewerSchema):
        restore(backup, tmp_path / "target")


async def test_the_backup_itself_is_not_changed_by_a_restore(tmp_path: Path, backup: Path) -> None:
    before = backup.read_bytes()
    restore(backup, tmp_path / "target")
    assert backup.read_bytes() == before


async def test_secrets_are_sealed_in_a_backup_and_open_after_the_restore(tmp_path: Path) -> None:
    secret = Key("", "secrets", "default", "password")
    store = await Store.open(tmp_path / "source", cipher=ToyCipher())
    await put(store, secret, b"canary-77")
    await store.backup(tmp_path / "backup.db")
    await store.close()
    assert b"canary-77" not in (tmp_path / "backup.db").read_bytes()
    restore(tmp_path / "backup.db", tmp_path / "target")
    store = await Store.open(tmp_path / "target", cipher=ToyCipher())
    record = store.get(secret)
    assert record is not None
    assert record.body == b"canary-77"
    await store.close()


async def test_a_plain_copy_of_a_closed_store_can_be_restored_too(tmp_path: Path, backup: Path) -> None:
    shutil.copyfile(tmp_path / "source" / "state.db", tmp_path / "copy.db")
    assert restore(tmp_path / "copy.db", tmp_path / "target").objects == 3


async def test_the_file_of_a_running_store_is_not_taken_for_a_backup(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "source")
    await put(store, "a")
    with pytest.raises(StoreDamaged, match="not a backup"):
        restore(tmp_path / "source" / "state.db", tmp_path / "target")
    await store.close()


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.lock", "../source/state.db"])
async def test_a_backup_never_replaces_the_store_itself(tmp_path: Path, name: str) -> None:
    store = await Store.open(tmp_path / "source")
    await put(store, "a")
    with pytest.raises(StoreInUse):
        await store.backup(tmp_path / "source" / name)
    await put(store, "b")
    await store.close()
    store = await Store.open(tmp_path / "source")
    assert store.count(GROUP, PLURAL) == 2
    await store.close()
