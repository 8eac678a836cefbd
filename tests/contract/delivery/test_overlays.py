"""Overlays through gate and broker: the same bytes for the same machine, and nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.configs import AttestedConfigs, ConfigRefused
from fastness.agent.boot.enrol import Doors, DoorUnreachable
from fastness.agent.boot.prove import DoorRefused
from fastness.formats import data_url as dataurl
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig import ignition
from fastness.machineconfig.overlay.merged import Laid, overlay_in
from fastness.machineconfig.overlay.overlay import examine
from fastness.machineconfig.overlay.targets import overlays_of
from fastness.machineconfig.serving import document, rendered_object
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.contract.delivery.test_delivery import releases, spec
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

WAYS = (("Gate", "OnDemand"), ("Broker", "OnDemand"))
COPIES = (("Broker", "Scheduled"), ("Broker", "OnChange"))
STATUS = WriteOptions(subresource="status")
DAY_TWO = f"rendered-worker-{'a' * 32}"
RENDERED = {"metadata": {"name": "rendered-worker-1"}, "spec": {"config": {"ignition": {"version": "3.5.0"}}}}


@pytest.fixture(params=WAYS, ids="-".join)
async def world(request: pytest.FixtureRequest, embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with opened(embedded_server, *request.param) as delivering:
        yield delivering


@pytest.fixture(params=COPIES, ids="-".join)
async def copying(request: pytest.FixtureRequest, embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with opened(embedded_server, *request.param) as delivering:
        yield delivering


@asynccontextmanager
async def opened(embedded: Embedded, via: str, sync: str) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded.cluster, spec(via, sync)) as delivering:
        for tee in ("tpm", "snp"):
            await delivering.publish(default_image().reference_values(tee), f"values-{tee}")
        delivering.shelf.body = document(RENDERED, "3.3.0")
        yield delivering


async def boot(world: DeliveringWorld, machine: SimAttester, seconds: float = PATIENCE) -> bytes:
    """What a machine is handed; the agent has checked the signature over it."""
    return (await boot_once(machine, await world.ask(), world.trust, world.patience(seconds))).body


async def uid_of(world: DeliveringWorld, machine: SimAttester) -> str:
    machines = (await world.cluster.list(MACHINE.resource)).items
    thumbprint = machine.machine.thumbprint
    return next(str(obj["metadata"]["uid"]) for obj in machines if obj["status"]["keyThumbprint"] == thumbprint)


async def lay(world: DeliveringWorld, name: str, match: JsonObject, text: str = "x", **more: Any) -> None:
    """Create an overlay with one file, and wait until the doors know it."""
    files = [{"path": f"/etc/{name}", "contents": {"source": dataurl.encode(text.encode())}}]
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}, **more}
    body = {
        "apiVersion": NODE_OVERLAY.api_version, "kind": NODE_OVERLAY.kind, "metadata": {"name": name},
        "spec": {"match": match, "config": config},
    }  # fmt: skip
    await world.cluster.create(NODE_OVERLAY.resource, body)
    await until(lambda: world.informers.of(NODE_OVERLAY.resource).get("", name) is not None)


def files_of(body: bytes) -> dict[str, bytes]:
    files = ignition.upgrade(body)["storage"]["files"]
    return {entry["path"]: dataurl.contents(entry["contents"]) for entry in files}


async def test_a_machine_gets_its_overlay_and_another_of_its_pool_does_not(world: DeliveringWorld) -> None:
    mine, other = world.machine("tpm"), world.machine("tpm")
    assert await boot(world, mine) == await boot(world, other) == world.shelf.body
    await lay(world, "rack", {"machines": [await uid_of(world, mine)]}, "rack 7")
    handed = await boot(world, mine)
    assert files_of(handed)["/etc/rack"] == b"rack 7"
    assert await boot(world, other) == world.shelf.body


async def test_where_the_broker_delivers_copies_a_machine_with_overlays_waits_and_another_does_not(
    copying: DeliveringWorld,
) -> None:
    mine, other = copying.machine("tpm"), copying.machine("tpm")
    assert await boot(copying, mine) == await boot(copying, other) == copying.shelf.body
    await lay(copying, "rack", {"machines": [await uid_of(copying, mine)]}, "rack 7")
    with pytest.raises((DoorRefused, DoorUnreachable), match="NodeOverlays"):
        await boot(copying, mine, 1.0)
    assert await boot(copying, other) == copying.shelf.body


async def test_what_a_machine_proved_chooses_its_overlay(world: DeliveringWorld) -> None:
    await lay(world, "for-snp", {"properties": {"tee": "snp"}})
    await lay(world, "for-tpm", {"properties": {"tee": "tpm"}})
    assert "/etc/for-snp" in files_of(await boot(world, world.machine("snp")))
    handed = files_of(await boot(world, world.machine("tpm")))
    assert "/etc/for-tpm" in handed
    assert "/etc/for-snp" not in handed


async def test_what_a_host_writes_on_its_machine_chooses_nothing(world: DeliveringWorld) -> None:
    machine = world.machine("tpm")
    await boot(world, machine)
    (obj,) = (await world.cluster.list(MACHINE.resource)).items
    labelled = {"metadata": {"labels": {"tee": "snp"}, "annotations": {"tee": "snp"}}}
    meta = obj["metadata"]
    await world.cluster.patch(MACHINE.resource, meta["name"], labelled, PatchType.MERGE, meta["namespace"])
    await lay(world, "for-snp", {"properties": {"tee": "snp"}})
    assert await boot(world, machine) == world.shelf.body


async def test_the_record_names_the_overlays_and_the_machine_remembers_them(world: DeliveringWorld) -> None:
    await lay(world, "b", {"properties": {"tee": "tpm"}})
    await lay(world, "a", {"properties": {"tee": "tpm"}})
    handed = await boot(world, world.machine("tpm"))
    (entry,) = await releases(world)
    laid = Laid.read(files_of(handed)[names.OVERLAY_FILE])
    assert [version.partition("@")[0] for version in laid.versions] == ["a", "b"]
    assert entry["detail"]["overlays"] == " ".join(laid.versions)
    assert entry["detail"]["config"] == "rendered-worker-1"


async def test_a_changed_overlay_holds_for_the_next_boot(world: DeliveringWorld) -> None:
    await lay(world, "motto", {"properties": {"tee": "tpm"}}, "before")
    machine = world.machine("tpm")
    assert files_of(await boot(world, machine))["/etc/motto"] == b"before"
    files = [{"path": "/etc/motto", "contents": {"source": dataurl.encode(b"after")}}]
    patch = {"spec": {"config": {"storage": {"files": files}}}}
    changed = await world.cluster.patch(NODE_OVERLAY.resource, "motto", patch, PatchType.MERGE)
    overlays, version = world.informers.of(NODE_OVERLAY.resource), changed["metadata"]["resourceVersion"]
    await until(lambda: (overlays.get("", "motto") or {})["metadata"]["resourceVersion"] == version)
    assert files_of(await boot(world, machine))["/etc/motto"] == b"after"


async def test_an_overlay_that_cannot_be_merged_makes_its_machines_wait(world: DeliveringWorld) -> None:
    await lay(world, "bad", {"properties": {"tee": "tpm"}}, kernelArguments={"shouldExist": ["init=/bin/sh"]})
    with pytest.raises((DoorRefused, DoorUnreachable)) as waiting:
        await boot(world, world.machine("tpm"), seconds=1.0)
    assert "overlay-invalid" in str(waiting.value)
    assert await releases(world) == []
    assert await boot(world, world.machine("snp")) == world.shelf.body


async def test_both_ways_hand_out_the_same_bytes(embedded_server: Embedded) -> None:
    async with delivering_world(embedded_server.cluster, spec("Gate")) as world:
        await world.publish(default_image().reference_values("tpm"))
        world.shelf.body = document(RENDERED, "3.3.0")
        await lay(world, "one", {"properties": {"tee": "tpm"}})
        machine = world.machine("tpm")
        by_gate = await boot(world, machine)
        patch = {"spec": {"delivery": {"via": "Broker"}}}
        await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
        clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
        await until(lambda: (clusters.get("", "cluster") or {})["spec"]["delivery"]["via"] == "Broker")
        assert await boot(world, machine) == by_gate != world.shelf.body
        first, second = await releases(world)
        assert first["detail"]["overlays"] == second["detail"]["overlays"]


async def sent(world: DeliveringWorld, machine: SimAttester, overlay: str, config: str = DAY_TWO) -> None:
    """As the rollout writes on the Machine where its node is sent, before the node hears of it."""
    thumbprint = machine.machine.thumbprint
    objects = (await world.cluster.list(MACHINE.resource)).items
    name = next(obj["metadata"]["name"] for obj in objects if obj["status"]["keyThumbprint"] == thumbprint)
    patch = {"status": {"desiredConfig": config, "desiredOverlay": overlay}}
    await world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, STATUS)


def running(world: DeliveringWorld, machine: SimAttester) -> AttestedConfigs:
    doors = Doors(world.urls[0].broker, world.urls[0].gate)
    world.shelf.body = rendered_object({**RENDERED, "kind": "MachineConfig", "metadata": {"name": DAY_TWO}})
    return AttestedConfigs(machine, lambda: doors, lambda: world.trust, world.clock, ENTROPY)


def digest_of(world: DeliveringWorld, name: str) -> str:
    stored = world.informers.of(NODE_OVERLAY.resource).get("", name)
    assert stored is not None
    return overlays_of([examine(stored)]) or ""


async def test_a_running_machine_is_given_the_merged_config_that_names_its_overlays(world: DeliveringWorld) -> None:
    mine = world.machine("tpm")
    await boot(world, mine)
    await lay(world, "rack", {"machines": [await uid_of(world, mine)]}, "rack 7")
    digest = digest_of(world, "rack")
    await sent(world, mine, digest)
    config = await running(world, mine).fetch(DAY_TWO, digest)
    assert overlay_in(config) == digest
    (entry,) = (entry for entry in config["spec"]["config"]["storage"]["files"] if entry["path"] == "/etc/rack")
    assert dataurl.contents(entry["contents"]) == b"rack 7"
    last = (await releases(world))[-1]
    assert last["detail"]["overlays"].startswith("rack@")


async def test_a_node_that_asks_for_the_overlay_of_another_is_refused_for_good(world: DeliveringWorld) -> None:
    mine, other = world.machine("tpm"), world.machine("tpm")
    for machine in (mine, other):
        await boot(world, machine)
    await lay(world, "rack", {"machines": [await uid_of(world, mine)]}, "rack 7")
    digest = digest_of(world, "rack")
    await sent(world, mine, digest)
    await sent(world, other, "")
    thief = running(world, other)
    with pytest.raises(ConfigRefused, match="not-assigned"):
        await thief.fetch(DAY_TWO, digest)
    assert overlay_in(await thief.fetch(DAY_TWO)) == "", "its own it gets"
    with pytest.raises(ConfigRefused, match="not-assigned"):
        await running(world, mine).fetch(DAY_TWO)


async def test_who_has_the_overlay_of_another_written_on_its_machine_still_does_not_get_it(
    world: DeliveringWorld,
) -> None:
    """What is merged follows from the token: a Machine that says otherwise, by mistake or by force, opens nothing."""
    mine, other = world.machine("tpm"), world.machine("tpm")
    for machine in (mine, other):
        await boot(world, machine)
    await lay(world, "rack", {"machines": [await uid_of(world, mine)]}, "rack 7")
    await sent(world, other, digest_of(world, "rack"))
    with pytest.raises(Unavailable, match="overlay-changed"):
        await running(world, other).fetch(DAY_TWO, digest_of(world, "rack"))


async def test_an_overlay_that_changed_since_the_node_was_told_makes_it_wait_for_the_next_word(
    world: DeliveringWorld,
) -> None:
    mine = world.machine("tpm")
    await boot(world, mine)
    await lay(world, "rack", {"machines": [await uid_of(world, mine)]}, "rack 7")
    before = digest_of(world, "rack")
    await sent(world, mine, before)
    files = [{"path": "/etc/rack", "contents": {"source": dataurl.encode(b"rack 8")}}]
    await world.cluster.patch(
        NODE_OVERLAY.resource, "rack", {"spec": {"config": {"storage": {"files": files}}}}, PatchType.MERGE
    )
    await until(lambda: digest_of(world, "rack") != before)
    agent = running(world, mine)
    with pytest.raises(Unavailable, match="overlay-changed"):
        await agent.fetch(DAY_TWO, before)
    await sent(world, mine, digest_of(world, "rack"))
    assert overlay_in(await agent.fetch(DAY_TWO, digest_of(world, "rack"))) != before


async def test_where_the_broker_delivers_copies_a_running_machine_with_overlays_waits_too(
    copying: DeliveringWorld,
) -> None:
    mine = copying.machine("tpm")
    await boot(copying, mine)
    await lay(copying, "rack", {"machines": [await uid_of(copying, mine)]}, "rack 7")
    digest = digest_of(copying, "rack")
    for overlay in (digest, ""):
        await sent(copying, mine, overlay)
        with pytest.raises(Unavailable, match="overlaid"):
            await running(copying, mine).fetch(DAY_TWO, overlay)
