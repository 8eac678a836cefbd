"""The cluster that a verb talks to: the options that name it, and the connection.

@cluster_options
def verb(…, kubeconfig: Path | None, context: str): ...

async with connected(kubeconfig, context) as cluster: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Connection

if TYPE_CHECKING:
    from fastness.kube.client.client import KubeCluster

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(function: F) -> F:
    """The options that find a cluster as kubectl does."""
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        help="How to reach the API; default as kubectl.",
    )
    return kubeconfig(click.option("--context", default="", help="A context of the kubeconfig.")(function))


def connection_to(kubeconfig: Path | None, context: str = "") -> Connection:
    """Where the cluster is that kubectl would talk to, and the credential for it; raises ConfigError."""
    return find(Surroundings(os.environ, Path.home()), kubeconfig=kubeconfig, context=context)


def connected(kubeconfig: Path | None, context: str = "") -> AbstractAsyncContextManager[KubeCluster]:
    """The cluster that kubectl would talk to, until the block ends; raises ConfigError."""
    connection = connection_to(kubeconfig, context)
    # A third of what a verb loads: who asks for help, or names no cluster, connects nowhere.
    from fastness.kube.client.client import connect

    return connect(connection)


def named_kubeconfig(kubeconfig: Path | None) -> Path | None:
    """The one file that option or environment name: an embedded control plane keeps its record and logs beside it."""
    variable = os.environ.get("KUBECONFIG")
    return kubeconfig or (Path(variable) if variable else None)
