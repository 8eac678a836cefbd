"""Keys of disks on a real API server, each role with its own account: made, unlocked, replaced, recovered, destroyed.

What the roles may do is decided by the API server, as `fastness crds --accounts` asks it to. The loops are those of the product;
what a machine would do over the wire (enrol, unlock, report) is written by the account of the door that writes it then.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.app.accounts import ACCOUNTS
from fastness.attestation.live.launches import Launches
from fastness.attestation.loops.disk_recovery import DiskRecovery
from fastness.attestation.verdict.recovery import message, statement_of
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.jwe import opened
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.disks.keyring import secret_name
from fastness.disks.live.key_store import DiskKeys
from fastness.disks.live.unlocked import note_unlocked
from fastness.disks.loops.key_life import DiskKeyLife
from fastness.disks.loops.key_maker import DiskKeyMaker
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.disks import RECOVER
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, MACHINE, REKEY, Machine
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.informers import Informers
from fastness.kube.places import DISKS
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.disk_keys import read_answer
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.runtime.tasks import background
from tests.breakglass import APPROVERS, KEYS, appointed
from tests.component.realkube.test_accounts import acting, with_accounts
from tests.component.release.broker.brokered_cluster import until
from tests.realkube import RealKube
from tests.unlocking import HEADER

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
NAME = "machine-disks"
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
BROKER = "fastness-broker"
STATUS = WriteOptions(subresource="status")
POOL = {"name": "worker", "trustModel": "ConfidentialCluster", "disk": {"volume": "var", "recovery": "Approvers"}}


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    with with_accounts(real_kube_binaries, tmp_path_factory.mktemp("disks")) as server:
        yield server


@dataclass
class Parts:
    """The API as each role has it, and the loops about disks, each with the account that it has in a cluster."""

    roles: dict[str, Cluster]
    admin: Cluster
    keys: DiskKeys
    launches: Launches

    async def machine(self) -> JsonObject:
        return await self.admin.get(MACHINE.resource, NAME, NAMESPACE)

    async def annotate(self, name: str, text: str | None) -> None:
        patch = {"metadata": {"annotations": {name: text}}}
        await self.admin.patch(MACHINE.resource, NAME, patch, PatchType.MERGE, NAMESPACE)

    async def disk(self, check: Any) -> JsonObject:
        """The Machine's volume, as soon as it is as `check` says."""

        async def holds() -> bool:
            disks = ((await self.machine()).get("status") or {}).get("disks") or []
            return bool(disks and check(disks[0]))

        await until(holds)
        return dict((await self.machine())["status"]["disks"][0])


@asynccontextmanager
async def running(kube: RealKube) -> AsyncIterator[Parts]:
    async with AsyncExitStack() as stack:
        roles = {role.name: await stack.enter_async_context(acting(kube, role)) for role in ACCOUNTS}
        caches = {
            name: await stack.enter_async_context(Informers(roles[name], clock=CLOCK, entropy=ENTROPY))
            for name in ("broker", "controllers")
        }
        admin = await stack.enter_async_context(acting(kube, None))
        keys = DiskKeys(roles["broker"], KeyRing([SealKey.generate(ENTROPY)], ENTROPY), ENTROPY)
        broker_record = ClusterRecord(roles["broker"], CLOCK, ENTROPY, "broker")
        controllers_record = ClusterRecord(roles["controllers"], CLOCK, ENTROPY, "controllers")
        broker, controllers = (roles["broker"], caches["broker"]), (roles["controllers"], caches["controllers"])
        launches = Launches(*broker, CLOCK)
        makers: list[Controller] = [
            DiskKeyMaker(*broker, keys, broker_record, CLOCK),
            DiskRecovery(*broker, keys, broker_record, CLOCK, ENTROPY),
        ]
        life = [DiskKeyLife(*controllers, controllers_record, CLOCK)]
        makers_run = Runner(makers, caches["broker"], CLOCK, ENTROPY).run
        life_run = Runner(life, caches["controllers"], CLOCK, ENTROPY).run
        await stack.enter_async_context(background("disks", makers=makers_run, life=life_run))
        await launches.synced()
        yield Parts(roles, admin, keys, launches)


async def enrol(parts: Parts) -> JsonObject:
    """What enrolment and an approval leave of a machine."""
    body = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": NAME, "namespace": NAMESPACE}}
    made = await parts.roles["enrol"].create(
        MACHINE.resource, {**body, "spec": {"id": "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e77", "approval": "Approved"}}
    )
    now = "2026-01-01T00:00:00Z"
    approved = {"type": "Approved", "status": "True", "reason": "Approved", "message": "", "lastTransitionTime": now}
    status = {"pool": "worker", "tee": "snp", "keyThumbprint": "sha256:" + "ab" * 32, "conditions": [approved]}
    return await parts.roles["enrol"].patch(
        MACHINE.resource, NAME, {"status": status}, PatchType.MERGE, made["metadata"]["namespace"], STATUS
    )


async def report(parts: Parts, **change: Any) -> None:
    """What the verifier writes of a session that reported the volume."""
    (disk,) = (await parts.machine())["status"]["disks"]
    disks = [{**{name: value for name, value in disk.items() if name != "nextKeyId"}, "state": "Open", **change}]
    patch = {"status": {"disks": disks}}
    await parts.roles["broker"].patch(MACHINE.resource, NAME, patch, PatchType.MERGE, NAMESPACE, STATUS)


def signed(cluster: JsonObject, machine: JsonObject, once: PrivateKey) -> str:
    now = CLOCK.now()
    statement = statement_of(
        cluster["metadata"]["uid"], view(machine, Machine), "var", "the board broke", public_jwk(once), now,
        now + timedelta(hours=1),
    )  # fmt: skip
    agreed = [
        {"by": name, "signature": base64.b64encode(KEYS[name].sign(message(statement))).decode()}
        for name in ("ada", "grace")
    ]
    return json.encode({"statement": statement, "agreed": agreed}).decode()


async def _without_rights(parts: Parts, uid: str) -> None:
    """A broker whose rights are taken away while machines boot has no key to give, until it has them back."""
    binding = await parts.admin.get(ROLE_BINDINGS, BROKER, DISKS)
    await parts.admin.delete(ROLE_BINDINGS, BROKER, DISKS)

    async def shut_out() -> bool:
        try:
            await parts.keys.read(uid, "var")
        except Forbidden:
            return True
        return False

    await until(shut_out)
    kept = {name: binding["metadata"][name] for name in ("name", "namespace")}
    await parts.admin.create(ROLE_BINDINGS, {**binding, "metadata": kept})

    async def reads_again() -> bool:
        return not await shut_out()

    await until(reads_again)


async def test_a_disk_lives_and_ends_with_every_role_in_its_own_account(kube: RealKube) -> None:
    async with running(kube) as parts:
        spec = {"mode": "Enforce", "simulated": True, "pools": [POOL], "breakGlass": {"approvers": APPROVERS}}
        body = {"apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "spec": spec}
        cluster = await parts.admin.create(CONFIDENTIAL_CLUSTER.resource, {**body, "metadata": {"name": "cluster"}})
        await appointed(parts.admin)
        uid = (await enrol(parts))["metadata"]["uid"]
        # Held by the controllers, and then given a key by the broker.
        await parts.disk(lambda disk: disk.get("keyId") == "k1")
        assert HOLDS_KEYS in (await parts.machine())["metadata"]["finalizers"]
        for role in ("gate", "enrol", "page", "webhook", "configserver"):
            with pytest.raises(Forbidden):
                await parts.roles[role].get(SECRETS, secret_name(uid), DISKS)
        # Unlocked: the launch is bound once, the release is noted, the volume reported.
        assert await parts.launches.bind("ab" * 32, uid, "1" * 64)
        assert not await parts.launches.bind("ab" * 32, uid, "2" * 64)
        await note_unlocked(parts.roles["broker"], await parts.machine(), "var", 1, "verdict-1", CLOCK.now())
        await report(parts, header=HEADER, generation=1)
        ((_, first),) = await parts.keys.read(uid, "var")
        # Two approvers have the key, sealed to whom they named.
        once = PrivateKey.generate(ENTROPY)
        await parts.annotate(RECOVER, signed(cluster, await parts.machine(), once))
        disk = await parts.disk(lambda disk: (disk.get("recovery") or {}).get("statement"))
        assert disk["recovery"].get("refused") is None
        recovered = read_answer(opened(disk["recovery"]["answer"].encode(), once), "var")
        assert recovered.newest.key.reveal() == first.reveal()
        await parts.annotate(RECOVER, None)
        await parts.disk(lambda disk: "answer" not in disk["recovery"])
        # A new key, and the end of the old one as soon as the disk is reported with it.
        await parts.annotate(REKEY, "var")
        await parts.disk(lambda disk: disk.get("nextKeyId") == "k2")
        await report(parts, keyId="k2", generation=2)

        async def replaced() -> bool:
            return [key_id for key_id, _ in await parts.keys.read(uid, "var")] == ["k2"]

        await until(replaced)
        await _without_rights(parts, uid)
        # Deleting the Machine destroys what is left.
        await parts.admin.delete(MACHINE.resource, NAME, NAMESPACE)

        async def gone() -> bool:
            try:
                await parts.machine()
            except NotFound:
                return True
            return False

        await until(gone)
        assert await parts.keys.read(uid, "var") == []
