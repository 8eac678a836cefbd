"""What is distrusted gets nothing from any door, at once; what it did ends with it, and old tokens stay dead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.attestation.loops.distrust import KEY, Distrusting
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, rfc3339, view
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.record.entry import RecordEntry
from fastness.sim.tee.images import default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.entries: list[RecordEntry] = []

    async def append(self, entry: RecordEntry) -> None:
        self.entries.append(entry)


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


async def distrust(world: AttestingWorld, name: str, **spec: object) -> None:
    body = {
        "apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": name},
        "spec": {"reason": "a test", **spec},
    }  # fmt: skip
    await world.cluster.create(DISTRUST.resource, body)
    await caches_caught_up(world)


async def caches_caught_up(world: AttestingWorld) -> None:
    """Wait until the caches have what the store has."""
    for resource in (DISTRUST.resource, MACHINE.resource):
        informer = world.informers.of(resource)
        await informer.synced()

        async def same() -> bool:
            stored = (await world.cluster.list(resource)).items  # noqa: B023
            cached = {obj["metadata"]["resourceVersion"] for obj in informer.list()}  # noqa: B023
            return {obj["metadata"]["resourceVersion"] for obj in stored} == cached

        await until(same)


async def settled(world: AttestingWorld, loop: Distrusting, rounds: int = 3) -> None:
    for _ in range(rounds):
        await caches_caught_up(world)
        await loop.reconcile(KEY)
    await caches_caught_up(world)


async def refusal(broker: BrokerClient) -> str:
    with pytest.raises(BrokerRefused) as refused:
        await broker.resource(STATUS)
    return refused.value.reason


async def machine(world: AttestingWorld) -> JsonObject:
    (stored,) = (await world.cluster.list(MACHINE.resource)).items
    return stored


async def test_a_distrusted_machine_loses_its_session_without_any_controller(here: AttestingWorld) -> None:
    await here.approve("tpm")
    attester = await here.enrolled("tpm")
    async with here.broker(attester) as broker:
        await broker.attest()
        await distrust(here, "bad", machine=(await machine(here))["metadata"]["uid"])
        assert await refusal(broker) == "revoked"
        with pytest.raises(BrokerRefused) as again:
            await broker.attest()
        assert (again.value.status, again.value.reason) == (403, "distrusted")


async def test_the_end_of_a_distrust_revives_the_machine_but_none_of_its_tokens(here: AttestingWorld) -> None:
    await here.approve("tpm")
    attester = await here.enrolled("tpm")
    record = Kept()
    loop = Distrusting(here.cluster, here.informers, record, here.clock)
    async with here.broker(attester) as broker:
        await broker.attest()
        await distrust(here, "bad", key=attester.machine.thumbprint)
        await settled(here, loop)
        revived = await machine(here)
        assert membership_of(view(revived, Machine)) is Membership.REVOKED
        assert revived["status"]["epoch"] == 1
        stored = await here.cluster.get(DISTRUST.resource, "bad")
        assert stored["status"]["affected"]["machines"] == 1
        assert stored["status"]["target"] == f"key {attester.machine.thumbprint}"
        await here.cluster.delete(DISTRUST.resource, "bad")
        await settled(here, loop)
        assert membership_of(view(await machine(here), Machine)) is Membership.APPROVED
        assert await refusal(broker) == "revoked"
        await broker.attest()
        assert (await broker.resource(STATUS)).reveal() == b"success"
    acts = [entry.what for entry in record.entries]
    assert acts == ["machine-distrusted", "distrust-begins", "machine-trusted-again", "distrust-deleted"]
    assert (await here.cluster.list(DISTRUST.resource)).items == []


async def test_an_expiry_ends_a_distrust_by_itself(here: AttestingWorld) -> None:
    await here.approve("snp")
    attester = await here.enrolled("snp")
    loop = Distrusting(here.cluster, here.informers, Kept(), here.clock)
    await distrust(
        here,
        "short",
        machine=(await machine(here))["metadata"]["uid"],
        expires=rfc3339(here.clock.now() + timedelta(minutes=5)),
    )
    await settled(here, loop)
    done = await loop.reconcile(KEY)
    assert done.again_after is not None
    assert 200 < done.again_after <= 300
    here.clock.ahead = timedelta(minutes=6)
    await settled(here, loop)
    async with here.broker(attester) as broker:
        await broker.attest()
    stored = await here.cluster.get(DISTRUST.resource, "short")
    applied = condition(stored, "Applied")
    assert applied is not None
    assert (applied["status"], applied["reason"]) == ("False", "Expired")


async def test_a_generation_and_a_tcb_level_are_refused_while_they_are_proved(here: AttestingWorld) -> None:
    await here.approve("snp")
    attester = await here.enrolled("snp")
    loop = Distrusting(here.cluster, here.informers, Kept(), here.clock)
    async with here.broker(attester) as broker:
        await broker.attest()
        proved = (await machine(here))["status"]["properties"]
        await distrust(here, "old", tcbBelow={"snp": {"microcode": int(proved["tcb-microcode"]) + 1}})
        assert await refusal(broker) == "revoked"
        await settled(here, loop)
        stored = await machine(here)
        attested = condition(stored, "Attested")
        assert attested is not None
        assert (attested["status"], attested["reason"]) == ("False", "Distrusted")
        assert membership_of(view(stored, Machine)) is Membership.APPROVED
        await here.cluster.delete(DISTRUST.resource, "old")
        await settled(here, loop)
        await broker.attest()
        await distrust(here, "chips", chipGeneration=proved["chip-generation"].upper())
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        assert refused.value.reason == "distrusted"
        await here.cluster.delete(DISTRUST.resource, "chips")
        await settled(here, loop)
        await distrust(here, "fine", tcbBelow={"snp": {"microcode": int(proved["tcb-microcode"])}})
        await broker.attest()


async def test_a_distrusted_image_gives_no_values_and_names_its_machines(here: AttestingWorld) -> None:
    image = f"registry.example/os@sha256:{'ab' * 32}"
    approval = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": "ApprovedImage",
        "metadata": {"name": "os", "namespace": NAMESPACE}, "spec": {"image": image},
    }  # fmt: skip
    values = {
        "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": "ReferenceValueSet", "metadata": {"name": "image-os"},
        "spec": {"source": "image", "image": image, "values": default_image().reference_values("tpm")},
    }  # fmt: skip
    await here.cluster.create(APPROVED_IMAGE.resource, approval)
    await here.cluster.create(REFERENCE_VALUE_SET.resource, values)
    sets, images = here.informers.of(REFERENCE_VALUE_SET.resource), here.informers.of(APPROVED_IMAGE.resource)

    async def published() -> bool:
        return bool(sets.list()) and bool(images.list())

    await until(published)
    attester = await here.enrolled("tpm")
    async with here.broker(attester) as broker:
        await broker.attest()
        assert (await machine(here))["status"]["properties"]["image"] == image
        await distrust(here, "leaked", image=image)
        assert await refusal(broker) == "revoked"
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        assert refused.value.status == 403
    loop = Distrusting(here.cluster, here.informers, Kept(), here.clock)
    await settled(here, loop)
    assert (await here.cluster.get(DISTRUST.resource, "leaked"))["status"]["affected"]["machines"] == 1


async def test_at_rest_another_look_writes_nothing(here: AttestingWorld, embedded_server: Embedded) -> None:
    await here.approve("tpm")
    attester = await here.enrolled("tpm")
    async with here.broker(attester) as broker:
        await broker.attest()
    record = Kept()
    loop = Distrusting(here.cluster, here.informers, record, here.clock)
    await distrust(here, "bad", machine=(await machine(here))["metadata"]["uid"])
    await distrust(here, "other", machine="00000000-0000-4000-8000-000000000000")
    await settled(here, loop)
    revision, entry_count = embedded_server.server.api.store.revision, len(record.entries)
    await loop.reconcile(KEY)
    assert (embedded_server.server.api.store.revision, len(record.entries)) == (revision, entry_count)
