"""Releases and refusals at every door, as people see them with `kubectl get events`, and what a flood makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from fastness.agent.boot.boot import BootRefused, boot_once
from fastness.agent.boot.fetch import GateRefused, from_gate
from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.enrolment.live import door_events as doorevents
from fastness.enrolment.live.door_events import DoorEvents
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import Subject
from fastness.kube.events import EVENTS
from fastness.kube.port import Cluster, Scope
from fastness.observe import metrics
from fastness.protocol.delivered import Question
from fastness.sim.tee.images import changed, default_image
from tests.delivering import ENTROPY, delivering_world
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import VirtualClock

QUESTION = Question("n" * 24)
NO = Refusal(401, "bad-token", "not one of ours")


async def events(cluster: Cluster, namespace: str, **fields: str) -> list[JsonObject]:
    """Events of a namespace by fields of their own and of what they are about."""
    stored = (await cluster.list(EVENTS, Scope(namespace))).items
    return [
        event
        for event in stored
        if all((event | event["involvedObject"]).get(name) == text for name, text in fields.items())
    ]


async def test_a_machines_way_can_be_read_from_its_events(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with delivering_world(cluster) as world:
        await world.publish(default_image().reference_values("tpm"))
        machine = world.machine()
        await boot_once(machine, await world.ask(), world.trust, world.patience())
        gate, broker = f"https://127.0.0.1:{world.gate.port}", f"https://127.0.0.1:{world.doors.broker.port}"
        async with BrokerClient(broker, world.trust.tls, machine, ENTROPY) as client:
            await client.attest()
            await client.resource("default/attestation-status/status")
            for _ in range(3):
                await from_gate(gate, world.trust.tls, client, "worker", QUESTION, world.clock.now)
                with pytest.raises(GateRefused):
                    await from_gate(gate, world.trust.tls, client, "master", QUESTION, world.clock.now)
            with pytest.raises(BrokerRefused):
                await client.resource("pool/master/secret")
        bad = world.machine(image=changed(default_image(), command_line="init=/bin/sh"))
        with pytest.raises(BootRefused):
            await boot_once(bad, await world.ask(), world.trust, world.patience())
        async with httpx.AsyncClient(verify=world.trust.tls) as http:
            for _ in range(5):
                assert (await http.get(f"{gate}/config/worker")).status_code == 401
            used = await world.ticket(uses=1)
            for _ in range(2):
                headers = {"authorization": f"Bearer {used.reveal()}", "content-type": "application/json"}
                await http.post(f"{world.server}/v1/enrol", content=b'{"tee":"snp","key":{}}', headers=headers)
            assert (await http.post(f"{world.server}/v1/enrol")).status_code == 401
    name = f"machine-{machine.machine.thumbprint.removeprefix('sha256:')[:20]}"
    recorded = await events(cluster, NAMESPACE, name=name)
    assert {(event["source"]["component"], event["type"], event["reason"], event["count"]) for event in recorded} == {
        ("fastness-enrolment", "Normal", "Enrolled", 1),
        ("fastness-gate", "Normal", "Released", 4),
        ("fastness-gate", "Warning", "Refused", 3),
        ("fastness-broker", "Normal", "Released", 1),
        ("fastness-broker", "Warning", "Refused", 1),
    }
    assert all(event["involvedObject"]["uid"] for event in recorded)
    (refused,) = [
        event for event in recorded if event["reason"] == "Refused" and event["source"]["component"] == "fastness-gate"
    ]
    assert refused["message"] == "the gate refused: wrong-pool: this machine belongs to another pool"
    (failed,) = await events(
        cluster, NAMESPACE, reason="Refused", name=f"machine-{bad.machine.thumbprint.removeprefix('sha256:')[:20]}"
    )
    assert failed["message"].startswith("the broker refused: ")
    strangers = await events(cluster, "default", kind=CONFIDENTIAL_CLUSTER.kind, reason="StrangersRefused")
    assert {(event["source"]["component"], event["count"]) for event in strangers} == {
        ("fastness-gate", 5),
        ("fastness-enrolment", 1),
    }


class Told:
    """A door's events against a cluster that counts writes."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        for verb in ("create", "patch"):
            monkeypatch.setattr(cluster, verb, self._counting(getattr(cluster, verb)), raising=False)

    def _counting(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            self.writes += 1
            return real(*args, **more)

        return call


class Cache:
    """An informer without objects."""

    def get(self, namespace: str, name: str) -> None:
        return None


def door(cluster: Cluster, name: str = "gate") -> DoorEvents:
    return DoorEvents(cluster, name, VirtualClock(), Cache())  # type: ignore[arg-type]  # all that is asked of one


def subject(number: int) -> Subject:
    return Subject(f"uid-{number}", f"machine-{number}", f"sha256:{number:064x}", "worker")


async def test_a_flood_is_one_event_and_one_write_for_each_code(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = embedded_server.cluster
    counted, here = Told(cluster, monkeypatch), door(cluster)
    for _ in range(10_000):
        here.stranger_refused(NO)
    await here.flush()
    await here.flush()
    assert counted.writes == 1
    here.stranger_refused(NO)
    await door(cluster).flush()
    await here.flush()
    (event,) = await events(cluster, "default", reason="StrangersRefused")
    assert event["count"] == 10_001


async def test_two_doors_add_to_the_same_event_and_lose_nothing(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    doors = [door(cluster) for _ in range(3)]
    for _ in range(2):
        for event in doors:
            event.stranger_refused(NO)
        while any(event._waiting for event in doors):
            await asyncio.gather(*(event.flush() for event in doors))
    (stored,) = await events(cluster, "default", reason="StrangersRefused")
    assert stored["count"] == 6


async def test_good_news_of_many_machines_is_folded_and_warnings_come_first(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = embedded_server.cluster
    counted, here = Told(cluster, monkeypatch), door(cluster)
    for number in range(100):
        here.released(subject(number), "pool/worker/config")
    for number in range(doorevents.MOST_WARNINGS + 5):
        here.refused(subject(number), Refusal(403, "revoked", "this machine is no longer trusted"))
    await here.flush()
    assert counted.writes == doorevents.MOST_WARNINGS + doorevents.MOST_NORMAL + 1
    (folded,) = await events(cluster, "default", reason="Released")
    assert folded["count"] == 100 - doorevents.MOST_NORMAL
    await here.flush()
    assert len(await events(cluster, NAMESPACE, reason="Refused")) == doorevents.MOST_WARNINGS + 5


async def test_good_news_is_told_once_a_minute_with_one_write_and_the_end_tells_the_rest(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    counted, here = Told(cluster, monkeypatch), DoorEvents(cluster, "gate", clock, Cache())  # type: ignore[arg-type]

    async def rounds(count: int) -> int:
        for _ in range(count):
            for number in range(2 * doorevents.MOST_NORMAL):
                here.released(subject(number), "pool/worker/config")
            await here.flush()
            await clock.advance(doorevents.GATHER_SECONDS)
        (event,) = await events(cluster, NAMESPACE, name="machine-0")
        return int(event["count"])

    assert await rounds(5) == 1
    assert counted.writes == 2 * doorevents.MOST_NORMAL + 1
    await clock.advance(doorevents.QUIET_SECONDS)
    assert await rounds(1) == 6
    assert counted.writes == 3 * doorevents.MOST_NORMAL + 2
    await rounds(3)
    await here.close()
    assert await rounds(0) == 9
    assert (
        sum(event["count"] for event in await events(cluster, NAMESPACE))
        + sum(event["count"] for event in await events(cluster, "default", reason="Released"))
        == 9 * 2 * doorevents.MOST_NORMAL
    )


async def test_an_event_that_went_is_told_anew(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    here = door(cluster)
    for _ in range(2):
        here.stranger_refused(NO)
        await here.flush()
        (event,) = await events(cluster, "default", reason="StrangersRefused")
        assert event["count"] == 1
        await cluster.delete(EVENTS, event["metadata"]["name"], "default")


async def test_what_waits_is_bounded_and_what_is_lost_is_counted(embedded_server: Embedded) -> None:
    before, here = _lost(), door(embedded_server.cluster)
    for number in range(doorevents.MOST_WAITING + 10):
        here.released(subject(number), "pool/worker/config")
    assert len(here._waiting) == doorevents.MOST_WAITING
    assert _lost() - before == 10


def _lost() -> float:
    sample = metrics.REGISTRY.value("fastness_door_events_lost_total")
    assert sample is not None
    return sample


async def test_nothing_is_told_before_a_round_and_a_round_needs_no_flush(embedded_server: Embedded) -> None:
    clock = VirtualClock()
    here = DoorEvents(embedded_server.cluster, "gate", clock, Cache())  # type: ignore[arg-type]
    running = asyncio.create_task(here.run())
    try:
        here.released(subject(1), "pool/worker/config")
        await clock.advance(doorevents.GATHER_SECONDS / 2)
        assert await events(embedded_server.cluster, NAMESPACE) == []
        await clock.advance(doorevents.GATHER_SECONDS)
        async with asyncio.timeout(PATIENCE):
            while not await events(embedded_server.cluster, NAMESPACE, reason="Released"):  # noqa: ASYNC110  # a write
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])
