"""All loops for confidential containers, ready to run: each behind its declaration of writes and the lease."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.runtime.clock import Clock
from fastness.workloads.loops import other_operators
from fastness.workloads.loops.features import NodeFeatures
from fastness.workloads.loops.kata.loop import KataConfigs
from fastness.workloads.loops.olm.catalogs import Catalogs
from fastness.workloads.loops.olm.subscriptions import Subscriptions
from fastness.workloads.loops.olm.versions import InstallPlans, OperatorGroups, ServiceVersions

OLM: Final = (Catalogs, Subscriptions, InstallPlans, ServiceVersions, OperatorGroups)


def workload_loops(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    *,
    timing: Timing = FIELD,
    may_write: Callable[[], None] = nobody_asks,
    without: Collection[str] = (),
) -> list[Controller]:
    """Every loop but those of some families (`other_operators`)."""
    loops: list[Controller] = []
    if other_operators.FEATURES not in without:
        fenced = FencedCluster(cluster, NodeFeatures.name, NodeFeatures.writes, may_write)
        loops.append(NodeFeatures(fenced, informers, clock))
    if other_operators.KATA not in without:
        fenced = FencedCluster(cluster, KataConfigs.name, KataConfigs.writes, may_write)
        loops.append(KataConfigs(fenced, informers, clock, timing))
    if other_operators.OPERATORS not in without:
        loops += operator_loops(cluster, informers, clock, may_write)
    return loops


def operator_loops(
    cluster: Cluster, informers: Informers, clock: Clock, may_write: Callable[[], None] = nobody_asks
) -> list[Controller]:
    """The loops that install operators."""
    return [loop(FencedCluster(cluster, loop.name, loop.writes, may_write), informers, clock) for loop in OLM]
