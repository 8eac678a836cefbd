"""What is said about registries, as loops see it: out of informers, or asked of the cluster.

A cluster need not serve every kind, so no loop waits for their informers. The loop that writes configs asks the cluster where an
informer has nothing yet, because a mirror that is only not seen yet would be taken from every machine. Rendering takes what
informers hold: there it only decides whether to wait a moment longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import metadata, object_name
from fastness.kinds.openshift.config import CLUSTER_VERSION
from fastness.kinds.openshift.image_policies import CLUSTER_IMAGE_POLICY, IMAGE_POLICY
from fastness.kinds.openshift.images import IMAGE, IMAGE_CONFIG_NAME, IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET
from fastness.kinds.operator_openshift.content_sources import IMAGE_CONTENT_SOURCE_POLICY
from fastness.kube.controllers.controller import Keys, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.render.registries.configs import RegistryConfigs, receivers, registry_configs
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.settings.choices import runs_containerd

IMAGES: Final = IMAGE.resource
VERSIONS: Final = CLUSTER_VERSION.resource
POLICIES: Final = IMAGE_POLICY.resource
VERSION_NAME: Final = "version"
_LISTED: Final = (
    IMAGE_CONTENT_SOURCE_POLICY.resource,
    IMAGE_DIGEST_MIRROR_SET.resource,
    IMAGE_TAG_MIRROR_SET.resource,
    CLUSTER_IMAGE_POLICY.resource,
    POLICIES,
)


def registry_sources(keys: Keys, delay: float) -> Sequence[Source]:
    """What a loop reads; all optional, because a cluster need not know every kind."""
    return [Source(resource, keys=keys, delay=delay, optional=True) for resource in (IMAGES, VERSIONS, *_LISTED)]


async def ask_for_objects(cluster: Cluster) -> RegistryObjects:
    """The objects as the cluster has them now; a kind that it does not serve has none."""
    objects = {resource: await _listed(cluster, resource) for resource in (IMAGES, VERSIONS, *_LISTED)}
    return _gathered(objects.__getitem__)


async def _listed(cluster: Cluster, resource: Resource) -> list[JsonObject]:
    try:
        return (await cluster.list(resource)).items
    except NotFound:
        return []


class RegistryView:
    """What is said about registries, and what configs should be; computed again when something of it changed."""

    def __init__(self, informers: Informers) -> None:
        self._informers = {resource: informers.of(resource) for resource in (IMAGES, VERSIONS, *_LISTED)}
        self._key: object = None
        self._configs = RegistryConfigs()

    async def objects(self, cluster: Cluster) -> RegistryObjects:
        """All objects; kinds whose informers have nothing yet are asked for."""
        objects = {
            resource: informer.list() if informer.has_synced else await _listed(cluster, resource)
            for resource, informer in self._informers.items()
        }
        return _gathered(objects.__getitem__)

    def configs(self, pools: Iterable[Object], controller: Object | None, version: str) -> RegistryConfigs:
        """The configs of all pools that have one."""
        every = list(pools)
        chosen = receivers(every, controller)
        key = (
            [(object_name(pool), runs_containerd(pool, controller), metadata(pool).get("uid")) for pool in chosen],
            [_version(obj) for informer in self._informers.values() for obj in informer.list()],
        )
        if key != self._key:
            objects = _gathered(lambda resource: self._informers[resource].list())
            self._configs = registry_configs(objects, every, controller, version)
            self._key = key
        return self._configs


def _version(obj: Object) -> tuple[object, object]:
    return metadata(obj).get("uid"), metadata(obj).get("resourceVersion")


def _gathered(objects: Callable[[Resource], Iterable[JsonObject]]) -> RegistryObjects:
    content_sources, digests, tags, cluster_policies, policies = (list(objects(resource)) for resource in _LISTED)
    return RegistryObjects(
        image=_named(objects(IMAGES), IMAGE_CONFIG_NAME),
        cluster_version=_named(objects(VERSIONS), VERSION_NAME),
        content_sources=content_sources,
        digest_mirrors=digests,
        tag_mirrors=tags,
        cluster_policies=cluster_policies,
        policies=policies,
    )


def _named(objects: Iterable[JsonObject], name: str) -> JsonObject | None:
    return next((obj for obj in objects if object_name(obj).name == name), None)
