"""All loops of machine configuration, ready to run."""

from __future__ import annotations

from collections.abc import Callable

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.controllers.engine.controller import Controller
from fastness.controllers.engine.fenced import FencedCluster
from fastness.controllers.machineconfig.defaults import Defaults
from fastness.controllers.machineconfig.drain import Drains
from fastness.controllers.machineconfig.nodes import ConfigNodes
from fastness.controllers.machineconfig.prune import Pruning
from fastness.controllers.machineconfig.render import Rendering
from fastness.controllers.machineconfig.rollout import Rollout
from fastness.controllers.machineconfig.timing import Timing

LOOPS = (Defaults, Rendering, Rollout, Drains, ConfigNodes, Pruning)


def machine_config_loops(
    cluster: Cluster, informers: Informers, clock: Clock, timing: Timing, may_write: Callable[[], None]
) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease."""
    return [one(FencedCluster(cluster, one.name, one.writes, may_write), informers, clock, timing) for one in LOOPS]
