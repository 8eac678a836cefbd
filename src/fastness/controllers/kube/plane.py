"""All loops of this package, ready to run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fastness.cluster.clock import Clock
from fastness.cluster.port import Cluster
from fastness.controllers.engine.controller import Controller
from fastness.controllers.engine.fenced import FencedCluster
from fastness.controllers.engine.runner import Feed
from fastness.controllers.kube.accounts import NamespaceFurniture
from fastness.controllers.kube.budgets import BudgetStatus
from fastness.controllers.kube.definitions import DefinitionCleanup
from fastness.controllers.kube.expiry import EventExpiry
from fastness.controllers.kube.garbage import GarbageCollector
from fastness.controllers.kube.inventory import Inventory
from fastness.controllers.kube.namespaces import NamespaceLifecycle
from fastness.controllers.kube.roles import RoleAggregation
from fastness.controllers.kube.signing import NodeSigner, NodeSigning


@dataclass(frozen=True, slots=True)
class KubeLoops:
    """Controllers, and what feeds those that read no informer."""

    controllers: tuple[Controller, ...]
    feeds: dict[str, Feed]


def kube_loops(
    cluster: Cluster,
    inventory: Inventory,
    clock: Clock,
    root_ca: str,
    unowned: Collection[tuple[str, str]],
    signer: NodeSigner | None = None,
) -> KubeLoops:
    """What Kubernetes does itself, for the embedded API; without a signer nobody signs what was approved.

    `unowned` are kinds of objects that never go with an owner.
    """

    def fenced(kind: type[Controller]) -> FencedCluster:
        return FencedCluster(cluster, kind.name, kind.writes, everywhere=True)  # type: ignore[arg-type]  # class attributes

    return KubeLoops(
        (
            GarbageCollector(fenced(GarbageCollector), inventory, unowned),
            NamespaceLifecycle(fenced(NamespaceLifecycle), inventory, clock),
            DefinitionCleanup(fenced(DefinitionCleanup), inventory),
            NamespaceFurniture(fenced(NamespaceFurniture), root_ca),
            BudgetStatus(fenced(BudgetStatus), clock),
            EventExpiry(fenced(EventExpiry), clock),
            RoleAggregation(fenced(RoleAggregation)),
            *((NodeSigning(fenced(NodeSigning), signer, clock),) if signer else ()),
        ),
        {GarbageCollector.name: inventory.listen},
    )
