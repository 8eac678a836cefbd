"""All loops of machine configuration, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.controllers.engine.controller import Controller
from fastness.controllers.engine.fenced import FencedCluster, nobody_asks
from fastness.controllers.machineconfig.defaults import Defaults
from fastness.controllers.machineconfig.drain import Drains
from fastness.controllers.machineconfig.generated import Generated
from fastness.controllers.machineconfig.labels import FirstLabels
from fastness.controllers.machineconfig.nodes import ConfigNodes
from fastness.controllers.machineconfig.prune import Pruning
from fastness.controllers.machineconfig.render import Rendering
from fastness.controllers.machineconfig.rollout import Rollout
from fastness.controllers.machineconfig.stubs import InstallerStubs
from fastness.controllers.machineconfig.timing import FIELD, Timing
from fastness.controllers.machineconfig.userdata import UserData
from fastness.domain.attestation.trustedcluster import Doors
from fastness.model.kind import Resource
from fastness.trust.statuses import Statuses
from fastness.trust.tiles import TileStore


def nowhere() -> Doors | None:
    """The doors of a cluster that has none yet: no user-data is made."""
    return None


LOOPS = (Defaults, Generated, Rendering, FirstLabels, Rollout, Drains, ConfigNodes, Pruning)


@dataclass(frozen=True, slots=True)
class Around:
    """What the loops need beside the cluster: times, entropy, where the doors are, whether they may write, where tiles lie.

    `watched` says whether admission of ours stands in front of the API; the embedded one always has it. `statuses` are those of
    Machines, where the cluster that the loops get signs them.
    """

    clock: Clock
    entropy: Entropy
    timing: Timing = FIELD
    doors: Callable[[], Doors | None] = nowhere
    may_write: Callable[[], None] = nobody_asks
    tiles: TileStore | None = None
    watched: Callable[[], bool] = lambda: True
    statuses: Statuses | None = None


def machine_config_loops(cluster: Cluster, informers: Informers, around: Around) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease."""

    def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
        return FencedCluster(cluster, name, writes, around.may_write)

    loops: list[Controller] = [
        one(fenced(one.name, one.writes), informers, around.clock, around.timing) for one in LOOPS
    ]
    user_data = fenced(UserData.name, UserData.writes)
    stubs = fenced(InstallerStubs.name, InstallerStubs.writes)
    return [
        *loops,
        UserData(user_data, informers, around.clock, around.entropy, around.doors),
        InstallerStubs(stubs, informers, around.clock, around.doors),
    ]
