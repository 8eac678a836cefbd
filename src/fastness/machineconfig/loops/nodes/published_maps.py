"""ConfigMaps that loops publish: made, and brought to what they should say."""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

MAPS: Final[Resource] = CONFIG_MAP.resource


async def publish(cluster: Cluster, namespace: str, name: str, data: JsonObject, options: WriteOptions) -> bool:
    """Have a ConfigMap with this data; whether that was possible: a namespace that is not there is not made. Raises ApiError."""
    try:
        await cluster.patch(MAPS, name, {"data": data}, PatchType.MERGE, namespace, options)
        return True
    except NotFound:
        meta = {"name": name, "namespace": namespace}
    try:
        await cluster.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, options)
    except AlreadyExists:
        await cluster.patch(MAPS, name, {"data": data}, PatchType.MERGE, namespace, options)
    except NotFound:
        return False
    return True
