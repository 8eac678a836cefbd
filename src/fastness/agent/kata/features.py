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


async def report(cluster: Cluster, feature: JsonObject) -> bool:
    """Write the object if it differs from what is there; says whether it was written."""
    name, namespace = feature["metadata"]["name"], feature["metadata"]["namespace"]
    try:
        present = await cluster.get(NODE_FEATURE.resource, name, namespace)
    except NotFound:
        try:
            await cluster.create(NODE_FEATURE.resource, feature, _AS)
            return True
        except AlreadyExists:
            present = await cluster.get(NODE_FEATURE.resource, name, namespace)
    if present.get("spec") == feature["spec"] and _names_node(present, feature):
        return False
    # The spec is replaced as a whole: what was not found any more must not stay.
    patch = [
        {"op": "replace", "path": "/spec", "value": feature["spec"]},
        {"op": "add", "path": "/metadata/labels", "value": feature["metadata"]["labels"]},
    ]
    await cluster.patch(NODE_FEATURE.resource, name, patch, PatchType.JSON, namespace, _AS)
    return True


def _names_node(present: JsonObject, feature: JsonObject) -> bool:
    labels = present["metadata"].get("labels") or {}
    return bool(labels.get(NODE_NAME_LABEL) == feature["metadata"]["labels"][NODE_NAME_LABEL])


async def keep_reporting(
    cluster: Cluster, node: str, look: Callable[[], Features], clock: Clock, interval: float = INTERVAL
) -> None:
    """Report again at every interval, until cancelled."""
    while True:
        await report(cluster, node_feature(node, look()))
        await clock.sleep(interval)
