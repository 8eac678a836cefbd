"""What gate and broker withhold at the last moment: from machines that lost trust while the record was written, and from all
machines while a door cannot know.

Machines are real agents over TLS; what changes beneath the doors is the cluster, or what their caches hear of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.fetch import from_broker, from_gate
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.apiserver import LocalCluster
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Unavailable
from fastness.kube.informers import Informer
from fastness.kube.informers.informer import SILENCE
from fastness.kube.port import PatchType, WriteOptions
from fastness.observe import metrics
from fastness.protocol.delivered import Question
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.release.live import releases, revocations
from fastness.sim.tee.images import default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord
from tests.patience import PATIENCE

STATUS = "default/attestation-status/status"
QUESTION = Question("n" * 24)
RELEASED, REVOKED, UNKNOWN = "ok", "403 revoked", "503 out-of-touch"


class Desk:
    """A machine that proved itself, in front of both doors, and everything that they write down."""

    def __init__(self, world: DeliveringWorld, client: BrokerClient, key: str) -> None:
        self.world, self.client, self.key = world, client, key
        self.entries: list[RecordEntry] = []
        self.between: Callable[[], Awaitable[None]] | None = None

    async def answer(self, door: str, question: Question = QUESTION) -> str:
        """What a door answers: `ok`, or how it refuses."""
        world = self.world
        gate = f"https://127.0.0.1:{world.gate.port}"
        try:
            if door == "gate":
                await from_gate(gate, world.trust.tls, self.client, "worker", question, world.clock.now)
            elif question.rendered:
                await from_broker(self.client, "worker", question)
            else:
                await self.client.resource(STATUS)
        except DoorRefused as refused:
            later = "" if refused.status != 503 or refused.retry_after else " without Retry-After"
            return f"{refused.status} {refused.reason}{later}"
        return RELEASED

    async def quarantine(self) -> None:
        """Take trust away from the machine."""
        (machine,) = (await self.world.cluster.list(MACHINE.resource)).items
        name, patch = machine["metadata"]["name"], {"spec": {"approval": "Quarantined"}}
        await self.world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)

    async def send(self, rendered: str) -> None:
        """Send the machine to another config, as the rollout does."""
        (machine,) = (await self.world.cluster.list(MACHINE.resource)).items
        name, patch = machine["metadata"]["name"], {"status": {"desiredConfig": rendered}}
        status = WriteOptions(subresource="status")
        await self.world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, status)

    async def distrust(self) -> None:
        """Distrust its key, and wait until the doors have heard."""
        spec = {"key": self.key, "reason": "a test"}
        body = {"apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": "bad"}, "spec": spec}
        await self.world.cluster.create(DISTRUST.resource, body)
        cache = self.world.informers.of(DISTRUST.resource)
        await until(lambda: cache.get("", "bad") is not None)

    async def expire(self) -> None:
        """Let the token grow old."""
        self.world.clock.ahead += timedelta(minutes=11)


@pytest.fixture
async def desk(embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    async with delivering_world(embedded_server.cluster) as world:
        await world.publish(default_image().reference_values("tpm"))
        attester = world.machine()
        await boot_once(attester, await world.ask(), world.trust, world.patience())
        url = f"https://127.0.0.1:{world.doors.broker.port}"
        async with BrokerClient(url, world.trust.tls, attester, ENTROPY) as client:
            await client.attest()
            desk = Desk(world, client, attester.machine.thumbprint)
            for record in (MemoryRecord, ClusterRecord):
                _overhear(desk, record, monkeypatch)
            yield desk


def _overhear(desk: Desk, record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write = record.append

    async def append(self: Any, entry: RecordEntry) -> None:
        await write(self, entry)
        desk.entries.append(entry)
        if entry.what == "release" and desk.between is not None:
            happen, desk.between = desk.between, None
            await happen()

    monkeypatch.setattr(record, "append", append)


def recorded(desk: Desk) -> list[tuple[str, str]]:
    """What is on the record, and why."""
    return [(entry.what, entry.detail.get("code", "")) for entry in desk.entries]


@pytest.mark.parametrize("door", ["gate", "broker"])
@pytest.mark.parametrize("hears", [True, False], ids=["cache-hears", "cache-is-late"])
async def test_a_quarantine_that_lands_after_the_record_was_written_is_honoured(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, door: str, hears: bool
) -> None:
    assert await desk.answer(door) == RELEASED
    if not hears:
        monkeypatch.setattr(Informer, "_take", lambda _self, _event: None)
    desk.entries, desk.between = [], desk.quarantine
    assert await desk.answer(door) == REVOKED
    assert recorded(desk) == [("release", ""), ("withheld", "revoked"), ("refusal", "revoked")]
    released, withheld, _ = desk.entries
    assert (withheld.grant, withheld.verdict, withheld.resource, withheld.who) == (
        released.grant, released.verdict, released.resource, released.who,
    )  # fmt: skip
    # Whoever was found out is not on its way out again, whatever the cache says: nothing more is written of it.
    assert await desk.answer(door) == REVOKED
    assert [entry.what for entry in desk.entries].count("release") == 1


@pytest.mark.parametrize("door", ["gate", "broker"])
async def test_a_distrust_that_lands_after_the_record_was_written_is_honoured(desk: Desk, door: str) -> None:
    desk.between = desk.distrust
    assert await desk.answer(door) == REVOKED
    assert recorded(desk)[:2] == [("release", ""), ("withheld", "revoked")]


@pytest.mark.parametrize("door", ["gate", "broker"])
async def test_a_config_that_is_taken_back_while_the_record_is_written_does_not_leave(desk: Desk, door: str) -> None:
    config = desk.world.informers.of(CONFIDENTIAL_CLUSTER.resource)
    delivery = {"via": door.capitalize(), "sync": "OnDemand"}
    patch = {"spec": {"delivery": delivery}}
    await desk.world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    await until(lambda: (config.get("", "cluster") or {})["spec"].get("delivery") == delivery)
    question = Question("n" * 24, rendered=f"rendered-worker-{'a' * 32}")
    await desk.send(question.rendered)
    assert await desk.answer(door, question) == RELEASED
    desk.entries, desk.between = [], lambda: desk.send(f"rendered-worker-{'b' * 32}")
    assert await desk.answer(door, question) == "403 not-assigned"
    assert recorded(desk)[:2] == [("release", ""), ("withheld", "not-assigned")]


@pytest.mark.parametrize("door", ["gate", "broker"])
async def test_a_proof_that_ends_while_the_record_is_written_opens_nothing(desk: Desk, door: str) -> None:
    desk.between = desk.expire
    assert await desk.answer(door) == "401 verdict-expired"
    assert recorded(desk)[:2] == [("release", ""), ("withheld", "verdict-expired")]


@pytest.mark.parametrize("door", ["gate", "broker"])
@pytest.mark.parametrize("silent", [True, False], ids=["says-nothing", "fails"])
async def test_nothing_leaves_while_the_api_does_not_answer_for_the_machine(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, door: str, silent: bool
) -> None:
    """Caches are in touch and the record can be written: the one read of this release hangs, or fails."""
    reads, get = [], LocalCluster.get

    async def stuck(self: LocalCluster, resource: Any, name: str, namespace: str = "") -> Any:
        if resource != MACHINE.resource:
            return await get(self, resource, name, namespace)
        reads.append(name)
        if silent:
            await asyncio.Event().wait()
        raise Unavailable("down")

    with monkeypatch.context() as broken:
        broken.setattr(LocalCluster, "get", stuck)
        broken.setattr(revocations, "ASK_SECONDS", 0.01)
        assert await desk.answer(door) == UNKNOWN
    assert len(reads) == 1
    assert recorded(desk) == [("release", ""), ("withheld", "out-of-touch")]
    assert await desk.answer(door) == RELEASED


@pytest.mark.parametrize("door", ["gate", "broker"])
@pytest.mark.parametrize(
    "cache", ["machines", "distrusts", "appraisalpolicies", "confidentialclusters", "resourcebindings"]
)
async def test_a_door_whose_cache_has_been_silent_for_too_long_releases_nothing_until_it_hears_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, door: str, cache: str
) -> None:
    ages = {"age": SILENCE}
    with monkeypatch.context() as quiet:
        quiet.setattr(Informer, "age", property(lambda self: ages["age"] if self.resource.plural == cache else 0.0))
        assert await desk.answer(door) == RELEASED
        ages["age"] = SILENCE + 0.1
        knows = door == "gate" and cache == "resourcebindings"  # which say nothing of configurations
        desk.entries.clear()
        assert await desk.answer(door) == (RELEASED if knows else UNKNOWN)
        assert [entry.what for entry in desk.entries] == (["release"] if knows else [])
        assert b'fastness_door_cache_age_seconds{door="gate"}' in metrics.exposition()
    assert await desk.answer(door) == RELEASED


async def test_a_broker_that_cannot_know_judges_nobody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [
        machine["metadata"]["resourceVersion"] for machine in (await desk.world.cluster.list(MACHINE.resource)).items
    ]
    with monkeypatch.context() as quiet:
        quiet.setattr(Informer, "age", property(lambda _self: SILENCE + 1))
        with pytest.raises(DoorRefused) as refused:
            await desk.client.attest()
        assert (refused.value.status, refused.value.reason) == (503, releases.OUT_OF_TOUCH)
    after = [
        machine["metadata"]["resourceVersion"] for machine in (await desk.world.cluster.list(MACHINE.resource)).items
    ]
    assert after == before
    await desk.client.attest()


@pytest.mark.parametrize("door", ["gate", "broker"])
async def test_touch_that_is_lost_while_the_record_is_written_stops_the_release(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    async def lose() -> None:
        monkeypatch.setattr(Informer, "age", property(lambda _self: SILENCE + 1))

    desk.between = lose
    assert await desk.answer(door) == UNKNOWN
    assert recorded(desk) == [("release", ""), ("withheld", "out-of-touch")]


async def test_a_cluster_that_begins_to_enforce_while_the_record_is_written_releases_nothing_for_a_ticket(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No machine is known who could be asked about: the mode that the gate hears of is what stops it."""
    async with delivering_world(embedded_server.cluster, {"mode": "Audit", "simulated": True}) as world:
        ticket, write = await world.ticket(), world.record.append

        async def append(entry: RecordEntry) -> None:
            await write(entry)
            if entry.what == "release":
                patch = {"spec": {"mode": "Enforce"}}
                await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
                cache = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
                await until(lambda: (cache.get("", "cluster") or {})["spec"]["mode"] == "Enforce")

        monkeypatch.setattr(world.record, "append", append)
        async with httpx.AsyncClient(verify=world.trust.tls, timeout=PATIENCE) as http:
            url = f"https://127.0.0.1:{world.gate.port}/config/worker"
            answer = await http.get(url, headers={"authorization": f"Bearer {ticket.reveal()}"})
        assert (answer.status_code, answer.json()["code"]) == (403, "audit-basis")
        assert world.shelf.body not in answer.content
        assert [entry.what for entry in world.record.entries] == ["release", "withheld"]
