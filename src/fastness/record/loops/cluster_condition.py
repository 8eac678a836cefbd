"""One condition of the ConfidentialCluster, written by the loop that knows it.

Other loops write other conditions of the same object, so the list is changed under the condition that nobody else did: a conflict
is tried again. A cluster without a ConfidentialCluster has nowhere to say it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.objects import condition, with_condition
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

TRIES: Final = 5
_AS: Final = WriteOptions(manager="record", subresource="status")


async def set_condition(cluster: Cluster, now: datetime, kind: str, status: str, reason: str, message: str) -> None:
    """Make the condition so, unless it is; raises ApiError."""
    for _ in range(TRIES):
        try:
            stored = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        except NotFound:
            return
        current = condition(stored, kind) or {}
        if (current.get("status"), current.get("reason"), current.get("message")) == (status, reason, message):
            return
        conditions = with_condition(
            (stored.get("status") or {}).get("conditions") or [],
            kind=kind, status=status, reason=reason, message=message, now=now,
            generation=int(stored["metadata"].get("generation", 1)),
        )  # fmt: skip
        version = stored["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "status": {"conditions": list(conditions)}}
        try:
            await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, "", _AS)
        except Conflict:
            continue
        return
