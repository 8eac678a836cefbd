"""All loops that install operators, ready to run."""

from __future__ import annotations

from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.controllers.engine.controller import Controller
from fastness.controllers.engine.fenced import FencedCluster
from fastness.controllers.machineconfig.plane import Around
from fastness.controllers.workloads.olm.catalogs import Catalogs
from fastness.controllers.workloads.olm.subscriptions import Subscriptions
from fastness.controllers.workloads.olm.versions import InstallPlans, OperatorGroups, ServiceVersions

LOOPS = (Catalogs, Subscriptions, InstallPlans, ServiceVersions, OperatorGroups)


def operator_loops(cluster: Cluster, informers: Informers, around: Around) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease."""
    return [
        one(FencedCluster(cluster, one.name, one.writes, around.may_write), informers, around.clock) for one in LOOPS
    ]
