"""Telling the cluster what this machine can do.

    discover ─ NodeFeature of this node ─ rules in the control plane ─ labels and resources of the Node

Looks every minute, and writes only when something changed. Nothing here is proof: rules treat it as a hint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.nfd.feature import NODE_FEATURE, NODE_NAME_LABEL
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock
from fastness.workloads.features.discovered import Features

NAMESPACE: Final = "openshift-nfd"
INTERVAL: Final = 60.0
_AS: Final = WriteOptions(manager="fastness-features")


def node_feature(node: str, features: Features, namespace: str = NAMESPACE) -> JsonObject:
    """The object that carries what was found on a node."""
    return {
        "apiVersion": NODE_FEATURE.api_version,
        "kind": NODE_FEATURE.kind,
        "metadata": {"name": node, "namespace": namespace, "labels": {NODE_NAME_LABEL: node}},
        "spec": {"features": features.to_json()},
    }


async def report(cluster: Cluster, wanted: JsonObject) -> bool:
    """Write the object if it differs from what is there; says whether it was written."""
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    try:
        known = await cluster.get(NODE_FEATURE.resource, name, namespace)
    except NotFound:
        try:
            await cluster.create(NODE_FEATURE.resource, wanted, _AS)
            return True
        except AlreadyExists:
            known = await cluster.get(NODE_FEATURE.resource, name, namespace)
    if known.get("spec") == wanted["spec"] and _names_node(known, wanted):
        return False
    # The spec is replaced as a whole: what was not found any more must not stay.
    patch = [
        {"op": "replace", "path": "/spec", "value": wanted["spec"]},
        {"op": "add", "path": "/metadata/labels", "value": wanted["metadata"]["labels"]},
    ]
    await cluster.patch(NODE_FEATURE.resource, name, patch, PatchType.JSON, namespace, _AS)
    return True


def _names_node(known: JsonObject, wanted: JsonObject) -> bool:
    labels = known["metadata"].get("labels") or {}
    return bool(labels.get(NODE_NAME_LABEL) == wanted["metadata"]["labels"][NODE_NAME_LABEL])


async def keep_reporting(
    cluster: Cluster, node: str, look: Callable[[], Features], clock: Clock, interval: float = INTERVAL
) -> None:
    """Report for ever."""
    while True:
        await report(cluster, node_feature(node, look()))
        await clock.sleep(interval)
