"""A backup of a real Kubernetes, and the same cluster again on another one: machines stand, the record goes on, keys open.

One source and one target, each an etcd and a kube-apiserver. What is refused is asked before the target holds anything, and
nothing of it may be there afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastness.app.backup_file import facts
from fastness.app.keeping.cluster_restore import MARK, read_backup, restore_cluster
from fastness.attestation.live.guard_state import GuardState, read_guard, write_guard
from fastness.attestation.live.statuses import signed_statuses
from fastness.attestation.machine.signed_status import is_disbelieved
from fastness.cli.main import cli
from fastness.crypto.secret import SecretBytes
from fastness.disks.live.key_store import DiskKeys
from fastness.keys.authorities import NAMESPACES, SECRETS
from fastness.keys.ring_files import ring_file
from fastness.keys.vault import Vault
from fastness.kinds.crd.sets import definitions
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound, Unavailable
from fastness.kube.places import DISKS, SEALED
from fastness.kube.port import Cluster
from fastness.protocol.kbs_path import ResourcePath
from fastness.record.entry import RecordEntry
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import ConfigMapTiles
from fastness.record.loops.sequencer import KEY, PACE_SECONDS, Sequencer
from fastness.release.live.resources import SealedResources
from fastness.release.live.vault_secret import open_vault_secret
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.contract.worlds import https, served
from tests.proven import proven_machine
from tests.realkube import RealKube
from tests.virtual import VirtualClock

CANARY = "canary-5e1f"
CLOCK, ENTROPY = SystemClock(), SystemEntropy()
RESOURCE = ResourcePath("default", "door", "code")
CONFIG_MAPS = CONFIG_MAP.resource


@dataclass
class Kept:
    """A cluster with something to lose, its backup, and the key of that."""

    cluster: Cluster
    file: Path
    key: Path
    machine: JsonObject
    disk_key: bytes


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


async def ran(*words: str | Path) -> Result:
    return await asyncio.to_thread(run, *words)


@contextlib.contextmanager
def started(binaries: Path, directory: Path) -> Iterator[RealKube]:
    """A server with our definitions and those of machine configs."""
    with RealKube.start(directory, binaries, unsafe_no_fsync=True) as kube:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        with kube.client() as admin:
            for manifest in definitions():
                assert admin.post(path, json=manifest).status_code == 201
            for manifest in definitions():
                assert any(served(admin, f"{path}/{manifest['metadata']['name']}") for _ in range(600))
        yield kube


@pytest.fixture(scope="module")
def source(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    with started(real_kube_binaries, tmp_path_factory.mktemp("source")) as kube:
        yield kube


@pytest.fixture(scope="module")
def target(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    with started(real_kube_binaries, tmp_path_factory.mktemp("target")) as kube:
        yield kube


class Clerk:
    """Writes entries into the record of a cluster and folds them in."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._clock = cluster, VirtualClock(datetime.now(UTC))
        self._record = ClusterRecord(cluster, self._clock, ENTROPY, "broker")
        self.tiles = ConfigMapTiles(cluster)
        self._sequencer = Sequencer(cluster, self.tiles, self._clock, ENTROPY)

    async def write(self, count: int) -> None:
        for number in range(count):
            await self._record.append(RecordEntry("release", "sha256:" + "c" * 64, resource=f"default/test/{number}"))
        await self._clock.advance(PACE_SECONDS)
        await self._sequencer.reconcile(KEY)

    async def entries(self) -> int:
        head = await read_head(self._cluster)
        return len([entry async for entry in LogView(self.tiles, head.size).entries()])


async def furnish(cluster: Cluster) -> tuple[JsonObject, bytes]:
    """A cluster, a machine that stands, its key, what it is accused of, a resource and a key of its disk."""
    for name in (NAMESPACE, SEALED, DISKS):
        labels = {"pod-security.kubernetes.io/enforce": "restricted"} if name == NAMESPACE else {}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        await cluster.create(NAMESPACES, space)
    spec = {"mode": "Enforce", "simulated": True}
    body = {**of(CONFIDENTIAL_CLUSTER), "metadata": {"name": "cluster"}, "spec": spec}
    confidential = await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
    await write_guard(cluster, GuardState().seeing(confidential))
    signing = signed_statuses("broker", cluster, CLOCK, ENTROPY)
    name = await proven_machine(signing, "worker-1", 1)
    machine = await signing.get(MACHINE.resource, name, NAMESPACE)
    uid = machine["metadata"]["uid"]
    owner = {**of(MACHINE), "name": name, "uid": uid, "controller": True, "blockOwnerDeletion": False}
    meta = {"name": "key-1", "namespace": NAMESPACE, "ownerReferences": [owner]}
    await cluster.create(ATTESTATION_KEY.resource, {**of(ATTESTATION_KEY), "metadata": meta, "spec": KEY_SPEC})
    accused = {"machine": uid, "reason": "a test"}
    await cluster.create(DISTRUST.resource, {**of(DISTRUST), "metadata": {"name": "accused"}, "spec": accused})
    vault = await open_vault_secret(cluster, CLOCK.now(), ENTROPY)
    await SealedResources(cluster, vault).write(RESOURCE, SecretBytes(CANARY.encode()))
    disks = DiskKeys(cluster, vault, ENTROPY)
    await disks.make(uid, "root", "k1")
    [(_, disk_key)] = await disks.read(uid, "root")
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"word": CANARY}}
    await cluster.create(SECRETS, {**secret, "metadata": {"name": "of-a-user", "namespace": NAMESPACE}})
    return machine, disk_key.reveal()


def of(kind: Any) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


KEY_SPEC: JsonObject = {"publicKey": "AAAA"}


@pytest.fixture
async def saved(source: RealKube, tmp_path: Path) -> AsyncIterator[Kept]:
    async with https(source.kubeconfig) as cluster:
        machine, disk_key = await furnish(cluster)
        await Clerk(cluster).write(7)
        key, file = tmp_path / "backups.key", tmp_path / "monday.db"
        assert (await ran("vault", "create", key)).exit_code == 0
        made = await ran("backup", "--kubeconfig", source.kubeconfig, "--vault", key, file)
        assert made.exit_code == 0, made.output
        yield Kept(cluster, file, key, machine, disk_key)


class Cut:
    """A connection that breaks after some writes."""

    def __init__(self, cluster: Cluster, writes: int) -> None:
        self._cluster, self._left = cluster, writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def create(self, *words: Any) -> JsonObject:
        self._left -= 1
        if self._left < 0:
            raise Unavailable("cut")
        return await self._cluster.create(*words)


async def test_a_cluster_comes_back_on_another_one(saved: Kept, target: RealKube, tmp_path: Path) -> None:
    assert CANARY.encode() not in saved.file.read_bytes()
    checked = await ran("backup", "verify", "--vault", saved.key, saved.file)
    assert checked.exit_code == 0, checked.output
    assert "good" in checked.output
    assert ", 7 entries" in checked.output
    await refusals(saved, target, tmp_path)
    vault = Vault.open_file(ring_file(saved.key), CLOCK.now(), ENTROPY, create=False)
    async with https(target.kubeconfig) as cluster:
        with pytest.raises(NotFound):  # nothing that was refused left anything
            await cluster.get(NAMESPACES, NAMESPACE)
        with pytest.raises(Unavailable):
            await restore_cluster(read_backup(saved.file, vault), Cut(cluster, 12), CLOCK.now(), ENTROPY)
        await cluster.get(CONFIG_MAPS, MARK, NAMESPACE)
        again = await ran("restore", "--kubeconfig", target.kubeconfig, "--vault", saved.key, saved.file)
        assert again.exit_code == 0, again.output
        assert "7 entries" in again.output
        await came_back(saved, cluster)
        refused = await ran("restore", "--kubeconfig", target.kubeconfig, "--vault", saved.key, saved.file)
        assert refused.exit_code == 3
        assert "the cluster is not empty: it has " in refused.output


async def came_back(saved: Kept, cluster: Cluster) -> None:
    before, name = saved.machine, saved.machine["metadata"]["name"]
    machine = await signed_statuses("gate", cluster, CLOCK, ENTROPY).get(MACHINE.resource, name, NAMESPACE)
    uid = machine["metadata"]["uid"]
    assert uid != before["metadata"]["uid"]
    assert not is_disbelieved(machine)
    for member in ("attestedUntil", "keyThumbprint", "nodeName", "conditions"):
        assert machine["status"][member] == before["status"][member]
    held = await cluster.get(ATTESTATION_KEY.resource, "key-1", NAMESPACE)
    assert [owner["uid"] for owner in held["metadata"]["ownerReferences"]] == [uid]
    assert (await cluster.get(DISTRUST.resource, "accused"))["spec"]["machine"] == uid
    confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
    assert confidential["spec"]["mode"] == "Enforce"
    guard = await read_guard(cluster)
    assert guard is not None
    assert (guard.uid, guard.generation) == (confidential["metadata"]["uid"], confidential["metadata"]["generation"])
    space = await cluster.get(NAMESPACES, NAMESPACE)
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    vault = await open_vault_secret(cluster, CLOCK.now(), ENTROPY)
    assert await SealedResources(cluster, vault).list() == [str(RESOURCE)]
    [(_, disk_key)] = await DiskKeys(cluster, vault, ENTROPY).read(uid, "root")
    assert disk_key.reveal() == saved.disk_key
    clerk = Clerk(cluster)
    assert await clerk.entries() == 7
    await clerk.write(3)
    assert await clerk.entries() == 10
    # Signed only if it continues the checkpoint of before, which came along.
    newest = (await cluster.list(AUDIT_CHECKPOINT.resource)).items[-1]
    assert newest["spec"]["size"] == 10


async def refusals(saved: Kept, target: RealKube, tmp_path: Path) -> None:
    """Each in one sentence, before anything is written."""
    other, text, newer, cut = (tmp_path / name for name in ("other.key", "notes.txt", "newer.db", "cut.db"))
    assert (await ran("vault", "create", other)).exit_code == 0
    text.write_text("no backup at all\n" * 100)
    cut.write_bytes(saved.file.read_bytes()[:-4096])
    newer.write_bytes(saved.file.read_bytes())
    with contextlib.closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    edited = tmp_path / "edited.db"
    edited.write_bytes(saved.file.read_bytes())
    with contextlib.closing(sqlite3.connect(edited)) as connection:
        connection.execute("DELETE FROM journal WHERE plural = 'distrusts'")
        connection.commit()
    where = ("--kubeconfig", target.kubeconfig)
    for key, file, sentence in (
        (other, saved.file, "vault key"),
        (saved.key, text, "not"),
        (saved.key, cut, "malformed"),
        (saved.key, newer, "schema version 99"),
        (saved.key, edited, "distrusts"),
    ):
        refused = await ran("restore", *where, "--vault", key, file)
        assert refused.exit_code == 3, refused.output
        assert sentence in refused.output
        assert len(refused.output.splitlines()) <= 2
    state = await ran("restore", "--state", tmp_path / "again", "--vault", saved.key, saved.file)
    assert (state.exit_code, "this is the backup of a Kubernetes" in state.output) == (3, True)
    nameless = await ran("restore", *where, saved.file)
    assert (nameless.exit_code, "none is named" in nameless.output) == (2, True)
    forced = await ran("restore", *where, "--vault", saved.key, "--force", saved.file)
    assert (forced.exit_code, "--force is for state directories" in forced.output) == (2, True)


def test_a_backup_says_which_format_it_has() -> None:
    assert facts("uid", datetime(2026, 1, 2, tzinfo=UTC))["format"] == "1"
