"""How a Machine goes, whoever made it: hooks of others hold it, its node is emptied, its finalizer is the last thing.

    waiting = await holds_up(cluster, machine, node)      # why it cannot be ended yet; empty when it can
    …the provider ends it…
    await let_go(cluster, machine)

Pods leave through the API, so that disruption budgets hold.
"""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import metadata, object_name
from fastness.kinds.openshift.machines import FINALIZER, PROVIDER_MACHINE
from fastness.kube.errors import NotFound
from fastness.kube.eviction import evict_all, pods_to_go
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.scaling.machines import hooks


async def holds_up(cluster: Cluster, machine: JsonObject, node: JsonObject | None, options: WriteOptions) -> list[str]:
    """Who has to agree before a Machine is ended, and which pods are still to go; its node is emptied meanwhile."""
    waiting = hooks(machine, "preDrain")
    if not waiting and node is not None:
        waiting = await _emptied(cluster, node, options)
    return waiting or hooks(machine, "preTerminate")


async def let_go(cluster: Cluster, machine: JsonObject, options: WriteOptions) -> None:
    """Take the finalizer away: nothing is left that the Machine stands for."""
    place, left = object_name(machine), [name for name in metadata(machine)["finalizers"] if name != FINALIZER]
    patch = {"metadata": {"finalizers": left or None}}
    await cluster.patch(PROVIDER_MACHINE.resource, place.name, patch, PatchType.MERGE, place.namespace, options)


async def forget_node(cluster: Cluster, node: JsonObject | None) -> None:
    """Delete the Node of a machine that is gone: nobody else takes it for one that may come back."""
    if node is None:
        return
    try:
        await cluster.delete(NODE.resource, object_name(node).name)
    except NotFound:
        return


async def _emptied(cluster: Cluster, node: JsonObject, options: WriteOptions) -> list[str]:
    """Cordon a node and evict its pods; what is still to go, and why."""
    name = object_name(node).name
    if not (node.get("spec") or {}).get("unschedulable"):
        patch = {"spec": {"unschedulable": True}}
        await cluster.patch(NODE.resource, name, patch, PatchType.MERGE, "", options)
    blocked = await evict_all(cluster, name)
    left = await pods_to_go(cluster, name)
    return blocked or [f"pod {object_name(pod)}" for pod in left]
