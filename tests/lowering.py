"""Lowering a ConfidentialCluster as a person does it: try, read the confirmation that the refusal prints, and say it twice."""

from __future__ import annotations

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Forbidden
from fastness.kube.port import Cluster, PatchType


async def lowered(cluster: Cluster, spec: JsonObject) -> JsonObject:
    """The ConfidentialCluster with this change of its spec, confirmed where it lowers anything."""
    try:
        return await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, {"spec": spec}, PatchType.MERGE)
    except Forbidden as refused:
        confirmed = {"annotations": {CONFIRM_LOWER: word_of(refused)}}
        patch = {"metadata": confirmed, "spec": spec}
        return await cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE)


def word_of(refused: Forbidden) -> str:
    """The confirmation that a refusal asks for."""
    return next(cause.message for cause in refused.causes if CONFIRM_LOWER in cause.field).removeprefix(
        "Required value: "
    )
