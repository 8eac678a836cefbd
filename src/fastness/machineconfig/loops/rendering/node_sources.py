"""Where facts about the cluster are read: the one place that looks at Services, Secrets, ConfigMaps and OpenShift's own objects.

Every object is followed by its name, so that the account of the controllers needs no other. What they mean is decided in
`machineconfig.render.base.cluster_facts`; `generated.py` writes it down and makes base configs of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from fastness.keys import client_authorities
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from fastness.kinds.kubernetes.native import native
from fastness.kinds.openshift.config import CLUSTER_VERSION, INFRASTRUCTURE, PROXY
from fastness.kinds.openshift.images import IMAGE
from fastness.kube.controllers.controller import Object, Source
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.informers import Informers
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, Scope
from fastness.machineconfig.render.base.cluster_facts import PULL_SECRET, ClusterObjects
from fastness.machineconfig.trust.sources import MANAGED, OPERATOR, PULLER, TrustSources

SERVICE: Final = native("", "Service").resource
CONFIG_MAPS, SECRETS = CONFIG_MAP.resource, SECRET.resource
USER_NAMESPACE: Final = PULL_SECRET[0]
USER_CA: Final = "user-ca-bundle"
# Kinds of OpenShift of which we keep no definition: they are there or not, and asked for where the cluster is one.
DNS: Final = Resource("config.openshift.io", "v1", "dnses", "DNS", False)
NETWORK: Final = Resource("config.openshift.io", "v1", "networks", "Network", False)
# Field of ClusterObjects: kind, namespace, name.
FACTS: Final = {
    "dns_service": (SERVICE, "kube-system", "kube-dns"),
    "root_ca": (CONFIG_MAPS, "kube-system", ROOT_CA),
    "cluster_info": (CONFIG_MAPS, "kube-public", "cluster-info"),
    "pull_secret": (SECRETS, *PULL_SECRET),
    "infrastructure": (INFRASTRUCTURE.resource, "", "cluster"),
    "cluster_version": (CLUSTER_VERSION.resource, "", "version"),
    "proxy": (PROXY.resource, "", "cluster"),
}
# The same of TrustSources.
TRUST: Final = {
    "client_ca": (CONFIG_MAPS, client_authorities.NAMESPACE, client_authorities.NAME),
    "openshift_client_ca": (CONFIG_MAPS, MANAGED, "kube-apiserver-client-ca"),
    "initial_server_ca": (CONFIG_MAPS, USER_NAMESPACE, "initial-kube-apiserver-server-ca"),
    "bootstrap": (CONFIG_MAPS, "kube-system", "bootstrap"),
    "user_ca": (CONFIG_MAPS, USER_NAMESPACE, USER_CA),
    "image_registry_ca": (CONFIG_MAPS, MANAGED, "image-registry-ca"),
    "cloud_config": (CONFIG_MAPS, MANAGED, "kube-cloud-config"),
}
# Objects that name others.
NAMING: Final = {
    "image": (IMAGE.resource, "", "cluster"),
    "puller": (SERVICE_ACCOUNT.resource, OPERATOR, PULLER),
}
FOLLOWED: Final = {**FACTS, **TRUST, **NAMING}
# Secrets of the puller are looked at again and not watched: their names are drawn by lot, so that we would hold all of the
# namespace's.
LOOK_AGAIN: Final = 300.0
MAX_PULLER_SECRETS: Final = 16


class NodeSourceReader:
    """Reads what base configs are made from."""

    def __init__(self, cluster: Cluster, informers: Informers, keys: Callable[[Object], Iterable[Hashable]]) -> None:
        self._cluster = cluster
        places = {(resource, _scope(resource, namespace, name)) for resource, namespace, name in FOLLOWED.values()}
        self._informers = {
            field: informers.of(resource, _scope(resource, namespace, name))
            for field, (resource, namespace, name) in FOLLOWED.items()
        }
        self._named_maps = informers.of(CONFIG_MAPS, Scope(USER_NAMESPACE))
        self.sources: Sequence[Source] = tuple(
            Source(resource, keys=keys, scope=scope) for resource, scope in sorted(places, key=str)
        )

    async def objects(self, controller: JsonObject) -> ClusterObjects:
        """Everything that is there now; raises ApiError when the API cannot be asked."""
        present: dict[str, Any] = {
            field: self._informers[field].get(namespace, name) for field, (_, namespace, name) in FOLLOWED.items()
        }
        facts, unreadable = {field: present[field] for field in FACTS}, dict[str, str]()
        if present["infrastructure"] is not None:
            facts["dns"], facts["network"] = await self._optional(DNS), await self._optional(NETWORK)
        reference = (controller.get("spec") or {}).get("pullSecret")
        if isinstance(reference, dict) and reference.get("name"):
            place = (str(reference.get("namespace") or USER_NAMESPACE), str(reference["name"]))
            if place != PULL_SECRET:
                facts["pull_secret"] = await self._named(SECRETS, *place, unreadable)
        trust = await self._trust(present, facts["pull_secret"], unreadable)
        return ClusterObjects(**facts, trust=trust, unreadable=unreadable)

    async def _trust(
        self, present: dict[str, Any], pull_secret: JsonObject | None, unreadable: dict[str, str]
    ) -> TrustSources:
        """What says whom machines believe: objects of fixed names, and those that others name."""
        proxy_ca, registry_ca = (
            _reference(present["proxy"], "trustedCA"),
            _reference(present["image"], "additionalTrustedCA"),
        )
        proxy_ca = "" if proxy_ca == USER_CA else proxy_ca
        named = {
            field: self._named_maps.get(USER_NAMESPACE, name) if name else None
            for field, name in (("proxy_ca", proxy_ca), ("registry_user_ca", registry_ca))
        }
        pulled = [
            await self._named(SECRETS, OPERATOR, str(entry.get("name")), unreadable)
            for entry in ((present["puller"] or {}).get("imagePullSecrets") or ())[:MAX_PULLER_SECRETS]
        ]
        return TrustSources(
            **{field: present[field] for field in TRUST}, **named, proxy_ca_name=proxy_ca, registry_user_ca_name=registry_ca,
            puller_secrets=tuple(secret for secret in pulled if secret is not None), pull_secret=pull_secret,
        )  # fmt: skip

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


def _reference(obj: JsonObject | None, name: str) -> str:
    """The ConfigMap that an object of the cluster names; empty for none."""
    return str((((obj or {}).get("spec") or {}).get(name) or {}).get("name") or "")


def _scope(resource: Resource, namespace: str, name: str) -> Scope:
    # Users name ConfigMaps there as they like, and a change of one counts at once: all of them are watched.
    if (resource, namespace) == (CONFIG_MAPS, USER_NAMESPACE):
        return Scope(namespace)
    return Scope(namespace, fields=f"metadata.name={name}") if namespace else Scope()
