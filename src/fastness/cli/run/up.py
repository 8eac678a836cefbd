"""`fastness up`: a whole control plane on this machine, in the foreground.

Prints where things are when `/readyz` says ok, then stays until Ctrl-C or SIGTERM, and ends cleanly: no process, no damaged
state. Here are the options and the choice of ports; `embedded_plane` does the work.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click

from fastness.app.parts import PORTS, Part
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.run.people_options import people_of, people_options
from fastness.cli.run.state_directory import DEFAULT_STATE, kms_option
from fastness.observe import logs

API_PORT = 6443
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
    "--vm-root", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With --vms: the root that real machines become nodes with, as `fastness machine image` prepared it.",
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
@people_options
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
    provider = people_of(given)
    logs.configure(level=log_level)
    chosen = _port(host, port)
    page = _port(host, 0 if page_port is None and port is not None else page_port, PORTS[Part.PAGE], "--page-port")
    # Imported here: it loads every room, and --help, completion and a wrong option must not wait for that.
    from fastness.app.embedded import PlaneOptions
    from fastness.cli.run.embedded_plane import run_plane

    run_plane(
        PlaneOptions(state=state, host=host, port=chosen, page_port=page, tell=tell, provider=provider, **given), output
    )


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
