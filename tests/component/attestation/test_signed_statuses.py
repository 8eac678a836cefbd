"""Machines read and written through the cluster that signs: what the port promises stays so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.statuses import SignedStatuses, signed_statuses
from fastness.attestation.machine.signed_status import FIELD, Doubt, is_disbelieved, signature_of
from fastness.keys.authorities import NAMESPACES
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Conflict, Forbidden
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.record.live.door_keys import DOOR_KEYS, LIFETIME
from fastness.runtime.clock import SystemEntropy
from tests.enrolling import MovedClock

MACHINES = MACHINE.resource
STATUS = WriteOptions(subresource="status")
ENTROPY = SystemEntropy()
NAME = "machine-1"
APPROVED = {
    "type": "Approved", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
}  # fmt: skip


@pytest.fixture
async def raw(tmp_path: Path) -> AsyncIterator[Cluster]:
    """The API as it is, with one Machine that has no status yet."""
    async with open_apiserver(ServerOptions(tmp_path / "state", simulated=True), PRODUCT) as server:
        body: JsonObject = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind}
        body["metadata"] = {"name": NAME, "namespace": NAMESPACE}
        body["spec"] = {"id": "6f1b7f0e-8f0c-4f39-9a3e-1d7b8f0f3c11", "approval": "Approved"}
        await server.cluster.create(MACHINES, body)
        yield server.cluster


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def signing(raw: Cluster, clock: MovedClock) -> SignedStatuses:
    return signed_statuses("controllers", raw, clock, ENTROPY)


async def written(cluster: Cluster, status: JsonObject, version: str = "") -> JsonObject:
    meta = {"metadata": {"resourceVersion": version}} if version else {}
    return await cluster.patch(MACHINES, NAME, {**meta, "status": status}, PatchType.MERGE, NAMESPACE, STATUS)


async def serial(cluster: Cluster) -> int:
    signature = signature_of(await cluster.get(MACHINES, NAME, NAMESPACE))
    return signature.serial if signature is not None else 0


async def test_what_is_written_is_signed_and_believed_by_everybody(
    signing: SignedStatuses, raw: Cluster, clock: MovedClock
) -> None:
    believed = await written(signing, {"pool": "worker", "properties": {"a": "1", "b": "2"}})
    assert not is_disbelieved(believed)
    await written(signing, {"properties": {"a": None}})
    stored = await raw.get(MACHINES, NAME, NAMESPACE)
    assert stored["status"]["properties"] == {"b": "2"}
    reader = signed_statuses("gate", raw, clock, ENTROPY)
    assert await reader.get(MACHINES, NAME, NAMESPACE) == stored
    assert (await reader.list(MACHINES, Scope(NAMESPACE))).items == [stored]
    with pytest.raises(Forbidden, match="does not write statuses"):
        await written(reader, {"pool": "infra"})


async def test_a_patch_that_changes_nothing_writes_nothing(signing: SignedStatuses, raw: Cluster) -> None:
    await written(signing, {"pool": "worker"})
    before = await raw.get(MACHINES, NAME, NAMESPACE)
    assert await written(signing, {"pool": "worker"}) == before


async def test_two_who_write_at_once_end_as_on_any_cluster(
    signing: SignedStatuses, raw: Cluster, clock: MovedClock
) -> None:
    other = signed_statuses("broker", raw, clock, ENTROPY)
    first = await written(signing, {"pool": "worker"})
    await other.get(MACHINES, NAME, NAMESPACE)
    await written(signing, {"epoch": 1})
    with pytest.raises(Conflict):
        await written(other, {"epoch": 2}, first["metadata"]["resourceVersion"])
    with pytest.raises(
        Conflict
    ):  # also who has seen the later version does not write over it in the name of the earlier
        await written(signing, {"epoch": 2}, first["metadata"]["resourceVersion"])
    await written(other, {"ticket": "t"})
    stored = await signing.get(MACHINES, NAME, NAMESPACE)
    assert not is_disbelieved(stored)
    assert (stored["status"]["epoch"], stored["status"]["ticket"], await serial(raw)) == (1, "t", 3)


async def test_nothing_is_written_on_a_status_that_is_not_believed(signing: SignedStatuses, raw: Cluster) -> None:
    await written(signing, {"pool": "worker"})
    await written(raw, {"epoch": 9})
    with pytest.raises(Forbidden, match="the control plane did not write this status"):
        await written(signing, {"ticket": "t"})
    doubted = signing.statuses.doubted(NAME)
    assert doubted is not None
    assert doubted.doubt is Doubt.WRONG
    assert doubted.before is not None
    assert "epoch" not in doubted.before["status"]


async def test_a_status_without_a_signature_is_not_believed(
    signing: SignedStatuses, raw: Cluster, clock: MovedClock
) -> None:
    await written(signing, {"pool": "worker"})
    await written(raw, {FIELD: None})
    fresh = signed_statuses("gate", raw, clock, ENTROPY)
    for cluster in (signing, fresh):
        assert is_disbelieved(await cluster.get(MACHINES, NAME, NAMESPACE))
    assert [judgement.doubt for cluster in (signing, fresh) if (judgement := cluster.statuses.doubted(NAME))] == [
        Doubt.UNSIGNED
    ] * 2


async def test_a_machine_whose_status_was_wiped_is_not_believed_to_be_new(
    signing: SignedStatuses, raw: Cluster
) -> None:
    await written(signing, {"pool": "worker"})
    machine = await signing.get(MACHINES, NAME, NAMESPACE)
    later = {**machine["metadata"], "resourceVersion": str(int(machine["metadata"]["resourceVersion"]) + 1)}
    wiped = {name: value for name, value in machine.items() if name != "status"} | {"metadata": later}
    assert is_disbelieved(await signing.statuses.judged(wiped))


async def test_an_answer_that_comes_late_is_no_rollback(signing: SignedStatuses, raw: Cluster) -> None:
    await written(signing, {"pool": "worker"})
    early = await raw.get(MACHINES, NAME, NAMESPACE)
    await written(signing, {"epoch": 1})
    assert await signing.statuses.judged(early) is early
    assert signing.statuses.doubted(NAME) is None
    await written(raw, {**early["status"], "epoch": None})
    assert is_disbelieved(await signing.get(MACHINES, NAME, NAMESPACE))
    doubted = signing.statuses.doubted(NAME)
    assert doubted is not None
    assert doubted.doubt is Doubt.ROLLED_BACK


async def test_a_change_of_labels_leaves_a_status_believed(signing: SignedStatuses, raw: Cluster) -> None:
    await written(signing, {"pool": "worker"})
    await signing.get(MACHINES, NAME, NAMESPACE)
    await raw.patch(MACHINES, NAME, {"metadata": {"labels": {"rack": "7"}}}, PatchType.MERGE, NAMESPACE)
    stored = await signing.get(MACHINES, NAME, NAMESPACE)
    assert (stored["metadata"]["labels"], is_disbelieved(stored)) == ({"rack": "7"}, False)


async def test_what_is_no_machine_of_the_cluster_is_given_as_it_is(signing: SignedStatuses, raw: Cluster) -> None:
    """Machines elsewhere speak for nobody, and other kinds have no signature."""
    await raw.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    machine = await raw.get(MACHINES, NAME, NAMESPACE)
    await raw.create(MACHINES, {**machine, "metadata": {"name": NAME, "namespace": "elsewhere"}})
    patch = {"status": {"pool": "worker"}}
    elsewhere = await raw.patch(MACHINES, NAME, patch, PatchType.MERGE, "elsewhere", STATUS)
    assert await signing.get(MACHINES, NAME, "elsewhere") == elsewhere
    key = {"apiVersion": ATTESTATION_KEY.api_version, "kind": ATTESTATION_KEY.kind, "spec": {"publicKey": "a2V5"}}
    await raw.create(ATTESTATION_KEY.resource, {**key, "metadata": {"name": NAME, "namespace": NAMESPACE}})
    status_patch = {"status": {"conditions": [APPROVED]}}
    approved = await raw.patch(ATTESTATION_KEY.resource, NAME, status_patch, PatchType.MERGE, NAMESPACE, STATUS)
    assert await signing.get(ATTESTATION_KEY.resource, NAME, NAMESPACE) == approved


async def test_a_status_outlives_the_key_that_signed_it_while_somebody_signs_it_again(
    signing: SignedStatuses, raw: Cluster, clock: MovedClock
) -> None:
    await written(signing, {"pool": "worker"})
    signature = signature_of(await raw.get(MACHINES, NAME, NAMESPACE))
    assert signature is not None
    assert not await signing.statuses.ends(signature)
    for _ in range(2):
        clock.ahead += LIFETIME + timedelta(hours=1)
        await DOOR_KEYS["controllers"].renew(raw, ENTROPY, clock.now())
        clock.ahead += timedelta(minutes=10)
        assert await signing.statuses.ends(signature)
    late = signed_statuses("gate", raw, clock, ENTROPY)
    assert is_disbelieved(await late.get(MACHINES, NAME, NAMESPACE)), "two keys later nobody can tell"


async def test_nobody_signs_again_what_another_part_signed_with_its_newest_key(
    signing: SignedStatuses, raw: Cluster, clock: MovedClock
) -> None:
    await written(signed_statuses("broker", raw, clock, ENTROPY), {"pool": "worker"})
    signature = signature_of(await raw.get(MACHINES, NAME, NAMESPACE))
    assert signature is not None
    assert not await signing.statuses.ends(signature)


async def test_a_key_that_was_made_a_moment_ago_is_known(raw: Cluster, clock: MovedClock) -> None:
    reader = signed_statuses("gate", raw, clock, ENTROPY)
    await reader.get(MACHINES, NAME, NAMESPACE)
    await written(signed_statuses("enrolment", raw, clock, ENTROPY), {"pool": "worker"})
    assert not is_disbelieved(await reader.get(MACHINES, NAME, NAMESPACE))
    await written(signed_statuses("broker", raw, clock, ENTROPY), {"epoch": 1})
    assert not is_disbelieved(await reader.get(MACHINES, NAME, NAMESPACE))
