"""Every namespace has a `default` service account and the API's root CA in `kube-root-ca.crt`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.apiserver.loops.namespaces import NAMESPACES
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, SERVICE_ACCOUNT
from fastness.kinds.objects import ObjectName, is_being_deleted, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, Forbidden, NotFound
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions

ACCOUNTS = SERVICE_ACCOUNT.resource
CONFIG_MAPS = CONFIG_MAP.resource
ACCOUNT = "default"
_AS = WriteOptions(manager="namespace-furniture")


def _namespace_of(obj: Object) -> Iterable[ObjectName]:
    """The namespace of an account or config map that this loop keeps; nothing for all others."""
    place = object_name(obj)
    return (ObjectName("", place.namespace),) if place.name in (ACCOUNT, ROOT_CA) else ()


class NamespaceFurniture:
    """Keeps what every namespace has."""

    name = "namespace-furniture"
    sources: Sequence[Source] = (
        Source(NAMESPACES), Source(ACCOUNTS, keys=_namespace_of),
        Source(CONFIG_MAPS, keys=_namespace_of, scope=Scope(fields=f"metadata.name={ROOT_CA}")),
    )  # fmt: skip
    writes: Sequence[Resource] = (ACCOUNTS, CONFIG_MAPS)

    def __init__(self, cluster: Cluster, root_ca: str) -> None:
        self._cluster = cluster
        self._root_ca = root_ca

    async def reconcile(self, key: ObjectName) -> Done:
        """Create what is missing, correct what differs."""
        try:
            namespace = await self._cluster.get(NAMESPACES, key.name)
        except NotFound:
            return GONE
        if is_being_deleted(namespace):
            return Done()
        place = {"namespace": key.name}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, **place}}
        await self._ensure(ACCOUNTS, account, None)
        data = {"ca.crt": self._root_ca}
        bundle = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ROOT_CA, **place}, "data": data}
        await self._ensure(CONFIG_MAPS, bundle, data)
        return Done()

    async def _ensure(self, resource: Resource, furniture: JsonObject, data: JsonObject | None) -> None:
        place = object_name(furniture)
        try:
            current = await self._cluster.get(resource, place.name, place.namespace)
        except NotFound:
            await self._create(resource, furniture)
            return
        if data is not None and current.get("data") != data and not is_being_deleted(current):
            await self._cluster.patch(resource, place.name, {"data": data}, PatchType.MERGE, place.namespace, _AS)

    async def _create(self, resource: Resource, furniture: JsonObject) -> None:
        try:
            await self._cluster.create(resource, furniture, _AS)
        except (AlreadyExists, Forbidden):
            return  # somebody was faster, or the namespace is on its way out
