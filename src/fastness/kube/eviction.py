"""Emptying a node, one pod at a time, through the API: disruption budgets hold, pods of DaemonSets and mirror pods stay.

Drains for updates and drains of machines that prove nothing any more both come here.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import POD
from fastness.kinds.objects import annotations_of, is_being_deleted, metadata, object_name
from fastness.kube.errors import ApiError, NotFound, TooManyRequests
from fastness.kube.port import Cluster, Scope

LEAST_GRACE: Final = 1
MIRROR: Final = "kubernetes.io/config.mirror"
FINISHED: Final = frozenset({"Succeeded", "Failed"})


async def evict_all(cluster: Cluster, node: str) -> list[str]:
    """Evict what may be evicted; what blocks the rest."""
    blocked = []
    for pod in await pods_to_go(cluster, node):
        if is_being_deleted(pod):
            continue
        place = object_name(pod)
        meta = {"name": place.name, "namespace": place.namespace}
        eviction: JsonObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        if (pod.get("spec") or {}).get("terminationGracePeriodSeconds") == 0:
            # An API server forgets a pod without grace at once, while its containers still run: the node would count as empty.
            eviction["deleteOptions"] = {"gracePeriodSeconds": LEAST_GRACE}
        try:
            await cluster.connect(POD.resource, place.name, place.namespace, "eviction", eviction)
        except NotFound:
            continue
        except TooManyRequests as error:
            why = error.causes[0].message if error.causes else error.message
            blocked.append(f"{place}: {why}")
        except ApiError as error:
            blocked.append(f"{place}: {error.message}")
    return blocked


async def pods_to_go(cluster: Cluster, node: str) -> list[JsonObject]:
    """The pods that a drain has to wait for."""
    page = await cluster.list(POD.resource, Scope(fields=f"spec.nodeName={node}"))
    return [pod for pod in page.items if _must_go(pod)]


def _must_go(pod: JsonObject) -> bool:
    """Whether a drain waits for this pod: finished ones, mirrors and those of DaemonSets stay."""
    if (pod.get("status") or {}).get("phase") in FINISHED or MIRROR in annotations_of(pod):
        return False
    owners = metadata(pod).get("ownerReferences") or ()
    return not any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
