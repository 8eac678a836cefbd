"""`fastness backup`, `backup verify`, `restore` and `state migrate`: what a thief of a backup did to it is refused by name.

The thief has the file and computes every checksum; the operator has the vault key and the verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.apiserver.store import NotMigrated, StoreForged
from fastness.apiserver.store.journal import COLUMNS, Row, checksum
from fastness.app.product import PRODUCT
from fastness.cli.main import cli
from fastness.keys.authorities import NAMESPACES
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import Cluster
from fastness.record.entry import RecordEntry
from fastness.record.live.backup_tiles import tiles_at
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import FileTiles
from fastness.record.loops.sequencer import KEY, PACE_SECONDS, Sequencer
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

CANARY = "canary-91c2"


async def run(*words: str | Path) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, [str(word) for word in words])


class Clerk:
    """Writes entries into the record of a state directory and folds them in."""

    def __init__(self, cluster: Cluster, state: Path, seed: int = 3) -> None:
        self._cluster, self._clock = cluster, VirtualClock(datetime.now(UTC))
        self._record = ClusterRecord(cluster, self._clock, SeededEntropy(seed), "broker")
        self.tiles = FileTiles(state / "record")
        self._sequencer = Sequencer(cluster, self.tiles, self._clock, SeededEntropy(4))

    async def write(self, count: int) -> None:
        for number in range(count):
            await self._record.append(RecordEntry("release", "sha256:" + "c" * 64, resource=f"default/test/{number}"))
        await self._clock.advance(PACE_SECONDS)
        await self._sequencer.reconcile(KEY)

    async def entries(self) -> int:
        head = await read_head(self._cluster)
        return len([entry async for entry in LogView(self.tiles, head.size).entries()])


async def begun(cluster: Cluster, state: Path, seed: int = 3) -> Clerk:
    with suppress(AlreadyExists):
        await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return Clerk(cluster, state, seed)


@pytest.fixture
async def backup(embedded_server: Embedded, tmp_path: Path) -> Path:
    """A backup of a control plane with a record of seven entries."""
    clerk = await begun(embedded_server.cluster, embedded_server.directory)
    await clerk.write(7)
    target = tmp_path / "monday.db"
    result = await run("backup", "--state", embedded_server.directory, target)
    assert result.exit_code == 0, result.output
    return target


def rewrite(path: Path, name: str, old: bytes, new: bytes) -> None:
    """Change the body of an object's row and everything that can be computed without a key."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        statement = f"SELECT {', '.join(COLUMNS)} FROM journal WHERE name = ? ORDER BY revision DESC"
        row = Row(*connection.execute(statement, (name,)).fetchone())
        body = row.body.replace(old, new)
        assert body != row.body
        crc = checksum(row[:9], body)
        connection.execute("UPDATE journal SET body = ?, crc = ? WHERE revision = ?", (body, crc, row.revision))
        connection.commit()


def tamper(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


async def refused(backup: Path, state: Path, tmp_path: Path) -> str:
    """What `backup verify` and `restore` both say."""
    verified = await run("backup", "verify", "--state", state, backup)
    assert verified.exit_code == 3, verified.output
    target = tmp_path / "target"
    restored = await run("restore", "--state", target, "--vault", state / "vault.json", backup)
    assert restored.exit_code == 3, restored.output
    assert not (target / "state.db").exists()
    assert restored.output.splitlines()[0] == verified.output.splitlines()[0]
    return verified.output


async def test_a_good_backup_is_verified_and_says_what_it_holds(embedded_server: Embedded, backup: Path) -> None:
    result = await run("backup", "verify", "--state", embedded_server.directory, backup, "-o", "json")
    assert json.loads(result.stdout)["entries"] == 7


async def test_a_node_certificate_does_not_become_an_administrator(
    embedded_server: Embedded, backup: Path, tmp_path: Path
) -> None:
    rewrite(backup, "cluster-admin", b"system:masters", b"system:nodes")
    assert "clusterrolebindings//cluster-admin" in await refused(backup, embedded_server.directory, tmp_path)


async def test_a_deleted_row_is_named(embedded_server: Embedded, backup: Path, tmp_path: Path) -> None:
    tamper(backup, "DELETE FROM journal WHERE plural = 'namespaces' AND name = 'kube-node-lease'")
    assert "/namespaces//kube-node-lease is missing" in await refused(backup, embedded_server.directory, tmp_path)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DELETE FROM record WHERE path LIKE 'tile/0/%'", "tile/0/000.p/7"),
        ("DELETE FROM record WHERE path LIKE 'tile/entries/%'", "tile/entries/000.p/7"),
        ("DROP TABLE record", "tile/entries/000.p/7"),
        ("UPDATE record SET body = replace(body, 'release', 'refusal') WHERE path LIKE 'tile/e%'", "000.p/7"),
    ],
)
async def test_tiles_that_were_removed_or_changed_are_named(
    embedded_server: Embedded, backup: Path, tmp_path: Path, statement: str, named: str
) -> None:
    tamper(
        backup,
        statement.replace("replace(body, 'release', 'refusal')", "cast(replace(body, 'release', 'refusal') AS BLOB)"),
    )
    assert named in await refused(backup, embedded_server.directory, tmp_path)


async def test_a_restored_control_plane_reads_its_record_and_goes_on_with_it(
    embedded_server: Embedded, backup: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    result = await run("restore", "--state", again, "--vault", embedded_server.directory / "vault.json", backup)
    assert result.exit_code == 0, result.output
    async with open_apiserver(ServerOptions(again), PRODUCT) as server:
        clerk = await begun(server.cluster, again, seed=5)
        assert await clerk.entries() == 7
        await clerk.write(3)
        assert await clerk.entries() == 10


async def test_a_record_that_grew_after_the_store_was_copied_is_cut_to_it(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    clerk = await begun(embedded_server.cluster, embedded_server.directory)
    await clerk.write(5)
    copied = tmp_path / "record"
    shutil.copytree(embedded_server.directory / "record", copied)
    await clerk.write(300)
    now, then = tiles_at(embedded_server.directory / "record"), tiles_at(copied)
    for path in ("tile/0/000.p/5", "tile/entries/000.p/5"):
        assert not (embedded_server.directory / "record" / path).exists()
        assert now(path) == then(path)
    assert now("tile/0/001.p/200") is None


async def test_restoring_over_a_state_sets_its_record_aside_too(
    embedded_server: Embedded, backup: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    vault = embedded_server.directory / "vault.json"
    assert (await run("restore", "--state", again, "--vault", vault, backup)).exit_code == 0
    assert (await run("restore", "--state", again, backup)).exit_code == 3
    result = await run("restore", "--force", "--state", again, backup, "-o", "json")
    assert result.exit_code == 0, result.output
    aside = Path(json.loads(result.stdout)["setAside"])
    assert (aside / "record").is_dir()
    assert (again / "record").is_dir()


async def open_once(state: Path) -> None:
    """A state directory that a server had open."""
    async with open_apiserver(ServerOptions(state), PRODUCT):
        pass


async def test_a_vault_key_that_is_there_is_never_replaced(
    embedded_server: Embedded, backup: Path, tmp_path: Path
) -> None:
    await open_once(tmp_path / "other")
    before = (tmp_path / "other" / "vault.json").read_bytes()
    vault = embedded_server.directory / "vault.json"
    result = await run("restore", "--force", "--state", tmp_path / "other", "--vault", vault, backup)
    assert result.exit_code == 2
    assert (tmp_path / "other" / "vault.json").read_bytes() == before


def age(state: Path) -> None:
    """Make a state directory as the version before left it: no tags, configs in clear, a vault that knows of none."""
    vault = json.loads((state / "vault.json").read_bytes())
    del vault["authenticated"]
    (state / "vault.json").write_text(json.dumps(vault))
    with contextlib.closing(sqlite3.connect(state / "state.db")) as connection:
        connection.execute("DELETE FROM meta WHERE key IN ('head', 'sealed')")
        connection.execute("ALTER TABLE journal DROP COLUMN mac")
        connection.execute("ALTER TABLE journal DROP COLUMN head")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


async def test_a_state_from_before_is_refused_with_the_verb_and_migrated_once(tmp_path: Path) -> None:
    state = tmp_path / "state"
    await open_once(state)
    age(state)
    with pytest.raises(NotMigrated) as refusal:
        await open_once(state)
    assert "fastness state migrate" in refusal.value.hint
    before = await run("backup", "--state", state, tmp_path / "before.db")
    assert before.exit_code == 0, before.output
    result = await run("state", "migrate", "--state", state)
    assert (result.exit_code, "rows authenticated" in result.output) == (0, True), result.output
    assert json.loads((state / "vault.json").read_bytes())["authenticated"] is True
    assert "already" in (await run("state", "migrate", "--state", state)).output
    await open_once(state)


async def test_after_the_migration_a_state_without_tags_is_refused_by_every_verb(tmp_path: Path) -> None:
    state = tmp_path / "state"
    await open_once(state)
    vault = (state / "vault.json").read_bytes()
    age(state)
    (state / "vault.json").write_bytes(vault)
    shutil.copyfile(state / "state.db", tmp_path / "stripped.db")
    with pytest.raises(StoreForged, match="carry no tags"):
        await open_once(state)
    for words in (
        ("state", "migrate", "--state", state),
        ("backup", "--state", state, tmp_path / "copy.db"),
        ("backup", "verify", "--state", state, tmp_path / "stripped.db"),
        ("restore", "--force", "--state", state, tmp_path / "stripped.db"),
    ):
        result = await run(*words)
        assert result.exit_code == 3, (words, result.output)
        assert "carry no tags" in result.output


async def test_what_may_hold_secrets_lies_sealed(embedded_server: Embedded, backup: Path) -> None:
    cluster = embedded_server.cluster
    unit = {"name": "a.service", "contents": CANARY}
    spec = {"config": {"ignition": {"version": "3.4.0"}, "systemd": {"units": [unit]}}}
    config = {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "99-mine", "labels": {"machineconfiguration.openshift.io/role": "worker"}}, "spec": spec,
    }  # fmt: skip
    await cluster.create(MACHINE_CONFIG.resource, config)
    files = b"".join(path.read_bytes() for path in embedded_server.directory.glob("state.db*"))
    assert CANARY.encode() not in files
