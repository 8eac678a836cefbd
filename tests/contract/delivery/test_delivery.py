"""Two ways to a configuration, one contract: the same policy, the same answer, the same line of the record."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.agent.boot.boot import BootRefused, boot_once
from fastness.agent.boot.enrol import DoorUnreachable
from fastness.agent.boot.fetch import from_broker, from_gate
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.delivered import Question
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

WAYS = ("Gate", "Broker")


def spec(via: str, sync: str = "OnDemand") -> JsonObject:
    delivery = {"via": via, "sync": sync, **({"interval": "5m"} if sync == "Scheduled" else {})}
    return {"mode": "Enforce", "simulated": True, "delivery": delivery}


@pytest.fixture(params=WAYS)
async def world(request: pytest.FixtureRequest, embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster, spec(request.param)) as delivering:
        for tee in ("tpm", "snp", "tdx"):
            await delivering.publish(default_image().reference_values(tee), f"values-{tee}")
        yield delivering


async def boot(world: DeliveringWorld, machine: SimAttester, pool: str = "worker", seconds: float = PATIENCE) -> bytes:
    ask = await world.ask(pool)
    return (await boot_once(machine, ask, world.trust, world.patience(seconds))).body


async def releases(world: DeliveringWorld) -> list[JsonObject]:
    """The releases that were written down."""
    return await entries(world, "release")


async def entries(world: DeliveringWorld, what: str) -> list[JsonObject]:
    """What both doors wrote down: the gate of these tests into a list, the broker into the cluster."""
    batches = (await world.cluster.list(AUDIT_BATCH.resource)).items
    batched = [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == what]
    return batched + [
        {
            "who": entry.who,
            "resource": entry.resource,
            "verdict": entry.verdict,
            "grant": entry.grant,
            "detail": dict(entry.detail),
        }
        for entry in world.record.of(what)
    ]


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_proven_machine_gets_the_configuration_of_its_pool(world: DeliveringWorld, tee: str) -> None:
    assert await boot(world, world.machine(tee)) == world.shelf.body


async def test_the_release_is_on_the_record_with_its_verdict_its_grant_and_its_config(world: DeliveringWorld) -> None:
    machine = world.machine("tpm")
    await boot(world, machine)
    (entry,) = await releases(world)
    assert (entry["who"], entry["resource"]) == (machine.machine.thumbprint, "pool/worker/config")
    assert entry["verdict"].startswith("machine-")
    assert entry["grant"].startswith("grant-")
    assert entry["detail"] == {
        "basis": "verdict", "tee": "tpm", "endorsement": "ek-certificate", "config": "rendered-worker-1", "etag": '"etag"',
    }  # fmt: skip


async def test_a_machine_that_booted_something_else_gets_nothing_and_a_final_answer(world: DeliveringWorld) -> None:
    with pytest.raises(BootRefused):
        await boot(world, world.machine("tpm", changed(default_image(), command_line="init=/bin/sh")))
    assert world.shelf.requests == []
    assert await releases(world) == []


async def test_a_quarantined_machine_gets_nothing(world: DeliveringWorld) -> None:
    machine = world.machine("tpm")
    await boot(world, machine)
    (obj,) = (await world.cluster.list(MACHINE.resource)).items
    patch = {"spec": {"approval": "Quarantined"}}
    await world.cluster.patch(MACHINE.resource, obj["metadata"]["name"], patch, PatchType.MERGE, NAMESPACE)
    machines = world.informers.of(MACHINE.resource)
    name = obj["metadata"]["name"]
    await until(lambda: (machines.get(NAMESPACE, name) or obj)["spec"].get("approval") == "Quarantined")
    with pytest.raises(BootRefused):
        await boot(world, machine)
    assert len(await releases(world)) == 1


async def test_what_is_not_rendered_yet_is_waited_for(world: DeliveringWorld) -> None:
    world.shelf.refusals.append(Refusal(503, "not-rendered", "the pool has no rendered config yet", retry=1))
    assert await boot(world, world.machine("tpm")) == world.shelf.body
    assert len(world.shelf.requests) == 2


async def test_a_pool_that_is_unknown_to_the_config_server_is_final(world: DeliveringWorld) -> None:
    world.shelf.refusals.append(Refusal(404, "unknown-pool", "there is no such pool"))
    with pytest.raises(BootRefused):
        await boot(world, world.machine("tpm"))
    assert await releases(world) == []


async def test_a_policy_for_the_configuration_of_a_pool_counts_on_both_ways(world: DeliveringWorld) -> None:
    rego = "package policy\n\nimport rego.v1\n\ndefault allow := false\n"
    target = "pool/worker/config"
    body: JsonObject = {
        "apiVersion": APPRAISAL_POLICY.api_version, "kind": APPRAISAL_POLICY.kind, "metadata": {"name": "nobody"},
        "spec": {"for": target, "rego": rego, "active": True},
    }  # fmt: skip
    await world.cluster.create(APPRAISAL_POLICY.resource, body)
    active = {"status": {"active": {"for": target, "rego": rego, "version": "v1"}}}
    options = WriteOptions(subresource="status")
    await world.cluster.patch(APPRAISAL_POLICY.resource, "nobody", active, PatchType.MERGE, "", options)
    policies = world.informers.of(APPRAISAL_POLICY.resource)
    await until(lambda: "status" in (policies.get("", "nobody") or {}))
    with pytest.raises(BootRefused) as refused:
        await boot(world, world.machine("tpm"))
    assert refused.value.reason == "policy-denied"
    assert await releases(world) == []
    (entry,) = await entries(world, "refusal")
    assert (entry["resource"], entry["detail"]["code"]) == (target, "policy-denied")


@pytest.mark.parametrize(("before", "after"), [("Gate", "Broker"), ("Broker", "Gate")])
async def test_the_way_can_be_switched_while_machines_boot(embedded_server: Embedded, before: str, after: str) -> None:
    async with delivering_world(embedded_server.cluster, spec(before)) as world:
        await world.publish(default_image().reference_values("tpm"))
        assert await boot(world, world.machine("tpm")) == world.shelf.body
        patch = {"spec": {"delivery": {"via": after}}}
        await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
        clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
        await until(lambda: (clusters.get("", "cluster") or {})["spec"]["delivery"]["via"] == after)
        assert await boot(world, world.machine("tpm")) == world.shelf.body
        assert len(await releases(world)) == 2


@pytest.mark.parametrize("via", WAYS)
async def test_the_way_that_is_not_chosen_hands_out_nothing(embedded_server: Embedded, via: str) -> None:
    async with delivering_world(embedded_server.cluster, spec(via)) as world:
        await world.publish(default_image().reference_values("tpm"))
        machine = world.machine("tpm")
        await boot(world, machine)
        requests, doors, question = len(world.shelf.requests), world.urls[0], Question("n" * 24)
        async with BrokerClient(doors.broker, world.trust.tls, machine, ENTROPY) as broker:
            await broker.attest()
            with pytest.raises(DoorRefused) as refused:
                if via == "Gate":
                    await from_broker(broker, "worker", question)
                else:
                    await from_gate(doors.gate, world.trust.tls, broker, "worker", question, world.clock.now)
        assert refused.value.reason == f"delivered-by-{via.lower()}"
        assert len(world.shelf.requests) == requests


@pytest.mark.parametrize("via", WAYS)
async def test_without_values_a_machine_waits_and_says_for_what(embedded_server: Embedded, via: str) -> None:
    async with delivering_world(embedded_server.cluster, spec(via)) as world:
        with pytest.raises((DoorRefused, DoorUnreachable)) as waiting:
            await boot(world, world.machine("tpm"), seconds=1.0)
        assert "values-not-published" in str(waiting.value)
