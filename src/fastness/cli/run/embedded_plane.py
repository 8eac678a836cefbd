"""What `fastness up` does once its options are read: it runs the plane, says where things are, and waits to be stopped.

Apart from the command, because it stands on every room: help, completion and a wrong option answer without loading them.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click
import uvloop

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.runtime.memory import settle_memory
from fastness.runtime.tasks import work_until
from fastness.sim.vms import parts
from fastness.sim.vms.root_disk import check_root

READY_SECONDS = 60.0


def run_plane(options: PlaneOptions, output: str) -> None:
    """Run a whole control plane until somebody ends it; raises CliError."""
    with reported_errors():
        if options.vms:
            _check_vms(options.vm_root)
        elif options.vm_root is not None:
            raise CliError("--vm-root is for real machines, and there are none", "Add --vms 1.", Exit.USAGE)
        uvloop.run(_run(options, output))


def _check_vms(root: Path | None) -> None:
    """Say at once what real machines need and is not here; raises CliError."""
    try:
        parts.require(with_root=root is not None)
        if root is not None:
            check_root(root)
    except parts.NoRealMachine as error:
        raise CliError(error.message, error.hint, Exit.MISSING) from error


async def _run(options: PlaneOptions, output: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(options) as plane:
        await work_until(stop, plane.wait_ready(READY_SECONDS))
        settle_memory()
        if not stop.is_set():
            _announce(plane, output)
            for name, problem in plane.problems().items():
                tell(f"not ready, {name}: {problem}")
        await stop.wait()
        tell("stopping")


def _announce(plane: ControlPlane, output: str) -> None:
    endpoints, kubeconfig = plane.endpoints.to_json(), plane.kubeconfig
    if output == "json":
        told_once = {"kubeconfig": str(kubeconfig), "machines": plane.machines, "login": plane.link()}
        show_json({"endpoints": endpoints, **told_once})
        return
    click.echo("Fastness is up.")
    click.echo(f"  API         {endpoints['api']}")
    click.echo(f"  kubeconfig  {kubeconfig}")
    click.echo(f"  configs     {endpoints['configServer']}")
    click.echo(f"  page        {plane.link()}")
    if plane.machines:
        click.echo(f"  machines    {plane.machines}, simulated, in {plane.state / 'machines'}")
    if plane.vms:
        click.echo(f"  real ones   {plane.vms}, in {plane.state / 'vms'}; building their image takes half a minute")
    click.echo(f"\n  export KUBECONFIG={kubeconfig}\n  kubectl get nodes\n\nCtrl-C ends it.")
