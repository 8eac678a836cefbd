"""A confidential machine and whom it shall believe: attested, granted, on the record, signed, and from nobody in between."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.configs import AttestedConfigs, ConfigRefused
from fastness.agent.boot.enrol import Doors
from fastness.agent.boot.fetch import check_delivered
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kube.client.pool import HttpsClient
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType
from fastness.protocol.config_proof import BadConfigProof, Copied, Served, signed
from fastness.protocol.delivered import Delivered, Sealed
from fastness.protocol.door import DoorRole
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.component.release.delivery.meddler import good, meddling, with_body
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE, controller_config

CONTROLLERS = CONTROLLER_CONFIG.resource
NAME = "machine-config-controller"


def bundles(text: str) -> list[JsonObject]:
    return [{"file": "r.example..5000", "data": base64.b64encode(text.encode()).decode()}]


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    spec = controller_config(imageRegistryBundleData=bundles(CERTIFICATE))["spec"]
    stated = {name: spec[name] for name in ("kubeAPIServerServingCAData", "imageRegistryBundleData")}
    await embedded_server.cluster.patch(CONTROLLERS, NAME, {"spec": stated}, PatchType.MERGE)
    async with delivering_world(embedded_server.cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"), "values-tpm")
        yield delivering


async def booted(world: DeliveringWorld) -> SimAttester:
    attester = world.machine()
    await boot_once(attester, await world.ask(), world.trust, world.patience())
    return attester


def configs(world: DeliveringWorld, attester: SimAttester) -> AttestedConfigs:
    doors = Doors(world.urls[0].broker, world.urls[0].gate)
    return AttestedConfigs(attester, lambda: doors, lambda: world.trust, world.clock, ENTROPY)


async def via_broker(world: DeliveringWorld, sync: str) -> None:
    patch = {"spec": {"delivery": {"via": "Broker", "sync": sync}}}
    await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    informer = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
    await until(lambda: ((informer.get("", "cluster") or {})["spec"].get("delivery") or {}).get("sync") == sync)


async def last_release(world: DeliveringWorld, *, by_gate: bool) -> JsonObject:
    """The last entry of the record: the gate of these tests has one in memory, the broker writes to the cluster."""
    if by_gate:
        entry = world.record.entries[-1]
        return {"what": entry.what, "resource": entry.resource, "detail": entry.detail}
    batches = (await world.cluster.list(AUDIT_BATCH.resource)).items
    entries = [entry for batch in batches for entry in batch["spec"]["entries"]]
    return next(entry for entry in entries if entry.get("resource") == "pool/worker/trust")


@pytest.mark.parametrize("sync", ["", "OnDemand", "OnChange"])
async def test_a_machine_gets_it_by_the_way_of_its_configs_and_the_record_says_which(
    world: DeliveringWorld, sync: str
) -> None:
    agent = configs(world, await booted(world))
    if sync:
        await via_broker(world, sync)
    trust = await agent.trust("worker")
    assert trust.registries == {"r.example:5000": CERTIFICATE}
    release = await last_release(world, by_gate=not sync)
    assert (release["what"], release["resource"]) == ("release", "pool/worker/trust")
    assert (release["detail"]["config"], release["detail"]["basis"]) == (trust.name, "verdict")


async def test_it_is_the_document_of_now_and_never_an_older_one(world: DeliveringWorld) -> None:
    agent = configs(world, await booted(world))
    before = await agent.trust("worker")
    patch = {"spec": {"imageRegistryBundleData": bundles(OTHER_CERTIFICATE)}}
    await world.cluster.patch(CONTROLLERS, NAME, patch, PatchType.MERGE)
    informer = world.informers.of(CONTROLLERS)
    await until(lambda: (informer.get("", NAME) or {})["spec"]["imageRegistryBundleData"] == bundles(OTHER_CERTIFICATE))
    after = await agent.trust("worker")
    assert after.name != before.name
    assert after.registries == {"r.example:5000": OTHER_CERTIFICATE}


async def test_while_a_source_cannot_be_read_machines_wait_and_keep_what_they_have(world: DeliveringWorld) -> None:
    agent = configs(world, await booted(world))
    await world.cluster.patch(
        CONTROLLERS, NAME, {"spec": {"imageRegistryBundleData": bundles("garbage")}}, PatchType.MERGE
    )
    informer = world.informers.of(CONTROLLERS)
    await until(lambda: (informer.get("", NAME) or {})["spec"]["imageRegistryBundleData"] == bundles("garbage"))
    with pytest.raises(Unavailable, match="trust-unclear"):
        await agent.trust("worker")


async def test_a_machine_of_another_pool_and_strangers_get_nothing(world: DeliveringWorld) -> None:
    with pytest.raises(ConfigRefused, match="wrong-pool"):
        await configs(world, await booted(world)).trust("master")
    ticket = (await world.ask()).ticket
    async with HttpsClient(world.urls[0].gate, world.trust.tls, 10.0, DoorRole.GATE) as http:
        for headers in ({}, {"authorization": f"Bearer {ticket}"}):
            answer = await http.ask("GET", "/trust/worker", headers, b"", lambda _status: 4096)
            assert answer.status == 401
            assert b"CERTIFICATE" not in answer.body


async def test_a_registry_s_authority_that_was_changed_on_the_way_is_refused(world: DeliveringWorld) -> None:
    attester = await booted(world)
    async with meddling(world) as meddler:
        agent = configs(world, attester)
        assert (await agent.trust("worker")).registries
        body = meddler.answers[-1].partition(b"\r\n\r\n")[2]
        evil = body.replace(b"r.example:5000", b"evil.test:5000")
        assert evil != body
        meddler.change = lambda answer: with_body(answer, evil) if good(answer) else answer
        with pytest.raises(ConfigRefused, match="not what the cluster signed"):
            await agent.trust("worker")


async def test_an_earlier_answer_and_one_about_a_config_are_refused(world: DeliveringWorld) -> None:
    attester = await booted(world)
    async with meddling(world) as meddler:
        agent = configs(world, attester)
        await agent.trust("worker")
        earlier = meddler.answers[-1]
        meddler.change = lambda answer: earlier if good(answer) else answer
        with pytest.raises(ConfigRefused, match="not what the cluster signed"):
            await agent.trust("worker")


def test_neither_a_statement_about_a_config_nor_a_copy_passes_for_whom_to_believe() -> None:
    signer, now = Ed25519Signer(SecretBytes(b"s" * 32)), datetime(2026, 1, 1, tzinfo=UTC)
    until_then = now + timedelta(minutes=1)
    keys = {signer.verifier.id: signer.verifier}
    asked = Served(b"{}", "worker", "m", "n", "", "k", trust=True)
    config = signed(Served(b"{}", "worker", "m", "n", "", "k"), signer, until_then)
    with pytest.raises(BadConfigProof, match="another kind"):
        check_delivered(Delivered(b"{}", config), asked, keys, now)
    copied = signed(Copied(b"{}", "worker", "rendered-worker-a"), signer, until_then)
    with pytest.raises(BadConfigProof, match="never delivered as a copy"):
        check_delivered(Delivered(b"{}", copied, Sealed("rendered-worker-a", "m", "n")), asked, keys, now)
    check_delivered(Delivered(b"{}", signed(asked, signer, until_then)), asked, keys, now)
