"""Tells nodes which certificates and credentials they should have beside their configs; pausing a pool does not hold that up.

The document (`machineconfig.trust`) follows from the ControllerConfig. Nodes are told its name in an annotation. That wakes their
agents and is a request, nothing more: they fetch what is good now where they fetch configs. Nodes of a pool whose images need a
credential are told the name of the document with it; what is in it they hear from a door, once they have proved themselves. While
something in the
ControllerConfig cannot be read, nobody is told anything, and it says `NodeTrustFailing`.

All certificates of registries also stand in one ConfigMap for programs in pods, and each with its dates in the status of the
ControllerConfig; those by which kubelets know the API, in the status of every pool, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, object_name, rfc3339
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.nodes.published_maps import publish
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.machineconfig.trust.image_pull import NAME as CREDENTIALS
from fastness.machineconfig.trust.image_pull import credential_of, with_credential
from fastness.machineconfig.trust.node_trust import (
    API_AUTHORITY,
    KUBELET_BUNDLE,
    MERGED,
    listed_certificates,
    merged_bundle,
    node_trust,
)
from fastness.machineconfig.trust.sources import BUNDLE_KEY, MANAGED
from fastness.protocol.node_trust import NodeTrust
from fastness.runtime.clock import Clock

MAPS: Final = CONFIG_MAP.resource
CONTROLLERS: Final = CONTROLLER_CONFIG.resource
NODES: Final = NODE.resource
POOLS: Final = MACHINE_CONFIG_POOL.resource
ALL: Final = ObjectName("", "*")
SECRETS: Final = SECRET.resource
CONFIDENTIAL: Final = CONFIDENTIAL_CLUSTER.resource
_READS: Final = fields(annotations=(names.CURRENT_CONFIG, names.DESIRED_CONFIG, names.DESIRED_TRUST))
_CREDENTIALS: Final = Scope(NAMESPACE, fields=f"metadata.name={CREDENTIALS}")
_COPY: Final = Scope(API_AUTHORITY[0], fields=f"metadata.name={API_AUTHORITY[1]}")
_MERGED: Final = Scope(MANAGED, fields=f"metadata.name={MERGED}")
_AS: Final = WriteOptions(manager="machine-config-trust")
_STATUS: Final = WriteOptions(manager="machine-config-trust", subresource="status")


def _all(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


class TrustOfNodes:
    """Tells nodes, and publishes what nodes believe."""

    name = "machine-config-trust"
    writes: Sequence[Resource] = (NODES, MAPS, CONTROLLERS, POOLS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(CONTROLLERS, keys=_all, delay=timing.render_delay), Source(MAPS, keys=_all, scope=_COPY),
            Source(MAPS, keys=_all, scope=_MERGED), Source(NODES, keys=self._if_behind, reads=_READS),
            Source(POOLS, keys=self._if_silent), Source(SECRETS, keys=_all, scope=_CREDENTIALS),
            Source(CONFIDENTIAL, keys=_all),
        )  # fmt: skip
        self._cluster = cluster
        self._controllers = informers.of(CONTROLLERS)
        self._copy = informers.of(MAPS, _COPY)
        self._merged = informers.of(MAPS, _MERGED)
        self._nodes = informers.of(NODES)
        self._pools = informers.of(POOLS)
        self._credentials = informers.of(SECRETS, _CREDENTIALS)
        self._confidential = informers.of(CONFIDENTIAL)
        self._trust: NodeTrust | None = None
        self._expiries: list[JsonObject] | None = None

    def _if_behind(self, node: Object) -> Iterable[ObjectName]:
        """A node that was not told; heartbeats concern nobody here."""
        return (object_name(node),) if self._untold(node) else ()

    def _if_silent(self, pool: Object) -> Iterable[ObjectName]:
        """All, for a pool that does not say when its certificates expire; what a rollout counts concerns nobody here."""
        listed = (pool.get("status") or {}).get("certExpirys") or []
        return (ALL,) if self._expiries is not None and listed != self._expiries else ()

    def _untold(self, node: Object) -> bool:
        notes = annotations_of(node)
        # A node without a config is somebody else's, or not ready for one: there is no agent that would write anything.
        return bool(
            self._trust is not None and notes.get(names.CURRENT_CONFIG)
            and notes.get(names.DESIRED_TRUST) != self._desired(notes, self._trust)
        )  # fmt: skip

    def _desired(self, notes: Mapping[str, str], trust: NodeTrust) -> str:
        """The document of a node: its pool is the one whose config it is to have, as its agent sees it."""
        pool = rendered_pool(notes.get(names.DESIRED_CONFIG) or notes.get(names.CURRENT_CONFIG, ""))
        secret, cluster = self._credentials.get(NAMESPACE, CREDENTIALS), self._confidential.get("", CLUSTER)
        return with_credential(trust, credential_of(secret, cluster, pool)).name

    async def reconcile(self, key: ObjectName) -> Done:
        """Tell one node, or look at everything."""
        if key != ALL:
            node = self._nodes.get("", key.name)
            return GONE if node is None else await self._told(node)
        controller = self._controllers.get("", SINGLETON)
        if controller is None:
            return Done()
        await self._publish(controller)
        trust, problems = node_trust(controller, self._copy.get(*API_AUTHORITY))
        # A cluster that does not know its own authority yet has nothing to tell: kubelets would believe nobody.
        if problems or not trust.kubelet_ca:
            return Done()
        self._trust = trust
        for node in self._nodes.list():
            await self._told(node)
        return Done()

    async def _told(self, node: JsonObject) -> Done:
        if self._trust is None or not self._untold(node):
            return Done()
        desired = self._desired(annotations_of(node), self._trust)
        patch = {"metadata": {"annotations": {names.DESIRED_TRUST: desired}}}
        try:
            await self._cluster.patch(NODES, object_name(node).name, patch, PatchType.MERGE, "", _AS)
        except NotFound:
            return GONE
        return Done()

    async def _publish(self, controller: JsonObject) -> None:
        """All certificates of registries in one place, and each with its dates."""
        bundle, present = merged_bundle(controller), self._merged.get(MANAGED, MERGED)
        data = (present or {}).get("data") or {}
        if data.get(BUNDLE_KEY, "") != bundle:
            await publish(self._cluster, MANAGED, MERGED, {BUNDLE_KEY: bundle}, _AS)
        listed = [
            {
                "bundleFile": entry.bundle, "subject": entry.subject, "signer": entry.signer,
                "notBefore": rfc3339(entry.not_before), "notAfter": rfc3339(entry.not_after),
            }
            for entry in listed_certificates(controller)
        ]  # fmt: skip
        if listed != ((controller.get("status") or {}).get("controllerCertificates") or []):
            patch = {"status": {"controllerCertificates": listed}}
            await self._cluster.patch(CONTROLLERS, SINGLETON, patch, PatchType.MERGE, "", _STATUS)
        await self._tell_pools(listed)

    async def _tell_pools(self, certificates: Sequence[JsonObject]) -> None:
        """When the certificates expire by which kubelets of a pool know the API."""
        expiries = [
            {"bundle": entry["bundleFile"], "subject": entry["subject"], "expiry": entry["notAfter"]}
            for entry in certificates
            if entry["bundleFile"] == KUBELET_BUNDLE
        ]
        self._expiries = expiries
        for pool in self._pools.list():
            if ((pool.get("status") or {}).get("certExpirys") or []) == expiries:
                continue
            # One member that nobody else writes: there is nothing beside it that this could drop.
            patch = {"status": {"certExpirys": expiries}}
            with suppress(NotFound):
                await self._cluster.patch(POOLS, object_name(pool).name, patch, PatchType.MERGE, "", _STATUS)
