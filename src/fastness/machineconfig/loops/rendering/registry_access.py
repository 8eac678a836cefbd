"""How loops ask registries: by the mirrors of the cluster, with its pull secret, trusting whom it trusts."""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kube.controllers.controller import Keys, Source
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, Scope
from fastness.machineconfig.loops.rendering.registry_view import ask_for_objects
from fastness.machineconfig.render.base.cluster_facts import PULL_SECRET
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.registries.settings import registry_settings
from fastness.machineconfig.streams.access import RegistryAccess, pull_secret

_SCOPE = Scope(PULL_SECRET[0], fields=f"metadata.name={PULL_SECRET[1]}")


class AccessView:
    """What is known of registries, from informers."""

    def __init__(self, informers: Informers, keys: Keys) -> None:
        self.sources: Sequence[Source] = (Source(SECRET.resource, keys=keys, scope=_SCOPE),)
        self._controllers = informers.of(CONTROLLER_CONFIG.resource)
        self._secrets = informers.of(SECRET.resource, _SCOPE)

    def access(self, objects: RegistryObjects) -> RegistryAccess:
        """How registries are asked now; raises BadRegistries where what is said about them cannot be understood."""
        controllers = self._controllers.list()
        spec = (controllers[0].get("spec") or {}) if controllers else {}
        trust = str(spec.get("additionalTrustBundle") or "")
        return RegistryAccess(registry_settings(objects), pull_secret(self._secrets.get(*PULL_SECRET)), trust)


async def asked_access(cluster: Cluster, credentials: bytes | None = None) -> RegistryAccess:
    """How registries are asked, with these credentials or the cluster's pull secret; raises BadRegistries, ApiError."""
    if credentials is None:
        secret: JsonObject | None
        try:
            secret = await cluster.get(SECRET.resource, PULL_SECRET[1], PULL_SECRET[0])
        except NotFound:
            secret = None
        credentials = pull_secret(secret)
    controllers = (await cluster.list(CONTROLLER_CONFIG.resource)).items
    trust = str(((controllers[0].get("spec") or {}) if controllers else {}).get("additionalTrustBundle") or "")
    return RegistryAccess(registry_settings(await ask_for_objects(cluster)), credentials, trust)
