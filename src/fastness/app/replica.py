"""`fastness serve`: one of any number of processes that run parts of the control plane against a Kubernetes API server.

`serve` is its life: find the cluster, see that it has what every part needs, run the parts. Health and metrics are on a port of
their own from the first moment. Asked to end, it does so well within the thirty seconds that Kubernetes gives, whatever the API
does: a lease that cannot be given back in time runs out by itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fastness.admission.door.configuration import NAME
from fastness.app.control_plane import control_plane
from fastness.app.doors import url_of
from fastness.app.parts import INTERNAL_PORT, PORTS, LacksCluster, Part
from fastness.app.settings import Addresses, AnyDoor, ClusterKeys, Documents, Election, PlaneSettings
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.enrolment.door.app import USUAL_RATE, Pace
from fastness.formats.words import counted
from fastness.http.health import Health, OpsApp
from fastness.http.listener import Listener
from fastness.http.opening import ListenOptions
from fastness.keys.home import GONE, WAY_BACK, was_lost
from fastness.keys.ring_files import ring_file
from fastness.keys.vault import Vault
from fastness.kinds.crd import manifests
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Connection, Impersonation
from fastness.kube.controllers import LeaderSettings
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.places import AT_HOME, Places
from fastness.kube.port import Cluster
from fastness.page.admission import ReviewDoor
from fastness.page.server import PageOptions
from fastness.record.live.tiles import ConfigMapTiles
from fastness.release.door.config_server.server import ConfigDoor
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from fastness.runtime.memory import settle_memory
from fastness.runtime.tasks import work_until

LEAVE_SECONDS: Final = 8.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """What `fastness serve` was asked for.

    `host` and `names` are where doors listen and what machines dial; the ports are those of the doors; the URLs say where the
    parts that run elsewhere are reached. `webhook_unreachable`: it was left out because the API server could not find it.
    """

    parts: frozenset[Part]
    identity: str
    kubeconfig: Path | None = None
    context: str = ""
    metrics_port: int = 0
    lease_seconds: float = 15.0
    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    config_port: int = PORTS[Part.CONFIG_SERVER]
    internal_port: int = INTERNAL_PORT
    enrol_port: int = PORTS[Part.ENROLMENT]
    broker_port: int = PORTS[Part.BROKER]
    gate_port: int = PORTS[Part.GATE]
    webhook_port: int = PORTS[Part.WEBHOOK]
    page_port: int = PORTS[Part.PAGE]
    config_url: str = ""
    internal_url: str = ""
    enrol_url: str = ""
    broker_url: str = ""
    gate_url: str = ""
    webhook_url: str = ""
    node_certificates: bool = True
    join_tokens: bool = True
    enrol_rate: float = USUAL_RATE
    vault: Path | None = None
    kms: tuple[str, ...] = ()
    collateral: Path | None = None
    collateral_cache: Path | None = None
    vendor_services: bool = False
    adopt: tuple[str, ...] = ()
    places: Places = AT_HOME
    webhook_unreachable: bool = False

    @property
    def listen(self) -> Mapping[Part, ListenOptions]:
        """Where each door listens; the ticket port of the config server takes whole racks at once, so it is the one in Rust."""
        ports = {
            Part.ENROLMENT: self.enrol_port, Part.BROKER: self.broker_port, Part.GATE: self.gate_port,
            Part.WEBHOOK: self.webhook_port, Part.PAGE: self.page_port,
        }  # fmt: skip
        configs = ListenOptions(self.host, self.config_port, self.names, self.internal_port, rust=True)
        others = {part: ListenOptions(self.host, port, self.names) for part, port in ports.items()}
        return {Part.CONFIG_SERVER: configs, **others}


async def serve(options: ReplicaOptions, stop: asyncio.Event, tell: Tell) -> None:
    """Run parts until asked to stop; `tell` hears what happens.

    Raises LackingError, ConfigError, ApiError, OSError, TrustError, alone or in a group.
    """
    health = Health()
    listener = Listener(OpsApp(health), port=options.metrics_port)
    await listener.start()
    try:
        work = _run(options, health, f"http://127.0.0.1:{listener.port}", tell)
        await work_until(stop, work, LEAVE_SECONDS)
    finally:
        await listener.stop()


async def _run(options: ReplicaOptions, health: Health, metrics: str, tell: Tell) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    connection = find(Surroundings(os.environ, Path.home()), kubeconfig=options.kubeconfig, context=options.context)
    async with connect(connection) as cluster:
        await _require_definitions(cluster)
        lease = LeaderSettings.lasting(options.lease_seconds)
        await make_namespace(cluster, lease.namespace)
        tell(
            f"serving {', '.join(part for part in Part if part in options.parts)} as {options.identity}; "
            f"health and metrics on {metrics}"
        )
        if options.webhook_unreachable:
            tell("the webhook is not started: outside a cluster the API server finds it by --webhook-url or --name")
        settle_memory()
        visitors = ReviewDoor(cluster, lambda token: connect(as_bearer(connection, token)), clock)
        settings = replace(settings_of(options, lease, tell), visitors=visitors)
        settings = replace(settings, page=replace(settings.page, tiles=ConfigMapTiles(cluster)))
        keys = ClusterKeys(_vault(options, clock, entropy))
        async with control_plane(options.parts, cluster, keys, settings, clock, entropy, health):
            await asyncio.Event().wait()


def settings_of(options: ReplicaOptions, lease: LeaderSettings, tell: Tell) -> PlaneSettings:
    """What the parts of a replica are told, but for what only a connection to the cluster has."""

    def opened(part: Part, door: AnyDoor) -> None:
        tell(_sentence(part, options.host, door))

    page = PageOptions(options.host, options.page_port, options.names)
    return PlaneSettings(
        options.listen, Election(options.identity, lease, options.adopt),
        Addresses(options.config_url, options.enrol_url, options.broker_url, options.gate_url, options.internal_url),
        page=page, webhook_url=options.webhook_url, node_certificates=options.node_certificates,
        join_tokens=options.join_tokens,
        pace=Pace.of(options.enrol_rate),
        documents=Documents(options.collateral, options.collateral_cache, options.vendor_services),
        places=options.places, opened=opened, tell=tell,
    )  # fmt: skip


def _sentence(part: Part, host: str, door: AnyDoor) -> str:
    """Where a door is, for whoever started it."""
    url = url_of(host, door.port)
    match part:
        case Part.CONFIG_SERVER:
            assert isinstance(door, ConfigDoor)  # noqa: S101  # by its part
            return f"configs on {url}, for gate and broker on {url_of(host, door.internal_port)}"
        case Part.ENROLMENT:
            return f"enrolment on {url}"
        case Part.WEBHOOK:
            return (
                f"webhook on {url}; while it is down confidential workloads are refused "
                f"(kubectl delete validatingwebhookconfiguration {NAME} ends that)"
            )
        case Part.PAGE:
            return f"page on {url}; log in with a token (kubectl create token NAME)"
        case _:
            return f"{part} on {url}"


def _vault(options: ReplicaOptions, clock: Clock, entropy: Entropy) -> Vault | None:
    """The key of the broker, made if its file is not there; nobody else needs one."""
    path = options.vault
    if path is None or Part.BROKER not in options.parts:
        return None
    return Vault.open_file(ring_file(path, options.kms), clock.now(), entropy, create=not path.exists())


def as_bearer(connection: Connection, token: SecretText) -> Connection:
    """The same API server with nothing but this token: none of our own rights go along."""
    return replace(
        connection, token=token, token_file=None, certificate=b"", key=SecretBytes(b""), impersonation=Impersonation()
    )


async def _require_definitions(cluster: Cluster) -> None:
    """Every definition is installed; raises LacksCluster with what is missing."""
    definitions = CUSTOM_RESOURCE_DEFINITION.resource
    present = {obj["metadata"]["name"] for obj in (await cluster.list(definitions)).items}
    missing = sorted({definition["metadata"]["name"] for definition in manifests()} - present)
    if missing:
        first = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise LacksCluster(
            f"the cluster lacks {counted(len(missing), 'definition')}: {first}",
            "Install them: fastness crds | kubectl apply --server-side -f -",
        )


async def make_namespace(cluster: Cluster, name: str) -> None:
    """The namespace of the lease exists: without it replicas would wait for ever. Raises LacksCluster.

    One that was there before is not made again: that would begin a new record under new keys as if nothing had happened.
    """
    if await was_lost(cluster):
        raise LacksCluster(GONE, WAY_BACK)
    namespaces = NAMESPACE.resource
    try:
        await cluster.get(namespaces, name)
    except NotFound:
        with suppress(AlreadyExists):
            await cluster.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
