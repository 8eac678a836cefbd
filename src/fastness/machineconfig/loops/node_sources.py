"""Where facts about the cluster are read: the one place that looks at Services, Secrets, ConfigMaps and OpenShift's own objects.

Every object is followed by its name, so that the account of the controllers needs no other. What they mean is decided in
`machineconfig.render.base.cluster_facts`; `generated.py` writes it down and makes base configs of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from fastness.keys import client_authorities
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.kubernetes.native import native
from fastness.kinds.openshift.config import CLUSTER_VERSION, INFRASTRUCTURE, PROXY
from fastness.kube.controllers.controller import Object, Source
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.informers import Informers
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, Scope
from fastness.machineconfig.render.base.cluster_facts import PULL_SECRET, ClusterObjects

SERVICE: Final = native("", "Service").resource
CONFIG_MAPS, SECRETS = CONFIG_MAP.resource, SECRET.resource
USER_NAMESPACE: Final = PULL_SECRET[0]
MANAGED_NAMESPACE: Final = "openshift-config-managed"
USER_CA: Final = "user-ca-bundle"
# Kinds of OpenShift of which we keep no definition: they are there or not, and asked for where the cluster is one.
DNS: Final = Resource("config.openshift.io", "v1", "dnses", "DNS", False)
NETWORK: Final = Resource("config.openshift.io", "v1", "networks", "Network", False)
# Field of ClusterObjects: kind, namespace, name.
FOLLOWED: Final = {
    "dns_service": (SERVICE, "kube-system", "kube-dns"),
    "root_ca": (CONFIG_MAPS, "kube-system", ROOT_CA),
    "client_ca": (CONFIG_MAPS, client_authorities.NAMESPACE, client_authorities.NAME),
    "openshift_client_ca": (CONFIG_MAPS, MANAGED_NAMESPACE, "kube-apiserver-client-ca"),
    "cluster_info": (CONFIG_MAPS, "kube-public", "cluster-info"),
    "user_ca": (CONFIG_MAPS, USER_NAMESPACE, USER_CA),
    "pull_secret": (SECRETS, *PULL_SECRET),
    "infrastructure": (INFRASTRUCTURE.resource, "", "cluster"),
    "cluster_version": (CLUSTER_VERSION.resource, "", "version"),
    "proxy": (PROXY.resource, "", "cluster"),
}


class NodeSourceReader:
    """Reads what base configs are made from."""

    def __init__(self, cluster: Cluster, informers: Informers, keys: Callable[[Object], Iterable[Hashable]]) -> None:
        self._cluster = cluster
        self._informers = {
            field: informers.of(resource, _scope(namespace, name))
            for field, (resource, namespace, name) in FOLLOWED.items()
        }
        self.sources: Sequence[Source] = tuple(
            Source(resource, keys=keys, scope=_scope(namespace, name))
            for resource, namespace, name in FOLLOWED.values()
        )

    async def objects(self, controller: JsonObject) -> ClusterObjects:
        """Everything that is there now; raises ApiError when the API cannot be asked."""
        present: dict[str, Any] = {
            field: self._informers[field].get(namespace, name) for field, (_, namespace, name) in FOLLOWED.items()
        }
        unreadable: dict[str, str] = {}
        if present["infrastructure"] is not None:
            present["dns"], present["network"] = await self._optional(DNS), await self._optional(NETWORK)
        trusted = (((present["proxy"] or {}).get("spec") or {}).get("trustedCA") or {}).get("name")
        if trusted and trusted != USER_CA:
            present["trusted_ca"] = await self._named(CONFIG_MAPS, USER_NAMESPACE, str(trusted), unreadable)
        reference = (controller.get("spec") or {}).get("pullSecret")
        if isinstance(reference, dict) and reference.get("name"):
            place = (str(reference.get("namespace") or USER_NAMESPACE), str(reference["name"]))
            if place != PULL_SECRET:
                present["pull_secret"] = await self._named(SECRETS, *place, unreadable)
        return ClusterObjects(**present, unreadable=unreadable)

    async def _optional(self, resource: Resource) -> JsonObject | None:
        try:
            return await self._cluster.get(resource, "cluster")
        except (NotFound, Forbidden):
            return None

    async def _named(
        self, resource: Resource, namespace: str, name: str, unreadable: dict[str, str]
    ) -> JsonObject | None:
        """An object that somebody referred to; why it cannot be read is told, because the reference is a person's."""
        try:
            return await self._cluster.get(resource, name, namespace)
        except NotFound:
            return None
        except Forbidden as error:
            unreadable[f"{resource.kind} {namespace}/{name}"] = error.message
        return None


def _scope(namespace: str, name: str) -> Scope:
    return Scope(namespace, fields=f"metadata.name={name}") if namespace else Scope()
