"""Nodes that came by the token of a pool: which name has which pool, written down by the controllers before the certificate is.

    ConfigMap fastness-system/joined-node-<hash of the name>   node, pool, ticket, token, key, uid of the Node, last end

Node objects cannot say this: a kubelet writes annotations of its own Node, and gives it labels that it likes. Here nobody writes
but the controllers. The name of the ConfigMap follows from that of the node, so an API server lets one machine have a name and no
second: making it is the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.enrolment.unattested import JoinedNode
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import labels_of, metadata, object_name, rfc3339
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions

CONFIG_MAPS: Final = CONFIG_MAP.resource
LABEL: Final = "fastness.dev/joined-node"
JOINED: Final = Scope(NAMESPACE, labels=f"{LABEL}=true")
BY_NODE: Final = "joined/node"
_HEX: Final = 40
_AS: Final = WriteOptions(manager="unattested-joins")


def record_name(node: str) -> str:
    """The ConfigMap about a node of this name."""
    return f"joined-node-{sha256(node.encode()).hex[:_HEX]}"


def joined_node(record: Mapping[str, Any]) -> JoinedNode | None:
    """What a ConfigMap says of a node; None when it is not about one."""
    data = record.get("data") or {}
    node, pool = str(data.get("node") or ""), str(data.get("pool") or "")
    # By its name as well: a second ConfigMap about the same node would give it a second pool.
    ours = labels_of(record).get(LABEL) == "true" and object_name(record).name == record_name(node)
    try:
        ends = datetime.fromisoformat(str(data.get("ends")))
    except ValueError:
        return None
    if not ours or not node or not pool:
        return None
    return JoinedNode(
        node, pool, str(data.get("token") or ""), str(data.get("key") or ""),
        ends if ends.tzinfo else ends.replace(tzinfo=UTC), str(data.get("ticket") or ""), str(data.get("uid") or ""),
    )  # fmt: skip


def nodes_of(record: Mapping[str, Any]) -> Iterable[str]:
    """The name of the node that a ConfigMap is about; an index."""
    joined = joined_node(record)
    return (joined.node,) if joined is not None else ()


INDEXES: Final = {BY_NODE: nodes_of}


def joined_informer(informers: Informers) -> Informer:
    """The cache of all of them, found by the names of nodes."""
    return informers.of(CONFIG_MAPS, JOINED, indexers=INDEXES)


class Claim(Enum):
    """What became of a claim to a name."""

    NEW = "new"
    SAME = "same"
    TAKEN = "taken"


class JoinedNodes:
    """Reads and writes what is known of such nodes, at the API itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def of(self, node: str) -> JoinedNode | None:
        """The node of this name, None when it did not come by a token; raises ApiError."""
        record = await self._record(node)
        return joined_node(record) if record is not None else None

    async def claim(self, joined: JoinedNode) -> Claim:
        """Give a machine its name, unless another one has it. Claimed again by the same token and key it is the same."""
        made = {
            "apiVersion": "v1", "kind": "ConfigMap", "data": _data(joined),
            "metadata": {"name": record_name(joined.node), "namespace": NAMESPACE, "labels": {LABEL: "true"}},
        }  # fmt: skip
        try:
            await self._cluster.create(CONFIG_MAPS, made, _AS)
        except AlreadyExists:
            holder = await self.of(joined.node)
            same = holder is not None and (holder.token, holder.key) == (joined.token, joined.key)
            return Claim.SAME if same else Claim.TAKEN
        return Claim.NEW

    async def change(self, record: JsonObject, changes: Mapping[str, str]) -> None:
        """Write further facts on what was read; raises Conflict, NotFound."""
        patch = {"metadata": {"resourceVersion": metadata(record)["resourceVersion"]}, "data": dict(changes)}
        await self._cluster.patch(CONFIG_MAPS, object_name(record).name, patch, PatchType.MERGE, NAMESPACE, _AS)

    async def extend(self, node: str, ends: datetime) -> None:
        """A certificate of the node ends at a time: nobody else gets its name before; raises Conflict, NotFound."""
        record = await self._record(node)
        joined = joined_node(record) if record is not None else None
        if record is not None and joined is not None and joined.ends < ends:
            await self.change(record, {"ends": rfc3339(ends)})

    async def forget(self, record: JsonObject) -> None:
        """Set a name free, if nobody changed the record since; raises Conflict, NotFound."""
        meta = metadata(record)
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        await self._cluster.delete(CONFIG_MAPS, object_name(record).name, NAMESPACE, options)

    async def _record(self, node: str) -> JsonObject | None:
        if not node:
            return None
        try:
            return await self._cluster.get(CONFIG_MAPS, record_name(node), NAMESPACE)
        except NotFound:
            return None


def _data(joined: JoinedNode) -> dict[str, str]:
    return {
        "node": joined.node, "pool": joined.pool, "token": joined.token, "key": joined.key, "ticket": joined.ticket,
        "uid": joined.uid, "ends": rfc3339(joined.ends),
    }  # fmt: skip
