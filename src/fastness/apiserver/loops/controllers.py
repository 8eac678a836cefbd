"""All loops of this package, ready to run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fastness.apiserver.loops.accounts import NamespaceFurniture
from fastness.apiserver.loops.budgets import BudgetStatus
from fastness.apiserver.loops.definitions import DefinitionCleanup
from fastness.apiserver.loops.expiry import EventExpiry
from fastness.apiserver.loops.garbage import GarbageCollector
from fastness.apiserver.loops.inventory import Inventory
from fastness.apiserver.loops.namespaces import NamespaceLifecycle
from fastness.apiserver.loops.roles import RoleAggregation
from fastness.apiserver.loops.signing import NodeSigner, NodeSigning
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.runner import Feed
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock


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
