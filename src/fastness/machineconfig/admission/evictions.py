"""Pods are not put out by a field that somebody set: who turns `pools[].evict` on is shown first which of them would go.

    leaving = would_leave(old, new, nodes, pods, pools, machines)     # "namespace/name on node", in order; empty: nobody leaves

The effect NoExecute takes every pod off a node without proof that does not tolerate the taint. Which nodes those are is known
where the pool enforces already: they carry the taint. Where enforcement comes in the same write, every node of the pool counts.
A list with somebody on it refuses the change, once: the annotation `fastness.dev/confirm-evict` with the digest of the change, as
the refusal prints it, carries it through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.attestation.machine.proof_age import LEAVE, TAINT_KEY
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.cluster import CONFIRM_EVICT
from fastness.kinds.fastness_dev.trust_model import enforces, evicts, listed_pools
from fastness.kinds.objects import annotations_of, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Denied, DeniedCause, forbidden
from fastness.kube.confirmation import confirmation
from fastness.pools.membership import MemberPools, pools_of_nodes

Object = Mapping[str, Any]
MOST_NAMED: Final = 20
FINISHED: Final = ("Succeeded", "Failed")


def evicting_is_confirmed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse to put pods out of nodes without proof before their names were shown; confirmed, allow and show them again."""
    old = request.old or {}
    if not _turned_on(old, request.new):
        return None
    leaving = would_leave(old, request.new, lookups.nodes(), lookups.pods(), lookups.pools(), lookups.machines())
    if not leaving:
        return None
    more = f" and {len(leaving) - MOST_NAMED} more" if len(leaving) > MOST_NAMED else ""
    warning = (
        f"evict puts {counted(len(leaving), 'pod')} out of nodes without proof: {', '.join(leaving[:MOST_NAMED])}{more}"
    )
    word = confirmation(old, request.new)
    if word and annotations_of(request.new).get(CONFIRM_EVICT) == word:
        return Allowed((warning,))
    if not word:
        return forbidden(request, f"{warning}: create the cluster without evict, and turn it on afterwards")
    cause = DeniedCause(f"metadata.annotations[{CONFIRM_EVICT}]", "FieldValueRequired", f"Required value: {word}")
    return forbidden(request, f"{warning}: confirm it with the annotation {CONFIRM_EVICT}={word}", cause)


def would_leave(
    old: Object,
    new: Object,
    nodes: Iterable[Object],
    pods: Iterable[Object],
    pools: Iterable[Object],
    machines: Iterable[Object] = (),
) -> list[str]:
    """The pods that a change of the ConfidentialCluster puts out of their nodes, which are in the pools of their Machines."""
    turned_on, members = _turned_on(old, new), MemberPools(pools, pools_of_nodes(machines), new)
    marked = {
        object_name(node).name
        for node in nodes
        if any(pool in turned_on and (_tainted(node) or not enforces(old, pool)) for pool in members.claiming(node))
    }
    leaving = (pod for pod in pods if (pod.get("spec") or {}).get("nodeName") in marked and _leaves(pod))
    return sorted(f"{object_name(pod)} on {pod['spec']['nodeName']}" for pod in leaving)


def _turned_on(old: Object, new: Object) -> frozenset[str]:
    return frozenset(pool for pool in listed_pools(new) if evicts(new, pool) and not evicts(old, pool))


def _tainted(node: Object) -> bool:
    return any(taint.get("key") == TAINT_KEY for taint in (node.get("spec") or {}).get("taints") or ())


def _leaves(pod: Object) -> bool:
    """Whether the taint puts a pod out: it runs, and does not tolerate it for good."""
    if (pod.get("status") or {}).get("phase") in FINISHED:
        return False
    return not any(map(_tolerates, (pod.get("spec") or {}).get("tolerations") or ()))


def _tolerates(toleration: Object) -> bool:
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    fits = (not key and operator == "Exists") or (
        key == TAINT_KEY and (operator == "Exists" or not toleration.get("value"))
    )
    return fits and toleration.get("effect") in (None, "", LEAVE) and toleration.get("tolerationSeconds") is None
