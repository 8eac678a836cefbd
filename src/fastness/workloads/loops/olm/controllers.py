"""All loops that install operators, ready to run."""

from __future__ import annotations

from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.controllers import Around
from fastness.workloads.loops.olm.catalogs import Catalogs
from fastness.workloads.loops.olm.subscriptions import Subscriptions
from fastness.workloads.loops.olm.versions import InstallPlans, OperatorGroups, ServiceVersions

LOOPS = (Catalogs, Subscriptions, InstallPlans, ServiceVersions, OperatorGroups)


def operator_loops(cluster: Cluster, informers: Informers, around: Around) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease."""
    return [
        one(FencedCluster(cluster, one.name, one.writes, around.may_write), informers, around.clock) for one in LOOPS
    ]
