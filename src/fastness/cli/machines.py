"""The virtual machines of `fastness up --machines N`.

Each acts in the name of its own node, so that what a node may write is checked as it is for a real one. Machines of the profile
`cluster` are confidential: they get a configuration only after attestation, which virtual machines without a virtual TPM cannot
pass, so they are not started.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastness.cli.output import tell
from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.embedded.engine import EmbeddedApi
from fastness.cluster.embedded.local import LocalCluster
from fastness.cluster.port import Cluster
from fastness.domain.access import User
from fastness.domain.access.user import AUTHENTICATED, NODE_PREFIX, NODES
from fastness.sim.machines import Fleet, machines

CONTAINERS = "containers"


@asynccontextmanager
async def virtual_machines(
    api: EmbeddedApi, state: Path, count: int, profile: str, clock: Clock, entropy: Entropy
) -> AsyncIterator[None]:
    """So many machines below the state directory, for the time of the block."""
    if not count or profile != CONTAINERS:
        if count:
            tell(f"machines of profile {profile} need attestation and are not started; see --profile containers")
        yield
        return
    directory = state / "machines"
    directory.mkdir(mode=0o700, exist_ok=True)

    def as_node(name: str) -> Cluster:
        return LocalCluster(api, User(f"{NODE_PREFIX}{name}", (NODES, AUTHENTICATED)))

    async with machines(Fleet(LocalCluster(api), as_node, directory, clock, entropy), count):
        yield
