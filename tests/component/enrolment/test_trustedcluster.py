"""TrustedExecutionCluster and AttestationKey in a cluster: one counts, machines are sent where it says, keys are judged."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.controllers import product_loops
from fastness.app.product import PRODUCT
from fastness.enrolment.loops.trusted_cluster import (
    CLUSTERS,
    CONFIDENTIAL,
    KEYS,
    AttestationKeys,
    Reach,
    TrustedClusters,
    answers,
)
from fastness.enrolment.trusted_cluster import Doors
from fastness.keys.authorities import SECRETS
from fastness.keys.doors import NAME as DOORS_CA
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.loops.timing import SIMULATED
from tests.attesting import ENTROPY, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.unanswered import unanswered_port


@asynccontextmanager
async def loops(cluster: Cluster, informers: Informers, reach: Reach | None = None) -> AsyncIterator[None]:
    """The two loops, for the time of the block; by default every address answers."""
    clock = MovedClock()

    def fenced(loop: type[TrustedClusters] | type[AttestationKeys]) -> FencedCluster:
        return FencedCluster(cluster, loop.name, loop.writes)

    both: list[Controller] = [
        TrustedClusters(fenced(TrustedClusters), informers, clock, reach or _everywhere),
        AttestationKeys(fenced(AttestationKeys), informers, clock),
    ]
    async with asyncio.TaskGroup() as group:
        running = group.create_task(Runner(both, informers, clock, ENTROPY).run())
        try:
            yield
        finally:
            running.cancel()


async def _everywhere(_url: str) -> str | None:
    return None


async def make(cluster: Cluster, name: str, namespace: str = NAMESPACE, **spec: Any) -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    body = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": meta, "spec": spec}
    return await cluster.create(CLUSTERS, body)


async def stands(cluster: Cluster, name: str, kind: str, reason: str, namespace: str = NAMESPACE) -> bool:
    reported = condition(await cluster.get(CLUSTERS, name, namespace), kind)
    return reported is not None and reported["reason"] == reason


@pytest.fixture
async def real_store(tmp_path: Path) -> AsyncIterator[Cluster]:
    """The embedded API over a store that is not simulated."""
    async with open_apiserver(ServerOptions(tmp_path / "real", simulated=False), PRODUCT) as server:
        yield server.cluster


async def test_a_simulated_store_is_not_made_a_real_cluster(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with Informers(cluster, clock=MovedClock(), entropy=ENTROPY) as informers, loops(cluster, informers):
        await make(cluster, "one")
        await until(lambda: _told(cluster, "one", "ClusterNotMade"))
        await until(lambda: stands(cluster, "one", "Installed", "Installing"))


async def _told(cluster: Cluster, about: str, reason: str) -> bool:
    events = (await cluster.list(EVENTS)).items
    return any(event["involvedObject"]["name"] == about and event["reason"] == reason for event in events)


async def test_one_counts_and_makes_the_cluster_confidential(real_store: Cluster) -> None:
    cluster = real_store
    async with Informers(cluster, clock=MovedClock(), entropy=ENTROPY) as informers, loops(cluster, informers):
        await make(cluster, "first", publicTrusteeAddr="kbs.example")
        await until(lambda: stands(cluster, "first", "Installed", "Installing"))
        await until(lambda: stands(cluster, "first", "KnownTrusteeAddress", "AddressFound"))
        made = await cluster.get(CONFIDENTIAL, "cluster")
        assert made["spec"]["mode"] == "Enforce"
        assert made["metadata"]["annotations"]["fastness.dev/made-for"] == f"{NAMESPACE}/first"
        await make(cluster, "second", trusteeSecret="tls")
        await until(lambda: stands(cluster, "second", "Installed", "NonUnique"))
        ca = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": DOORS_CA, "namespace": NAMESPACE}}
        await cluster.create(SECRETS, {**ca, "data": {"ca.crt": "eA=="}})
        await until(lambda: stands(cluster, "first", "Installed", "InstallationCompleted"))
        await cluster.delete(CLUSTERS, "first", NAMESPACE)
        await until(lambda: stands(cluster, "second", "Installed", "InstallationCompleted"))
        assert (await cluster.get(CONFIDENTIAL, "cluster"))["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_cluster_that_is_confidential_already_is_left_as_it_is(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with attesting_world(cluster) as world, loops(cluster, world.informers):
        before = await cluster.get(CONFIDENTIAL, "cluster")
        await make(cluster, "one")
        await until(lambda: stands(cluster, "one", "Installed", "InstallationCompleted"))
        await until(lambda: stands(cluster, "one", "KnownTrusteeAddress", "NoAddressFound"))
        assert (await cluster.get(CONFIDENTIAL, "cluster"))["spec"] == before["spec"]


async def test_machines_are_sent_to_the_broker_that_the_object_names(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with attesting_world(cluster) as world:
        await make(cluster, "one", publicTrusteeAddr="kbs.example", trusteeKbsPort=443)
        clusters = world.informers.of(CLUSTERS)
        await until(lambda: _true(clusters.get(NAMESPACE, "one") is not None))
        enrolled = await world.enrol(world.machine("tpm"), await world.ticket())
        assert enrolled.doors is not None
        assert enrolled.doors.broker == "https://kbs.example:443"


async def test_pointers_lead_to_the_enrolment_that_the_object_names(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, MovedClock()
    doors = Doors("https://enrol.internal", "https://config.internal", "-----BEGIN CERTIFICATE-----")
    async with attesting_world(cluster), Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
        loops = product_loops(cluster, informers, clock, ENTROPY, timing=SIMULATED, doors=lambda: doors)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(Runner(loops, informers, clock, ENTROPY).run())
            await until(lambda: _leads(cluster, "https://enrol.internal"))
            await make(cluster, "one", publicAttestationKeyRegisterAddr="enrol.example")
            await until(lambda: _leads(cluster, "https://enrol.example:8000"))
            await cluster.delete(CLUSTERS, "one", NAMESPACE)
            await until(lambda: _leads(cluster, "https://enrol.internal"))
            running.cancel()


async def _leads(cluster: Cluster, url: str) -> bool:
    try:
        secret = await cluster.get(SECRETS, "worker-user-data-managed", "openshift-machine-api")
    except NotFound:
        return False
    headers = json.loads(base64.b64decode(secret["data"]["userData"]))["ignition"]["config"]["merge"][0]["httpHeaders"]
    return {"name": "X-Fastness-Server", "value": url} in headers


async def _true(value: bool) -> bool:
    return value


async def approved(world: AttestingWorld, name: str) -> tuple[str, str]:
    reported = condition(await world.cluster.get(KEYS, name, NAMESPACE), "Approved") or {}
    return str(reported.get("status")), str(reported.get("reason"))


@pytest.mark.parametrize("same", [False, True])
async def test_a_key_is_approved_when_its_machine_proved_it(embedded_server: Embedded, same: bool) -> None:
    cluster = embedded_server.cluster
    async with attesting_world(cluster) as world, loops(cluster, world.informers):
        machine = await world.machine_object(await world.enrolled("tpm"))
        own = await cluster.get(KEYS, machine["metadata"]["name"].replace("machine-", "ak-"), NAMESPACE)
        other = await world.machine_object(await world.enrolled("tpm"))
        theirs = await cluster.get(KEYS, other["metadata"]["name"].replace("machine-", "ak-"), NAMESPACE)
        # Somebody writes a key down by hand: the machine's own, or one that the machine never proved.
        spec = {"publicKey": (own if same else theirs)["spec"]["publicKey"], "uuid": machine["spec"]["id"]}
        body = {"apiVersion": KEYS.api_version, "kind": KEYS.kind, "spec": spec}
        await cluster.create(KEYS, {**body, "metadata": {"name": "ak-by-hand", "namespace": NAMESPACE}})
        expected = ("True", "MachineCreated") if same else ("False", "Registration")
        await until(lambda: _is(world, "ak-by-hand", expected))
        assert await approved(world, own["metadata"]["name"]) == ("True", "MachineCreated")


async def _is(world: AttestingWorld, name: str, expected: tuple[str, str]) -> bool:
    return await approved(world, name) == expected


async def test_a_key_without_a_machine_or_without_sense_is_registered_and_no_more(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with attesting_world(cluster) as world, loops(cluster, world.informers):
        machine = await world.machine_object(await world.enrolled("tpm"))
        for name, spec in (
            ("ak-nobody", {"publicKey": "x"}), ("ak-unknown", {"publicKey": "x", "uuid": ENTROPY.uid()}),
            ("ak-nonsense", {"publicKey": "x", "uuid": machine["spec"]["id"]}),
        ):  # fmt: skip
            meta = {"name": name, "namespace": NAMESPACE}
            await cluster.create(
                KEYS, {"apiVersion": KEYS.api_version, "kind": KEYS.kind, "metadata": meta, "spec": spec}
            )
            await until(lambda name=name: _is(world, name, ("False", "Registration")))  # type: ignore[misc]
        await cluster.patch(KEYS, "ak-nobody", {"spec": {"uuid": machine["spec"]["id"]}}, PatchType.MERGE, NAMESPACE)
        await until(lambda: _says(world, "ak-nobody", "the attestation key cannot be read"))


async def _says(world: AttestingWorld, name: str, message: str) -> bool:
    reported = condition(await world.cluster.get(KEYS, name, NAMESPACE), "Approved")
    return reported is not None and reported["status"] == "False" and reported["message"] == message


@pytest.mark.row("000-62")
async def test_an_address_where_nobody_answers_is_not_installed(embedded_server: Embedded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert await answers(f"https://127.0.0.1:{taken.getsockname()[1]}") is None
    cluster = embedded_server.cluster
    async with AsyncExitStack() as stack:
        port = stack.enter_context(unanswered_port())
        world = await stack.enter_async_context(attesting_world(cluster))
        await stack.enter_async_context(loops(cluster, world.informers, answers))
        await make(cluster, "far", publicTrusteeAddr="127.0.0.1", trusteeKbsPort=port)
        await until(lambda: stands(cluster, "far", "Installed", "Unreachable"))
        await until(lambda: stands(cluster, "far", "KnownTrusteeAddress", "Unreachable"))
        installed = condition(await cluster.get(CLUSTERS, "far", NAMESPACE), "Installed")
        assert installed is not None
        assert installed["status"] == "False"
        assert f"https://127.0.0.1:{port}" in installed["message"]
