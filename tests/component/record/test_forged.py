"""Batches that are not by the door whose name they carry: none of them gets into the record, and all of them are told of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.keys.errors import RecordError
from fastness.keys.keyrings import PUBLISHED_FOR
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.events import EVENTS
from fastness.observe import metrics
from fastness.record.live.door_keys import DOOR_KEYS, REGISTRY, RecordRole, registered_doors
from fastness.record.live.record import ClusterRecord
from fastness.record.signing import LATEST, batch_name, signed
from tests.component.record.conftest import World, entry
from tests.virtual import SeededEntropy

STRANGER = Ed25519Signer(SecretBytes(b"s" * 32))


def door(world: World, seed: int = 1, role: RecordRole = "broker") -> ClusterRecord:
    return ClusterRecord(world.cluster, world.clock, SeededEntropy(seed), role)


async def key_of(world: World, role: RecordRole) -> Ed25519Signer:
    """What somebody holds who took a door of this role over."""
    ring = await DOOR_KEYS[role].open(world.cluster, SeededEntropy(77), world.clock.now())
    return Ed25519Signer(ring[0].material)


async def forge(
    world: World, name: str, signer: Ed25519Signer, *, number: int = 1, time: str = "", **change: Any
) -> str:
    """Write a batch in the name of a door."""
    moment = time or world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    entries = [{"time": moment, "what": "release", "who": "nobody", "resource": "forged"}]
    spec = {**signed({"door": name, "sequence": number, "entries": entries}, signer), **change}
    meta = {"name": change.pop("called", "") or batch_name(name, number)}
    body = {"apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "metadata": meta, "spec": spec}
    await world.cluster.create(AUDIT_BATCH.resource, body)
    return str(meta["name"])


def _counted(reason: str) -> float:
    return metrics.REGISTRY.value("fastness_record_refused_total", {"reason": reason}) or 0.0


async def refused(world: World) -> list[tuple[str, str]]:
    """The batches that the record says were refused, with the reasons; nothing of them is in it, and none is left."""
    await world.step()
    record = await world.record()
    assert "forged" not in {entry.get("resource") for entry in record}
    assert (await world.cluster.list(AUDIT_BATCH.resource)).items == []
    return [
        (entry["detail"]["batch"], entry["detail"]["reason"]) for entry in record if entry["what"] == "record-refused"
    ]


async def test_a_batch_of_nobody_that_is_registered_is_refused_and_told(world: World) -> None:
    before = _counted("unknown-door")
    name = await forge(world, "intruder-1", STRANGER)
    assert await refused(world) == [(name, "unknown-door")]
    assert _counted("unknown-door") == before + 1
    events = [event for event in (await world.cluster.list(EVENTS)).items if event["reason"] == "RecordRefused"]
    assert [(event["type"], name in event["message"]) for event in events] == [("Warning", True)]


async def test_a_batch_in_the_name_of_a_door_by_another_key_is_refused_and_the_door_goes_on(world: World) -> None:
    record = door(world)
    await record.append(entry(0))
    await world.step()
    name = await forge(world, record.door, STRANGER, number=2)
    with pytest.raises(RecordError):
        await record.append(entry(1))
    assert await refused(world) == [(name, "unknown-key")]
    await record.append(entry(1))
    await world.step()
    whats = [written["what"] for written in await world.record()]
    assert whats == ["release", "record-refused", "release", "release"], (
        "what was not known to be written is written first"
    )


async def test_the_key_of_one_door_does_not_sign_for_another(world: World) -> None:
    await door(world, role="broker").append(entry(0))
    await world.step()
    name = await forge(world, "broker-ffffffffffffffff", await key_of(world, "gate"))
    assert await refused(world) == [(name, "unknown-key")]


async def test_a_batch_that_was_changed_after_it_was_signed_is_refused(world: World) -> None:
    entries = [{"time": "2026-01-01T00:00:00Z", "what": "release", "who": "somebody", "resource": "forged"}]
    name = await forge(world, "gate-1", await key_of(world, "gate"), entries=entries)
    other = await forge(world, "gate-2", await key_of(world, "gate"), signature="AAAA")
    assert sorted(await refused(world)) == [(name, "bad-signature"), (other, "bad-signature")]


async def test_a_batch_under_a_name_that_is_not_its_number_is_refused(world: World) -> None:
    name = await forge(world, "gate-1", await key_of(world, "gate"), called="gate-1-000000000002")
    assert await refused(world) == [(name, "wrong-name")]


async def test_entries_that_are_older_than_the_last_one_of_their_door_are_refused(world: World) -> None:
    record, key = door(world, role="gate"), await key_of(world, "gate")
    await record.append(entry(0))
    await world.step()
    name = await forge(world, record.door, key, number=2, time="2020-01-01T00:00:00Z")
    assert await refused(world) == [(name, "backdated")]


async def test_a_stolen_key_opens_no_new_door_in_the_past(world: World) -> None:
    """Whoever holds the key of a role may name a door as it likes: one that never wrote has no last entry to compare with."""
    key, taken = await key_of(world, "gate"), world.clock.now()
    times = [(taken - by).strftime("%Y-%m-%dT%H:%M:%SZ") for by in (LATEST + timedelta(minutes=1), timedelta(days=30))]
    names = [await forge(world, f"gate-{number}", key, time=time) for number, time in enumerate(times)]
    assert sorted(await refused(world)) == [(name, "backdated") for name in names]


async def test_a_new_door_whose_clock_is_late_by_minutes_is_believed(world: World) -> None:
    time = (world.clock.now() - LATEST + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await forge(world, "gate-1", await key_of(world, "gate"), time=time)
    await world.step()
    assert [entry["resource"] for entry in await world.record()] == ["forged"]


async def test_a_batch_whose_entries_go_back_in_time_is_refused(world: World) -> None:
    times = ("2026-11-16T12:00:00Z", "2026-11-16T11:00:00Z")
    entries = [{"time": time, "what": "release", "who": "nobody", "resource": "forged"} for time in times]
    spec = signed({"door": "gate-1", "sequence": 1, "entries": entries}, await key_of(world, "gate"))
    meta = {"name": batch_name("gate-1", 1)}
    body = {"apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "metadata": meta, "spec": spec}
    await world.cluster.create(AUDIT_BATCH.resource, body)
    assert await refused(world) == [(meta["name"], "backdated")]


async def test_a_clock_that_is_set_back_leaves_a_door_its_place(world: World) -> None:
    record = door(world)
    await record.append(entry(0))
    await world.step()
    world.clock._start -= timedelta(hours=2)
    await record.append(entry(1))
    assert await refused(world) == []
    times = [written["time"] for written in await world.record()]
    assert times == sorted(times)


async def test_a_door_registers_its_next_key_before_it_signs_with_it(world: World) -> None:
    record = door(world)
    await record.append(entry(0))
    await world.step()
    first = await registered_doors(world.cluster)
    await world.clock.advance(DOOR_KEYS["broker"].lifetime.total_seconds())
    await record.append(entry(1))
    await world.clock.advance(PUBLISHED_FOR.total_seconds())
    await record.append(entry(2))
    keys = {batch["spec"]["key"] for batch in (await world.cluster.list(AUDIT_BATCH.resource)).items}
    assert len(keys) == 2
    assert await refused(world) == []
    assert set(first["broker"]) < set((await registered_doors(world.cluster))["broker"])
    assert set((await world.cluster.get(CONFIG_MAP.resource, REGISTRY, NAMESPACE))["data"]) == {"broker"}
