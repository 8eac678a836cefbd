"""`fastness serve`: roles of the control plane against a Kubernetes API server.

Of several replicas one leads and writes; the others wait. Losing the lease ends the work and begins the wait anew. The
definitions must be installed first (`fastness crds | kubectl apply --server-side -f -`): without them it says which are
missing. The namespace of the lease is made when it is not there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastness.cli.errors import CliError, told
from fastness.cli.exits import Exit
from fastness.cli.output import tell

if TYPE_CHECKING:
    from fastness.cluster.kube import KubeCluster
    from fastness.controllers.engine import LeaderSettings
    from fastness.services.api.health import Health

ROLES = ("controllers",)
METRICS_PORT = 9090


@click.command()
@click.option("--roles", default=",".join(ROLES), show_default=True, help="What to run, separated by commas.")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the API; default as kubectl."
)
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--identity", default="", help="Name of this replica in the lease; default host and process.")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=METRICS_PORT, show_default=True, help="Health and metrics."
)
@click.option(
    "--lease-seconds", type=click.FloatRange(1), default=15, show_default=True,
    help="How long a replica that stops answering keeps the lead.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def serve(
    roles: str,
    kubeconfig: Path | None,
    context: str,
    identity: str,
    metrics_port: int,
    lease_seconds: float,
    log_level: str,
) -> None:
    """Run roles of the control plane against a Kubernetes API server."""
    import uvloop

    from fastness.observe import logs

    unknown = sorted(set(roles.split(",")) - set(ROLES))
    if unknown:
        raise CliError(f"unknown role {unknown[0]!r}", f"There are: {', '.join(ROLES)}.", Exit.USAGE)
    logs.configure(level=log_level)
    name = identity or f"{socket.gethostname()}_{os.getpid()}"
    with told():
        uvloop.run(_run(kubeconfig, context, name, metrics_port, lease_seconds))


async def _run(kubeconfig: Path | None, context: str, identity: str, metrics_port: int, lease_seconds: float) -> None:
    from fastness.cluster.kube import Surroundings, connect, find
    from fastness.controllers.engine import LeaderSettings
    from fastness.services.api.health import Health
    from fastness.services.http.listener import Listener
    from fastness.services.ops import OpsApp

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    health = Health()
    listener = Listener(OpsApp(health), port=metrics_port)
    await listener.start()
    try:
        around = Surroundings(os.environ, Path.home())
        async with connect(find(around, kubeconfig=kubeconfig, context=context)) as cluster:
            await _require_definitions(cluster)
            settings = LeaderSettings.lasting(lease_seconds)
            await _make_namespace(cluster, settings.namespace)
            tell(f"serving controllers as {identity}; health and metrics on http://127.0.0.1:{listener.port}")
            await _until(stop, _lead_for_ever(cluster, identity, health, settings))
    finally:
        await listener.stop()


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Work until asked to stop; what the work raises is raised, and being cancelled ends the work too."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopping.cancel()
        # `wait` passes a cancellation of this task on; awaiting the work itself would have to tell the two apart.
        await asyncio.wait((working, stopping))
    if not working.cancelled():
        working.result()


async def _require_definitions(cluster: KubeCluster) -> None:
    """Every definition is installed; raises CliError with what is missing."""
    from fastness.model.crd import manifests
    from fastness.model.registry import find

    definitions = find("apiextensions.k8s.io", "v1", "customresourcedefinitions").resource
    present = {obj["metadata"]["name"] for obj in (await cluster.list(definitions)).items}
    missing = sorted({one["metadata"]["name"] for one in manifests()} - present)
    if missing:
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise CliError(
            f"the cluster lacks {len(missing)} definitions: {shown}",
            "Install them: fastness crds | kubectl apply --server-side -f -",
            Exit.MISSING,
        )


async def _make_namespace(cluster: KubeCluster, name: str) -> None:
    """The namespace of the lease exists: without it replicas would wait for ever."""
    from fastness.cluster.errors import AlreadyExists, NotFound
    from fastness.model.registry import find

    namespaces = find("", "v1", "namespaces").resource
    try:
        await cluster.get(namespaces, name)
    except NotFound:
        with suppress(AlreadyExists):
            await cluster.create(namespaces, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def _lead_for_ever(cluster: KubeCluster, identity: str, health: Health, settings: LeaderSettings) -> None:
    """Wait for the lease, work while it is held, begin again when it is lost."""
    from fastness.cluster.clock import SystemClock, SystemEntropy
    from fastness.cluster.informers import Informers
    from fastness.controllers.engine import Leadership, LostLease, Runner
    from fastness.controllers.machineconfig.plane import Around
    from fastness.controllers.plane import product_loops

    clock, entropy = SystemClock(), SystemEntropy()
    leadership = Leadership(cluster, identity, clock, entropy, settings)
    while True:
        async with leadership.held() as lost, Informers(cluster, clock=clock, entropy=entropy) as informers:
            around = Around(clock, entropy, may_write=leadership.require)
            loops = product_loops(cluster, informers, around)
            runner = Runner(loops, informers, clock, entropy)
            health.add("controllers", runner.waiting_for)
            with suppress(LostLease):
                await _until(lost, runner.run())
