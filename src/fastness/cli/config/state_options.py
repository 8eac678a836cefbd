"""Options of verbs that ask a cluster, or files in its place, and the state that comes of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from fastness.cli import manifests
from fastness.cli.config import offline
from fastness.cli.config.cluster_state import ask
from fastness.cli.room_errors import reported_errors
from fastness.machineconfig.rollout.plan import State

_PATH = click.Path(path_type=str)


def state_options(function: Any) -> Any:
    """The options of verbs that ask a cluster, or files in its place."""
    for option in (
        click.option("--context", default="", help="A context of the kubeconfig."),
        click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the API; as kubectl."),
        click.option("--offline", "files", multiple=True, type=_PATH, help="Take the cluster's objects from this file."),
    ):  # fmt: skip
        function = option(function)
    return function


def state_of(files: tuple[str, ...], kubeconfig: Path | None, context: str, *, pools: tuple[str, ...] = ()) -> State:
    """The objects of a cluster: from files, or asked for."""
    if files:
        return offline.state(manifests.read_all(files), pools=pools)
    with reported_errors():
        return asyncio.run(ask(kubeconfig, context))
