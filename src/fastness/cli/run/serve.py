"""`fastness serve`: roles of the control plane against a Kubernetes API server.

    controllers   of several replicas one leads and writes, the others wait; losing the lease ends the work and begins the
                  wait anew
    webhook       every replica judges what would lower protection, and confidential workloads, before they are stored; by
                  default it runs beside the controllers, if the API server can reach it (in the cluster by its Service)
    page          every replica shows the cluster to people who log in with a token of the API
    configserver  every replica serves configs to machines; certificates are renewed while it runs

Asked to end, it does so well within the thirty seconds that Kubernetes gives, whatever the API does: a lease that cannot be given
back in time runs out by itself.

The definitions must be installed first (`fastness crds | kubectl apply --server-side -f -`): without them it says which are
missing. The namespace of the lease is made when it is not there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastness.app.doors import (
    BROKER_PORT,
    CONFIG_PORT,
    DOORS,
    ENROL_PORT,
    GATE_PORT,
    INTERNAL_PORT,
    PAGE_PORT,
    WEBHOOK,
    WEBHOOK_PORT,
    DoorOptions,
    serve_door,
)
from fastness.app.memory import settle_memory
from fastness.cli.errors import CliError, reported_errors
from fastness.cli.exits import Exit
from fastness.cli.output import tell
from fastness.cli.run.adopting import Adoptable, places_of
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import NAMESPACE

if TYPE_CHECKING:
    from fastness.enrolment.trusted_cluster import Doors
    from fastness.http.health import Health
    from fastness.kube.client import KubeCluster
    from fastness.kube.controllers import LeaderSettings
    from fastness.kube.informers import Informers
    from fastness.kube.port import Cluster
    from fastness.runtime.clock import Clock, Entropy

CONTROLLERS = "controllers"
ROLES = (CONTROLLERS, *DOORS)
METRICS_PORT = 9090
LEAVE_SECONDS = 8.0
_PORT = click.IntRange(0, 65535)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `fastness serve` was asked for."""

    roles: tuple[str, ...]
    kubeconfig: Path | None
    context: str
    identity: str
    metrics_port: int
    lease_seconds: float
    doors: DoorOptions
    config_url: str
    enrol_url: str
    adopt: tuple[str, ...] = ()
    unreachable: bool = False


@click.command()
@click.option(
    "--roles", default=f"{CONTROLLERS},{WEBHOOK}", show_default=True,
    help=f"What to run, separated by commas: {', '.join(ROLES)}.",
)  # fmt: skip
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the API; default as kubectl."
)
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--identity", default="", help="Name of this replica in the lease; default host and process.")
@click.option("--metrics-port", type=_PORT, default=METRICS_PORT, show_default=True, help="Health and metrics.")
@click.option(
    "--lease-seconds", type=click.FloatRange(1), default=15, show_default=True,
    help="How long a replica that stops answering keeps the lead.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address on which doors listen.")
@click.option(
    "--name",
    "names",
    multiple=True,
    help="A name or address that machines dial; may be repeated. It is in the certificates.",
)
@click.option(
    "--config-port", type=_PORT, default=CONFIG_PORT, show_default=True, help="Configs for machines with a join ticket."
)
@click.option(
    "--node-certificates/--no-node-certificates", default=True, show_default=True,
    help="Whether the config server gives nodes that never attested their configs for the certificate of the node; without it "
    "machines that boot are served with half the CPU.",
)  # fmt: skip
@click.option(
    "--internal-port", type=_PORT, default=INTERNAL_PORT, show_default=True, help="Configs for the gate and the broker."
)
@click.option("--enrol-port", type=_PORT, default=ENROL_PORT, show_default=True, help="Enrolment.")
@click.option(
    "--enrol-rate", type=click.FloatRange(1, 10_000), default=10.0, show_default=True,
    help="Requests a second that enrolment takes from one address for long, with one ticket twice as many; a machine needs two.",
)  # fmt: skip
@click.option("--broker-port", type=_PORT, default=BROKER_PORT, show_default=True, help="The key broker.")
@click.option("--gate-port", type=_PORT, default=GATE_PORT, show_default=True, help="The gate.")
@click.option("--webhook-port", type=_PORT, default=WEBHOOK_PORT, show_default=True, help="The webhook.")
@click.option("--page-port", type=_PORT, default=PAGE_PORT, show_default=True, help="The page.")
@click.option("--internal-url", default="", help="Where gate and broker reach the config server (https, port 22626).")
@click.option("--broker-url", default="", help="Where machines reach the broker (https); enrolment tells them.")
@click.option("--gate-url", default="", help="Where machines reach the gate (https); enrolment tells them.")
@click.option(
    "--webhook-url",
    default="",
    help="Where the API server reaches the webhook (https); default the Service fastness-webhook.",
)
@click.option("--enrol-url", default="", help="Where machines reach enrolment (https); goes into user-data.")
@click.option(
    "--config-url",
    default="",
    help="Where machines reach the config server (https); the controllers put it into user-data.",
)
@click.option(
    "--vault",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Key that seals what the broker keeps; made if it is not there. All replicas need the same one.",
)
@click.option(
    "--collateral",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with imported documents of Intel, AMD and makers of TPMs, for the broker.",
)
@click.option(
    "--collateral-cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory where the broker keeps documents that it fetched, and the highest numbers seen.",
)
@click.option(
    "--vendor-services",
    is_flag=True,
    help="Let the broker ask Intel and AMD for documents that it lacks; they learn which chips you have.",
)
@click.option(
    "--adopt",
    multiple=True,
    type=Adoptable(),
    help="Do this work although another operator is active in the cluster, or let objects in this namespace speak for the "
    "cluster (every role must be given the same); may be repeated.",
)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def serve(roles: str, identity: str, log_level: str, **given: Any) -> None:
    """Run roles of the control plane against a Kubernetes API server."""
    import uvloop

    from fastness.observe import logs

    chosen = tuple(role for role in ROLES if role in roles.split(","))
    unknown = sorted(set(roles.split(",")) - set(ROLES))
    if unknown:
        raise CliError(f"unknown role {unknown[0]!r}", f"There are: {', '.join(ROLES)}.", Exit.USAGE)
    for url in ("config_url", "enrol_url", "internal_url", "broker_url", "gate_url", "webhook_url"):
        if given[url] and not given[url].startswith("https://"):
            option = f"--{url.replace('_', '-')}"
            raise CliError(f"{option} is not an https URL", "All doors are served over TLS only.", Exit.USAGE)
    logs.configure(level=log_level)
    name = identity or f"{socket.gethostname()}_{os.getpid()}"
    with reported_errors():
        doors = DoorOptions(
            **{field.name: given.pop(field.name) for field in fields(DoorOptions) if field.name in given}
        )
        options = ServeOptions(roles=chosen, identity=name, doors=doors, **given)
        uvloop.run(_run(_with_reachable_webhook(options) if _by_default("roles") else options))


def _by_default(option: str) -> bool:
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is ParameterSource.DEFAULT


def _with_reachable_webhook(options: ServeOptions) -> ServeOptions:
    """The same with a webhook that the API server reaches, or without one: it fails closed, and nobody asked for it by name."""
    doors = options.doors
    if doors.webhook_url or "KUBERNETES_SERVICE_HOST" in os.environ:
        return options
    if doors.names:
        return replace(options, doors=replace(doors, webhook_url=f"https://{doors.names[0]}:{doors.webhook_port}"))
    return replace(options, roles=tuple(role for role in options.roles if role != WEBHOOK), unreachable=True)


async def _run(options: ServeOptions) -> None:
    from fastness.http.health import Health
    from fastness.http.listener import Listener
    from fastness.http.ops import OpsApp

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    health = Health()
    listener = Listener(OpsApp(health), port=options.metrics_port)
    await listener.start()
    try:
        await _until(stop, _serve(options, health, f"http://127.0.0.1:{listener.port}"), LEAVE_SECONDS)
    finally:
        await listener.stop()


async def _serve(options: ServeOptions, health: Health, metrics: str) -> None:
    """Find the cluster, see that it has what is needed, and work."""
    from fastness.kube.client import Surroundings, connect, find
    from fastness.kube.controllers import LeaderSettings

    around = Surroundings(os.environ, Path.home())
    connection = find(around, kubeconfig=options.kubeconfig, context=options.context)
    doors = replace(options.doors, connection=connection, places=places_of(options.adopt))
    options = replace(options, doors=doors)
    async with connect(connection) as cluster:
        await _require_definitions(cluster)
        settings = LeaderSettings.lasting(options.lease_seconds)
        await _make_namespace(cluster, settings.namespace)
        tell(f"serving {', '.join(options.roles)} as {options.identity}; health and metrics on {metrics}")
        if options.unreachable:
            tell("the webhook is not started: outside a cluster the API server finds it by --webhook-url or --name")
        settle_memory()
        await _work(cluster, options, health, settings)


async def _work(cluster: KubeCluster, options: ServeOptions, health: Health, settings: LeaderSettings) -> None:
    """Every role that was asked for, side by side; one that fails ends all."""
    from fastness.keys.home import Home
    from fastness.record.live.health import RecordHealth
    from fastness.record.live.tiles import ConfigMapTiles
    from fastness.runtime.clock import SystemClock

    home, record = Home(cluster, SystemClock()), RecordHealth(cluster, ConfigMapTiles(cluster), SystemClock())
    health.add("home", home.problem)
    async with asyncio.TaskGroup() as group:
        group.create_task(home.watch())
        if CONTROLLERS in options.roles:
            health.add("record", record.problem)
            group.create_task(record.watch())
            group.create_task(_lead_for_ever(cluster, options, health, settings))
        for role in options.roles:
            if role in DOORS:
                group.create_task(serve_door(role, cluster, options.doors, health, tell), name=role)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None], leave: float | None = None) -> None:
    """Work until asked to stop; what the work raises is raised, and being cancelled ends the work too.

    Work that is not over `leave` seconds after that is cut short, with whatever else this process does.
    """
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopping.cancel()
        # `wait` passes a cancellation of this task on; awaiting the work itself would have to tell the two apart.
        while (await asyncio.wait((working, stopping), timeout=leave))[1]:
            # Something waits for an API that does not answer. A group that is being left passes no second cancellation on.
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
    if not working.cancelled():
        working.result()


async def _require_definitions(cluster: KubeCluster) -> None:
    """Every definition is installed; raises CliError with what is missing."""
    from fastness.kinds.crd import manifests

    definitions = CUSTOM_RESOURCE_DEFINITION.resource
    present = {obj["metadata"]["name"] for obj in (await cluster.list(definitions)).items}
    missing = sorted({one["metadata"]["name"] for one in manifests()} - present)
    if missing:
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise CliError(
            f"the cluster lacks {len(missing)} definitions: {shown}",
            "Install them: fastness crds | kubectl apply --server-side -f -",
            Exit.MISSING,
        )


async def _make_namespace(cluster: Cluster, name: str) -> None:
    """The namespace of the lease exists: without it replicas would wait for ever.

    One that was there before is not made again: that would begin a new record under new keys as if nothing had happened.
    """
    from fastness.keys.home import GONE, WAY_BACK, was_lost
    from fastness.kube.errors import AlreadyExists, NotFound

    if await was_lost(cluster):
        raise CliError(GONE, WAY_BACK, Exit.MISSING)

    namespaces = NAMESPACE.resource
    try:
        await cluster.get(namespaces, name)
    except NotFound:
        with suppress(AlreadyExists):
            await cluster.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def _lead_for_ever(cluster: KubeCluster, options: ServeOptions, health: Health, settings: LeaderSettings) -> None:
    """Wait for the lease, work while it is held, begin again when it is lost."""
    from fastness.app.controllers import held_back, product_loops
    from fastness.attestation.live.statuses import signed_statuses
    from fastness.kube.controllers import Leadership, LostLease, Runner
    from fastness.kube.informers import Informers
    from fastness.machineconfig.loops.controllers import Around
    from fastness.runtime.clock import SystemClock, SystemEntropy

    clock, entropy = SystemClock(), SystemEntropy()
    signed = signed_statuses("controllers", cluster, clock, entropy)
    leadership = Leadership(cluster, options.identity, clock, entropy, settings)
    places = options.doors.places
    while True:
        async with (
            leadership.held() as lost,
            Informers(signed, clock=clock, entropy=entropy, places=places) as informers,
        ):
            doors = await _doors(cluster, informers, clock, entropy, options)
            watched = await _watched(informers)
            around = Around(
                clock, entropy, doors=doors, may_write=leadership.require, watched=watched, statuses=signed.statuses
            )
            held = await held_back(cluster, options.adopt, clock.now())
            for family, sign in held.items():
                tell(f"the {family} controllers are not started: {sign}; take over with --adopt {family}")
            loops = product_loops(signed, informers, around, without=held)
            runner = Runner(loops, informers, clock, entropy)
            health.add("controllers", runner.waiting_for)
            health.warn("set-aside", informers.unused)
            with suppress(LostLease):
                await _until(lost, runner.run())


async def _watched(informers: Informers) -> Callable[[], bool]:
    """Whether the webhook stands in front of the API at a moment."""
    from fastness.admission.door.configuration import NAME, RESOURCE, protects

    registered = informers.of(RESOURCE)
    await registered.synced()
    return lambda: protects(registered.get("", NAME))


async def _doors(
    cluster: KubeCluster, informers: Informers, clock: Clock, entropy: Entropy, options: ServeOptions
) -> Callable[[], Doors | None]:
    """Where machines knock, with the authority as it is at that moment; nowhere without a URL."""
    from fastness.enrolment.trusted_cluster import Doors
    from fastness.keys.authorities import LiveAuthority
    from fastness.keys.doors import DOORS
    from fastness.machineconfig.loops.controllers import nowhere

    if not options.config_url:
        return nowhere
    live = await LiveAuthority.open(DOORS, cluster, informers, clock, entropy)
    return lambda: Doors(options.enrol_url, options.config_url, live.current.bundle)
