"""The credential of a pool's own images: an administrator names it once, proven machines of that pool get it, and nobody else.

The loop that reads it, the doors and what machines ask them are the product's; everything goes over TLS.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.configs import ConfigRefused
from fastness.builds.loops.pull_credentials import PullCredentials
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NAMESPACE as NAMESPACES
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kube.client.pool import HttpsClient
from fastness.kube.controllers import Runner
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.machineconfig.trust.image_pull import NAME
from fastness.protocol.door import DoorRole
from fastness.sim.tee.images import default_image
from tests.component.release.delivery.test_node_trust import booted, configs, via_broker
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.lowering import lowered
from tests.unit.machineconfig.build import controller_config

CANARY, ROTATED = "canary-of-the-pool", "canary-of-tomorrow"
SECRETS = SECRET.resource


def pull_secret(name: str, password: str, user: str = "nodes", registry: str = "r.example") -> JsonObject:
    logins = {registry: {"auth": encoded(f"{user}:{password}")}, "other.example": {"auth": encoded("me:elsewhere")}}
    data = {".dockerconfigjson": encoded(json.dumps({"auths": logins}))}
    return {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": name, "namespace": names.OPERATOR_NAMESPACE}, "data": data,
    }  # fmt: skip


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def os_config(pool: str, registry: str = "r.example", **notes: str) -> JsonObject:
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": pool, "annotations": notes},
        "spec": {
            "machineConfigPool": {"name": pool}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": f"{registry}/os/worker:latest",
        },
    }  # fmt: skip


@asynccontextmanager
async def naming(
    embedded: Embedded, registry: str = "r.example", password: str = CANARY
) -> AsyncIterator[DeliveringWorld]:
    """Doors of a cluster that enforces, the loop of credentials, and an administrator who named one for pool worker."""
    cluster = embedded.cluster
    spec = controller_config()["spec"]["kubeAPIServerServingCAData"]
    await cluster.patch(
        CONTROLLER_CONFIG.resource, "machine-config-controller", {"spec": {"kubeAPIServerServingCAData": spec}},
        PatchType.MERGE,
    )  # fmt: skip
    with suppress(AlreadyExists):
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.OPERATOR_NAMESPACE}}
        await cluster.create(NAMESPACES.resource, place)
    async with delivering_world(cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"), "values-tpm")
        await cluster.create(SECRETS, pull_secret("push", "canary-that-pushes", "builder", registry))
        await cluster.create(SECRETS, pull_secret("nodes", password, registry=registry))
        await cluster.create(MACHINE_OS_CONFIG.resource, os_config("worker", registry, **{names.IMAGE_PULL: "nodes"}))
        loop = PullCredentials(cluster, delivering.informers, SIMULATED)
        work = asyncio.create_task(Runner([loop], delivering.informers, delivering.clock, ENTROPY).run())
        try:
            yield delivering
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with naming(embedded_server) as delivering:
        yield delivering


async def handed_out(world: DeliveringWorld, password: str) -> None:
    """Wait until doors have a credential, or none."""
    informer = world.served._trust._credentials  # type: ignore[attr-defined]

    def so() -> bool:
        text = base64.b64decode(((informer.get(NAMESPACE, NAME) or {}).get("data") or {}).get("worker", "")).decode()
        return encoded(f"nodes:{password}") in text if password else not text

    await until(so)


@pytest.mark.parametrize("sync", ["", "OnDemand"])
async def test_a_proven_machine_of_the_pool_gets_the_login_of_one_registry_and_its_rotation(
    world: DeliveringWorld, sync: str
) -> None:
    await handed_out(world, CANARY)
    agent = configs(world, await booted(world))
    if sync:
        await via_broker(world, sync)
    before = await agent.trust("worker")
    assert json.loads(before.image_pull_secret) == {"auths": {"r.example": {"auth": encoded(f"nodes:{CANARY}")}}}
    await world.cluster.patch(
        SECRETS, "nodes", {"data": pull_secret("nodes", ROTATED)["data"]}, PatchType.MERGE, names.OPERATOR_NAMESPACE
    )
    await handed_out(world, ROTATED)
    after = await agent.trust("worker")
    assert after.name != before.name
    assert encoded(f"nodes:{ROTATED}") in after.image_pull_secret
    assert encoded(f"nodes:{CANARY}") not in after.body.decode()


async def test_who_is_of_another_pool_unproven_or_unknown_gets_no_word_of_it(world: DeliveringWorld) -> None:
    await handed_out(world, CANARY)
    attester = world.machine()
    await boot_once(attester, await world.ask("infra"), world.trust, world.patience())
    other = configs(world, attester)
    assert encoded(f"nodes:{CANARY}") not in (await other.trust("infra")).body.decode()
    with pytest.raises(ConfigRefused, match="wrong-pool") as refusal:
        await other.trust("worker")
    assert CANARY not in str(refusal.value)
    ticket = (await world.ask()).ticket
    async with HttpsClient(world.urls[0].gate, world.trust.tls, 10.0, DoorRole.GATE) as http:
        for headers in ({}, {"authorization": f"Bearer {ticket.reveal()}"}):
            answer = await http.ask("GET", "/trust/worker", headers, b"", lambda _status: 65536)
            assert answer.status == 401
            assert b"auths" not in answer.body
    assert "canary-that-pushes" not in str(world.served._trust.current("worker").body)  # type: ignore[attr-defined]


async def test_it_ends_with_the_annotation_and_with_enforcement(world: DeliveringWorld) -> None:
    await handed_out(world, CANARY)
    agent = configs(world, await booted(world))
    elsewhere = encoded(json.dumps({"auths": {"r.exampel": {"auth": encoded("nodes:mistyped")}}}))
    patch = {"data": {".dockerconfigjson": elsewhere}}
    await world.cluster.patch(SECRETS, "nodes", patch, PatchType.MERGE, names.OPERATOR_NAMESPACE)
    assert encoded(f"nodes:{CANARY}") in (await agent.trust("worker")).image_pull_secret, "a typing error takes nothing"
    await world.cluster.patch(
        MACHINE_OS_CONFIG.resource, "worker", {"metadata": {"annotations": {names.IMAGE_PULL: None}}}, PatchType.MERGE
    )
    await handed_out(world, "")
    assert (await agent.trust("worker")).image_pull_secret == ""


async def test_a_pool_that_stops_to_enforce_hands_it_to_nobody(world: DeliveringWorld) -> None:
    await handed_out(world, CANARY)
    await lowered(world.cluster, {"mode": "Audit"})
    documents = world.served._trust
    await until(lambda: documents.current("worker").image_pull_secret == "")  # type: ignore[attr-defined]
