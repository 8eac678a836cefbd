"""Opening: exclusive use, identity, secrets, damage, versions. Nothing is overwritten when it is refused."""

# ruff: noqa: ASYNC240 - a test looks at files between awaits

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from pathlib import Path
from zlib import crc32

import pytest

from fastness.apiserver.store import (
    IdentityMismatch,
    Key,
    NewerSchema,
    NotAStore,
    SealBroken,
    Store,
    StoreDamaged,
    StoreError,
    StoreInUse,
)
from fastness.apiserver.store.migrations import MIGRATIONS
from tests.component.apiserver.store.store_parts import Faults, ToyCipher, put, remove, reopened
from tests.patience import PATIENCE

CANARY = b"canary-5e1f-do-not-leak"
SECRET = Key("", "secrets", "default", "password")


async def filled(directory: Path, count: int = 3) -> None:
    store = await Store.open(directory)
    for number in range(count):
        await put(store, f"n{number}", b'{"body": "of %d"}' % number)
    await store.close()


def edit(directory: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(directory / "state.db")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


async def refused(directory: Path, error: type[StoreError], **options: object) -> StoreError:
    """Opening is refused with exactly this error, and the main file stays as it is."""
    database = directory / "state.db"
    before = database.read_bytes() if database.is_file() else None
    with pytest.raises(error) as refusal:
        await Store.open(directory, **options)  # type: ignore[arg-type]
    assert type(refusal.value) is error
    assert refusal.value.code
    assert refusal.value.hint
    assert before is None or database.read_bytes() == before
    return refusal.value


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    os.umask(os.umask(0o022))
    store = await Store.open(tmp_path / "state")
    await put(store, "a")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert set(modes) == {"state.db", "state.db-wal", "state.db-shm", "state.lock"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    await store.close()


async def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    connection = store._database._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "2 is FULL: every commit is fsynced"
    await store.close()


async def test_a_second_user_of_the_directory_is_told_who_has_it(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    refusal = await refused(tmp_path, StoreInUse)
    assert f"process {os.getpid()}" in refusal.message
    await store.close()
    await (await Store.open(tmp_path)).close()


async def test_a_refused_opening_lets_go_of_the_directory(tmp_path: Path) -> None:
    await filled(tmp_path)
    await refused(tmp_path, IdentityMismatch, identity={"simulated": "true"})
    await (await Store.open(tmp_path)).close()


async def test_a_cancelled_opening_lets_go_of_the_directory(tmp_path: Path, faults: Faults) -> None:
    blocked, release = threading.Event(), threading.Event()

    def block(name: str) -> None:
        if name == "create.before-rename":
            blocked.set()
            release.wait(PATIENCE)

    faults.on = block
    opening = asyncio.create_task(Store.open(tmp_path, failpoints=faults))
    await asyncio.to_thread(blocked.wait, 10)
    opening.cancel()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await (await Store.open(tmp_path)).close()


async def test_facts_are_fixed_at_creation(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, identity={"simulated": "true", "cluster": "demo"})
    await store.close()
    store = await Store.open(tmp_path, identity={"simulated": "true"})
    assert dict(store.identity) == {"simulated": "true", "cluster": "demo"}
    await store.close()
    refusal = await refused(tmp_path, IdentityMismatch, identity={"simulated": "false"})
    assert "simulated" in refusal.message


async def test_any_directory_name_will_do(tmp_path: Path) -> None:
    directory = tmp_path / "a?b#c%41 d'e\"f&mode=ro" / "ünïcode"
    store = await Store.open(directory)
    await put(store, "a")
    await store.backup(directory / "back'up?.db")
    store = await reopened(store, directory)
    assert store.count("example.dev", "things") == 1
    assert {path.name for path in directory.iterdir()} == {
        "state.db", "state.db-wal", "state.db-shm", "state.lock", "back'up?.db",
    }  # fmt: skip
    await store.close()


async def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError):
        await Store.open(tmp_path / "file" / "state")


async def test_a_directory_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with pytest.raises(StoreError):
        await Store.open(tmp_path)
    assert (tmp_path / "state.db").is_dir()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"these are my holiday notes, please keep them" * 100)
    await refused(tmp_path, NotAStore)


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    edit(tmp_path, "CREATE TABLE recipes (name TEXT)")
    await refused(tmp_path, NotAStore)


async def test_an_empty_file_is_damage_and_not_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "state.db").touch()
    await refused(tmp_path, StoreDamaged)


async def test_a_write_ahead_log_without_its_file_is_damage(tmp_path: Path) -> None:
    (tmp_path / "state.db-wal").write_bytes(b"left over")
    await refused(tmp_path, StoreDamaged)
    assert not (tmp_path / "state.db").exists()


async def test_leftovers_of_a_creation_that_died_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "state.db.new").write_bytes(b"half a database")
    (tmp_path / "state.db.new-journal").write_bytes(b"half a journal")
    store = await Store.open(tmp_path)
    await put(store, "a")
    await store.close()


async def test_a_flipped_byte_in_a_body_is_noticed(tmp_path: Path) -> None:
    await filled(tmp_path)
    database = tmp_path / "state.db"
    content = bytearray(database.read_bytes())
    at = content.index(b"of 1")
    content[at] ^= 0x01
    database.write_bytes(content)
    refusal = await refused(tmp_path, StoreDamaged)
    assert "revision 3" in refusal.message


@pytest.mark.parametrize("column", ["at", "grp", "plural", "namespace", "name", "created", "flags", "crc"])
async def test_a_changed_column_is_noticed(tmp_path: Path, column: str) -> None:
    await filled(tmp_path)
    value: object = "x" if column in {"grp", "plural", "namespace", "name"} else 77
    edit(tmp_path, f"UPDATE journal SET {column} = ? WHERE revision = 3", value)
    await refused(tmp_path, StoreDamaged)


async def test_a_missing_row_is_noticed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await put(store, "a", b"1")
    middle = await put(store, "a", b"2")
    await put(store, "a", b"3")
    await store.close()
    edit(tmp_path, "DELETE FROM journal WHERE revision = ?", middle.revision)
    assert "missing" in (await refused(tmp_path, StoreDamaged)).message


async def test_a_row_that_compaction_should_have_deleted_is_noticed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await put(store, "a", b"1")
    await put(store, "a", b"2")
    await store.close()
    edit(tmp_path, "UPDATE meta SET value = '3', crc = ? WHERE key = 'compacted'", _crc("compacted\0003"))
    await refused(tmp_path, StoreDamaged)


@pytest.mark.parametrize("fact", ["store", "compacted", "floor"])
async def test_a_changed_or_missing_fact_is_noticed(tmp_path: Path, fact: str) -> None:
    await filled(tmp_path)
    edit(tmp_path, "UPDATE meta SET value = '9' WHERE key = ?", fact)
    await refused(tmp_path, StoreDamaged)
    edit(tmp_path, "DELETE FROM meta WHERE key = ?", fact)
    await refused(tmp_path, StoreDamaged)


@pytest.mark.parametrize("cut", [100, 4096, 8192])
async def test_a_truncated_file_is_noticed(tmp_path: Path, cut: int) -> None:
    await filled(tmp_path, 100)
    database = tmp_path / "state.db"
    database.write_bytes(database.read_bytes()[:cut])
    with pytest.raises((StoreDamaged, NotAStore)):
        await Store.open(tmp_path)
    assert database.stat().st_size == cut


async def test_a_page_of_noise_is_noticed(tmp_path: Path) -> None:
    await filled(tmp_path, 100)
    database = tmp_path / "state.db"
    content = bytearray(database.read_bytes())
    content[-4096:] = bytes(range(256)) * 16
    database.write_bytes(content)
    await refused(tmp_path, StoreDamaged)


async def test_damage_that_only_a_later_write_would_meet_is_noticed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for _ in range(20):
        await put(store, "a", b"x" * 4_000)
    await store.compact()
    await store.close()
    database = tmp_path / "state.db"
    content = bytearray(database.read_bytes())
    first_free_page = slice(32, 36)  # of the database header
    assert int.from_bytes(content[first_free_page]) > 0
    content[first_free_page] = (2).to_bytes(4)
    database.write_bytes(content)
    await refused(tmp_path, StoreDamaged)


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    await filled(tmp_path)
    edit(tmp_path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    await refused(tmp_path, NewerSchema)


async def test_secrets_reach_the_disk_sealed_and_come_back(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, cipher=ToyCipher())
    record = await put(store, SECRET, CANARY)
    await put(store, SECRET, CANARY + b"2")
    await remove(store, SECRET, CANARY + b"3")
    record = await put(store, SECRET, CANARY)
    await put(store, "open", b"plain-text-thing")
    assert store.get(SECRET) == record
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert CANARY not in everything
    assert b"plain-text-thing" in everything
    store = await reopened(store, tmp_path, cipher=ToyCipher())
    assert store.get(SECRET) == record
    assert [entry.record.body for entry in store.subscribe("", "secrets", since=1).take()][:2] == [
        CANARY,
        CANARY + b"2",
    ]
    await store.close()


async def test_the_wrong_key_or_none_is_refused(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, cipher=ToyCipher())
    await put(store, SECRET, CANARY)
    await store.close()
    for cipher in (ToyCipher(b"other"), None):
        refusal = await refused(tmp_path, SealBroken, cipher=cipher)
        assert CANARY.decode() not in refusal.message
    await (await Store.open(tmp_path, cipher=ToyCipher())).close()


async def test_a_secret_written_before_there_was_a_key_still_opens(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    record = await put(store, SECRET, b"was plain")
    store = await reopened(store, tmp_path, cipher=ToyCipher())
    assert store.get(SECRET) == record
    await store.close()


async def test_sealing_anew_leaves_no_need_for_the_old_key_and_no_plaintext(tmp_path: Path) -> None:
    plain_name = SECRET._replace(name="from-before")
    store = await Store.open(tmp_path)
    before = await put(store, plain_name, CANARY + b"-plain")
    await put(store, "thing", b"not a secret")
    store = await reopened(store, tmp_path, cipher=(ring := Ring(ToyCipher(b"old"))))
    for number in range(5):
        record = await put(store, SECRET, CANARY + b"%d" % number)
    ring.primary, ring.old = ToyCipher(b"new"), ring.primary
    assert await store.reseal() == 6
    during = await put(store, SECRET._replace(name="later"), CANARY)
    assert CANARY not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    store = await reopened(store, tmp_path, cipher=ToyCipher(b"new"))
    assert store.range("", "secrets").records == [before, during, record]
    assert len(store.subscribe("", "secrets", since=1).take()) == 7
    await store.close()


async def test_sealing_anew_without_a_key_does_nothing(store: Store) -> None:
    await put(store, SECRET, CANARY)
    assert await store.reseal() == 0


class Ring:
    """Seals with one key and opens with two, as after a rotation."""

    def __init__(self, primary: ToyCipher) -> None:
        self.primary = self.old = primary

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        return self.primary.seal(plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        try:
            return self.primary.open(sealed, context)
        except ValueError:
            return self.old.open(sealed, context)


def _crc(text: str) -> int:
    return crc32(text.encode())
