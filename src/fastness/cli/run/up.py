"""`fastness up`: a whole control plane on this machine, in the foreground.

Prints where things are when `/readyz` says ok, then stays until Ctrl-C or SIGTERM, and ends cleanly: no process, no damaged
state.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import click
import uvloop

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.app.memory import settle_memory
from fastness.app.parts import PORTS, Part
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state_directory import DEFAULT_STATE, kms_option
from fastness.observe import logs
from fastness.sim.vms import parts

API_PORT = 6443
READY_SECONDS = 60.0
PORTS_TRIED = 20


@click.command()
@click.option(
    "--state", type=click.Path(path_type=Path), default=DEFAULT_STATE, show_default=True, help="State directory."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=None, help="Port of the API; default 6443 or the next free one."
)
@click.option(
    "--page-port", type=click.IntRange(0, 65535), default=None,
    help="Port of the page; default 8443 or the next free one, with --port any free one.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--machines", type=click.IntRange(0, 5000), default=0, show_default=True, help="Virtual machines to start."
)
@click.option(
    "--vms", type=click.IntRange(0, 8), default=0, show_default=True,
    help="Real machines to start: QEMU with measured boot and a software TPM, not simulated.",
)  # fmt: skip
@click.option(
    "--profile", type=click.Choice(["cluster", "containers"]), default="cluster", show_default=True,
    help="cluster: workers are confidential VMs; containers: workers are hosts of confidential containers.",
)  # fmt: skip
@click.option(
    "--tpm", type=click.Choice(["software", "swtpm"]), default="software", show_default=True,
    help="TPMs of virtual machines: simulated, or a swtpm process each.",
)  # fmt: skip
@click.option(
    "--vendor-services", is_flag=True,
    help="Ask Intel and AMD for documents that are not in STATE/collateral; they learn which chips you have.",
)  # fmt: skip
@kms_option
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning", show_default=True
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print where things are."
)
def up(
    state: Path, port: int | None, page_port: int | None, host: str, log_level: str, output: str, **given: Any
) -> None:
    """Run a whole control plane on this machine.

    It is ready when it says so; STATE/kubeconfig and STATE/endpoints.json tell others where it is.
    """
    logs.configure(level=log_level)
    chosen = _port(host, port)
    page = _port(host, 0 if page_port is None and port is not None else page_port, PORTS[Part.PAGE], "--page-port")
    with reported_errors():
        if given["vms"]:
            _check_vms()
        uvloop.run(_run(PlaneOptions(state=state, host=host, port=chosen, page_port=page, tell=tell, **given), output))


def _check_vms() -> None:
    """Say at once what real machines need and is not here; raises CliError."""
    try:
        parts.require()
    except parts.NoRealMachine as error:
        raise CliError(error.message, error.hint, Exit.MISSING) from error


def _port(host: str, chosen: int | None, usual: int = API_PORT, option: str = "--port") -> int:
    """The port to use: the asked one or an error, else the usual or the next free one."""
    if chosen is not None:
        if chosen and not _free(host, chosen):
            raise CliError(
                f"port {chosen} on {host} is in use",
                f"Choose another one with {option}, or {option} 0 for any.",
                Exit.MISSING,
            )
        return chosen
    for port in range(usual, usual + PORTS_TRIED):
        if _free(host, port):
            if port != usual:
                tell(f"port {usual} is in use; using {port}")
            return port
    return 0


def _free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


async def _run(options: PlaneOptions, output: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(options) as plane:
        await _ready_or_stopped(plane.wait_ready(READY_SECONDS), stop)
        settle_memory()
        if not stop.is_set():
            _announce(plane, output)
            for name, problem in plane.problems().items():
                tell(f"not ready, {name}: {problem}")
        await stop.wait()
        tell("stopping")


async def _ready_or_stopped(ready: object, stop: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(ready), asyncio.ensure_future(stop.wait())]  # type: ignore[call-overload]
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    for task in done:
        task.result()


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
