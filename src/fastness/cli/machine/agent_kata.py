"""`fastness agent kata`: what the pods of the runtime's DaemonSets run on a node.

    fastness agent kata install --root /host       packages, drop-ins and a restart, when it is the node's turn
    fastness agent kata uninstall --root /host     the way back, with a boot at its end

The node's own programs do the work, in the node's root: `rpm-ostree`, `systemctl`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import click

from fastness.agent.host.files import RootedFiles
from fastness.agent.host.process import run
from fastness.agent.host.rpm_ostree import SECONDS, LayeredPackages
from fastness.agent.host.systemd import Systemctl
from fastness.agent.kata.pod import KataPod, Step
from fastness.agent.kata.step import RuntimeSteps
from fastness.cli.cluster import connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.kinds.kata.config import DEFAULT_LOG_LEVEL, LOG_LEVELS
from fastness.kinds.kata.names import COMMUNITY_EXTENSION, PEER_PODS_VARIABLE
from fastness.runtime.clock import SystemClock, SystemEntropy


@click.command("kata")
@click.argument("way", type=click.Choice(["install", "uninstall"]))
@click.option("--node", envvar="NODE_NAME", required=True, help="Name of this machine's Node.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/host"), show_default=True, help="The node's root."
)
@click.option("--package", default=COMMUNITY_EXTENSION, show_default=True, help="The package that brings the runtime.")
@click.option(
    "--crio-log-level", "level", envvar="LOG_LEVEL", type=click.Choice(LOG_LEVELS), default=DEFAULT_LOG_LEVEL,
    show_default=True, help="What the container runtime logs.",
)  # fmt: skip
@click.option(
    "--peer-pods",
    envvar=PEER_PODS_VARIABLE,
    is_flag=True,
    help="Prepare for pods that are virtual machines beside the node.",
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None, help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context in the kubeconfig.")
def kata(
    way: str, node: str, root: Path, package: str, level: str, *, peer_pods: bool, kubeconfig: Path | None, context: str
) -> None:
    """Install the runtime for confidential containers on this node, or remove it, when its turn comes."""
    if not root.is_dir():
        raise CliError(f"{root} is not a directory", "Mount the root of the node there, or give --root.", Exit.MISSING)

    inside = () if root == Path("/") else ("chroot", str(root))
    units = Systemctl(run=lambda command: run([*inside, *command]))
    packages = LayeredPackages(package, lambda command: run([*inside, *command], seconds=SECONDS))
    steps = RuntimeSteps(
        RootedFiles(root), units, packages, lambda _reason: _reboot([*inside, "systemctl", "reboot"]), level,
        peer_pods=peer_pods,
    )  # fmt: skip
    step = steps.install if way == "install" else steps.uninstall
    with reported_agent_errors(), suppress(KeyboardInterrupt):
        asyncio.run(_follow(node, step, kubeconfig, context))


def _reboot(command: list[str]) -> None:
    run(command)


async def _follow(node: str, step: Step, kubeconfig: Path | None, context: str) -> None:
    async with connected(kubeconfig, context) as cluster:
        await KataPod(cluster, node, step, SystemClock(), SystemEntropy()).run()
