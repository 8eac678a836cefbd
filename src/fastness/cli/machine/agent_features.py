"""`fastness agent features`: find out what this machine can do, and tell the cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import Directory
from fastness.agent.kata.features import keep_reporting, node_feature, report
from fastness.cli.cluster import connected
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.output import show_json, tell
from fastness.runtime.clock import SystemClock
from fastness.workloads.features.discovered import Features


@click.command("features")
@click.option("--node", default="", help="Name of this machine's Node; default: the host name.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="The machine's root."
)
@click.option(
    "--proc-root", type=click.Path(path_type=Path), default=None, help="Where /proc is. Default: below the root."
)
@click.option(
    "--sysfs-root", type=click.Path(path_type=Path), default=None, help="Where /sys is. Default: below the root."
)
@click.option("--print", "only_print", is_flag=True, help="Print the NodeFeature and write nothing.")
@click.option("--once", is_flag=True, help="Report once and end.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None, help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context in the kubeconfig.")
def features(
    node: str, root: Path, proc_root: Path | None, sysfs_root: Path | None, only_print: bool, once: bool,
    kubeconfig: Path | None, context: str,
) -> None:  # fmt: skip
    """Find out what this machine can do and tell the cluster, again every minute."""
    tree, name = Directory(root, proc_root, sysfs_root), node or socket.gethostname()
    if only_print:
        show_json(node_feature(name, discover(tree)))
        return
    with reported_agent_errors(), suppress(KeyboardInterrupt):
        asyncio.run(_report(name, lambda: discover(tree), once, kubeconfig, context))


async def _report(node: str, look: Callable[[], Features], once: bool, kubeconfig: Path | None, context: str) -> None:
    async with connected(kubeconfig, context) as cluster:
        if once:
            written = await report(cluster, node_feature(node, look()))
            tell(f"features of {node}: {'written' if written else 'unchanged'}")
        else:
            await keep_reporting(cluster, node, look, SystemClock())
