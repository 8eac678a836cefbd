"""`fastness serve`: one of any number of processes that run parts of the control plane against a Kubernetes API server.

`serve` is its life: find the cluster, see that it has what every part needs, run the parts. Health and metrics are on a port of
their own from the first moment. Asked to end, it does so well within the thirty seconds that Kubernetes gives, whatever the API
does: a lease that cannot be given back in time runs out by itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastness.app.control_plane import control_plane
from fastness.app.doors import load_rooms, url_of
from fastness.app.parts import INTERNAL_PORT, PORTS, LacksCluster, Part
from fastness.app.settings import Addresses, ClusterKeys, Documents, Election, PlaneSettings
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.enrolment.door.pace import USUAL_RATE, Pace
from fastness.formats.words import counted
from fastness.http.health import Health, OpsApp
from fastness.http.listener import Listener
from fastness.http.opening import ListenOptions
from fastness.keys.home import GONE, WAY_BACK, was_lost
from fastness.keys.ring_files import ring_file
from fastness.keys.shared_cipher import Cipher
from fastness.keys.vault import Vault
from fastness.kinds.crd.sets import own_names
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kinds.registry import custom_kinds
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Connection, Impersonation
from fastness.kube.controllers import LeaderSettings
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.places import AT_HOME, Places
from fastness.kube.port import Cluster
from fastness.kube.served_kinds import ServedKinds
from fastness.record.live.tiles import ConfigMapTiles
from fastness.release.live.vault_secret import SharedVault
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from fastness.runtime.memory import settle_memory
from fastness.runtime.tasks import background, work_until

if TYPE_CHECKING:
    from fastness.app.settings import AnyDoor
    from fastness.builds.job import JobSettings
    from fastness.page.server import ProviderOptions

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
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 0
    health_host: str = ""
    health_port: int | None = None
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
    page_certificate: Path | None = None
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
    vault_secret: bool = False
    kms: tuple[str, ...] = ()
    collateral: Path | None = None
    collateral_cache: Path | None = None
    vendor_services: bool = False
    adopt: tuple[str, ...] = ()
    places: Places = AT_HOME
    webhook_unreachable: bool = False
    provider: ProviderOptions | None = None
    builds: JobSettings | None = None

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
    async with AsyncExitStack() as stack:
        listener = Listener(OpsApp(health), host=options.metrics_host, port=options.metrics_port)
        await listener.start()
        stack.push_async_callback(listener.stop)
        url = url_of(options.metrics_host, listener.port, "http")
        where = f"health and metrics on {url}"
        if options.health_port is not None:
            host = options.health_host or options.metrics_host
            probed = Listener(OpsApp(health, metrics=False), host=host, port=options.health_port)
            await probed.start()
            stack.push_async_callback(probed.stop)
            where = f"health on {url_of(host, probed.port, 'http')}, metrics on {url}"
        await work_until(stop, _run(options, health, where, tell), LEAVE_SECONDS)


async def _run(options: ReplicaOptions, health: Health, where: str, tell: Tell) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    connection = find(Surroundings(os.environ, Path.home()), kubeconfig=options.kubeconfig, context=options.context)
    async with connect(connection) as server:
        cluster = ServedKinds(server, clock, await _absent_kinds(server))
        lease = LeaderSettings.lasting(options.lease_seconds)
        await make_namespace(cluster, lease.namespace)
        tell(f"serving {', '.join(part for part in Part if part in options.parts)} as {options.identity}; {where}")
        if options.webhook_unreachable:
            tell("the webhook is not started: outside a cluster the API server finds it by --webhook-url or --name")
        load_rooms(options.parts)
        settle_memory()
        settings = settings_of(options, lease, tell)
        if Part.PAGE in options.parts:
            settings = _with_page(settings, options, cluster, connection, clock)
        assert settings.election is not None  # noqa: S101  # by settings_of
        settings = replace(settings, election=replace(settings.election, kinds=cluster))
        if (builds := options.builds) is not None:
            from fastness.builds.live.job_builder import JobBuilder  # with the loops alone

            settings = replace(settings, builder=lambda fenced: JobBuilder(fenced, server, clock, builds))
        keys = ClusterKeys(await _vault(options, cluster, clock, entropy))
        following = {"kinds": cluster.follow} if Part.CONTROLLERS in options.parts else {}
        async with (
            background("replica", **following),
            control_plane(options.parts, cluster, keys, settings, clock, entropy, health),
        ):
            await asyncio.Event().wait()


def settings_of(options: ReplicaOptions, lease: LeaderSettings, tell: Tell) -> PlaneSettings:
    """What the parts of a replica are told, but for what only a connection to the cluster has."""

    def opened(part: Part, door: AnyDoor) -> None:
        tell(_sentence(part, options.host, door))

    return PlaneSettings(
        options.listen, Election(options.identity, lease, options.adopt),
        Addresses(options.config_url, options.enrol_url, options.broker_url, options.gate_url, options.internal_url),
        webhook_url=options.webhook_url, node_certificates=options.node_certificates,
        join_tokens=options.join_tokens,
        pace=Pace.of(options.enrol_rate),
        documents=Documents(options.collateral, options.collateral_cache, options.vendor_services),
        places=options.places, opened=opened, tell=tell,
    )  # fmt: skip


def _with_page(
    settings: PlaneSettings, options: ReplicaOptions, cluster: Cluster, connection: Connection, clock: Clock
) -> PlaneSettings:
    """The same with what the page alone is told."""
    from fastness.page.admission import ReviewDoor
    from fastness.page.server import PageOptions

    page = PageOptions(
        options.host, options.page_port, options.names, tiles=ConfigMapTiles(cluster),
        certificate=options.page_certificate, provider=options.provider,
    )  # fmt: skip
    visitors = ReviewDoor(cluster, lambda token: connect(as_bearer(connection, token)), clock)
    return replace(settings, page=page, visitors=visitors)


def _sentence(part: Part, host: str, door: AnyDoor) -> str:
    """Where a door is, for whoever started it."""
    url = url_of(host, door.port)
    match part:
        case Part.CONFIG_SERVER:
            from fastness.release.door.config_server.server import ConfigDoor

            assert isinstance(door, ConfigDoor)  # noqa: S101  # by its part
            return f"configs on {url}, for gate and broker on {url_of(host, door.internal_port)}"
        case Part.ENROLMENT:
            return f"enrolment on {url}"
        case Part.WEBHOOK:
            from fastness.admission.door.configuration import NAME

            return (
                f"webhook on {url}; while it is down confidential workloads are refused "
                f"(kubectl delete validatingwebhookconfiguration {NAME} ends that)"
            )
        case Part.PAGE:
            return f"page on {url}; log in with a token (kubectl create token NAME)"
        case _:
            return f"{part} on {url}"


async def _vault(options: ReplicaOptions, cluster: Cluster, clock: Clock, entropy: Entropy) -> Cipher | None:
    """The key of the broker, made if it is not there; nobody else needs one."""
    path = options.vault
    if Part.BROKER not in options.parts or (path is None and not options.vault_secret):
        return None
    if path is None:
        return await SharedVault.begin(cluster, clock, entropy)
    return Vault.open_file(ring_file(path, options.kms), clock.now(), entropy, create=not path.exists())


def as_bearer(connection: Connection, token: SecretText) -> Connection:
    """The same API server with nothing but this token: none of our own rights go along."""
    return replace(
        connection, token=token, token_file=None, certificate=b"", key=SecretBytes(b""), impersonation=Impersonation()
    )


async def _absent_kinds(cluster: Cluster) -> list[Resource]:
    """The kinds of others that this cluster does not serve; raises LacksCluster when one of our own is not installed."""
    definitions = CUSTOM_RESOURCE_DEFINITION.resource
    present = {obj["metadata"]["name"] for obj in (await cluster.list(definitions)).items}
    missing = sorted(own_names() - present)
    if missing:
        first = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise LacksCluster(
            f"the cluster lacks {counted(len(missing), 'definition')}: {first}",
            "Install them: fastness crds | kubectl apply --server-side -f -",
        )
    return [kind.resource for kind in custom_kinds() if kind.crd_name not in present]


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
