"""Configs that follow from the cluster's own settings: nodes.config and the FeatureGate, for every pool.

    nodes.config cluster  →  97-<pool>-generated-kubelet    condition Accepted, KernelArgumentsApplied
    FeatureGate cluster   →  98-<pool>-generated-kubelet    condition Accepted
    APIServer cluster     →  the TLS profile in all of them

An object that is refused changes nothing: its configs stay as they are. What it does not get although it is accepted (kernel
arguments in a confidential pool, gates that a kubelet does not know) stands in a condition with the way out, and no pool is worse
off for it. An object of another name than `cluster` has no effect, which an event says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from fastness import __version__
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.controller_config import SINGLETON as CONTROLLER
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, labels_of, object_name
from fastness.kinds.openshift.node_settings import API_SERVER, CLUSTER, FEATURE_GATE, NODE_CONFIG
from fastness.kube.controllers.controller import Done, Keys, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.announcements import Announcements
from fastness.machineconfig.loops.rendering.keep import keep
from fastness.machineconfig.loops.rendering.prune import CONFIGS
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render import cluster_configs, cluster_status
from fastness.machineconfig.render.cluster_configs import cluster_config_name
from fastness.machineconfig.render.generated import Owners, cluster_manifests
from fastness.machineconfig.render.settings.cluster import ClusterSettings, cluster_tls
from fastness.runtime.clock import Clock

NODE_CONFIGS = NODE_CONFIG.resource
FEATURE_GATES = FEATURE_GATE.resource
API_SERVERS = API_SERVER.resource
KINDS = {cluster_configs.NODE_CONFIG: NODE_CONFIGS, cluster_configs.FEATURE_GATE: FEATURE_GATES}
OURS = "fastness-"
VERSION = f"{OURS}{__version__}"
ALL = ObjectName("", "*")
_AS = WriteOptions(manager="machine-config-cluster-kinds")
_STATUS = WriteOptions(manager="machine-config-cluster-kinds", subresource="status")


def settings_in_cache(informers: Informers) -> ClusterSettings:
    """The cluster's settings as they were last seen."""
    nodes, gates, apiserver = (
        informers.of(resource).get("", CLUSTER) for resource in (NODE_CONFIGS, FEATURE_GATES, API_SERVERS)
    )
    return ClusterSettings(nodes, gates, apiserver)


def if_spec_changed(key: ObjectName) -> Keys:
    """A key whenever an object has another spec than at the last look, for objects whose status changes all the time."""
    generations: dict[ObjectName, object] = {}

    def keys(obj: Object) -> Iterable[ObjectName]:
        name, generation = object_name(obj), obj["metadata"].get("generation")
        changed = generations.get(name) != generation
        generations[name] = generation
        return (key,) if changed else ()

    return keys


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def _if_of_a_cluster_kind(config: Object) -> Iterable[ObjectName]:
    return (ALL,) if _kind_of(config) else ()


def _kind_of(config: Object) -> str:
    """The kind that a config of ours was generated from, empty when it was from none of these."""
    name, role = object_name(config).name, labels_of(config).get(names.ROLE_LABEL, "")
    return next((kind for kind in KINDS if name == cluster_config_name(kind, role)), "")


class ClusterKinds:
    """Keeps the configs that follow from the cluster's own settings."""

    name = "machine-config-cluster-kinds"
    writes: Sequence[Resource] = (CONFIGS, NODE_CONFIGS, FEATURE_GATES, EVENTS)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            *(Source(kind, keys=_everything) for kind in (NODE_CONFIGS, FEATURE_GATES, API_SERVERS)),
            Source(MACHINE_CONFIG_POOL.resource, keys=_everything, delay=timing.render_delay),
            Source(CONTROLLER_CONFIG.resource, keys=_everything, delay=timing.render_delay),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=if_spec_changed(ALL), delay=timing.render_delay),
            Source(CONFIGS, keys=_if_of_a_cluster_kind, delay=timing.render_delay),
        )
        self._cluster = cluster
        self._informers = informers
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._clock = clock
        self._announcements = Announcements(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring all of these configs in step with their owners."""
        owners, stored = await self._look()
        for kind, resource in KINDS.items():
            obj = owners.settings.nodes if kind == cluster_configs.NODE_CONFIG else owners.settings.feature_gate
            if not cluster_status.refusal(kind, owners):
                await self._keep(kind, owners, stored)
            if obj is not None:
                await self._tell(kind, resource, obj, owners)
        for resource in (*KINDS.values(), API_SERVERS):
            for obj in self._informers.of(resource).list():
                text = cluster_status.prohibition(resource.kind, obj, owners)
                await self._announcements.warning(obj, names.Event.ACTION_PROHIBITED, text)
        await self._tell_ciphers(owners)
        return Done()

    async def _look(self) -> tuple[Owners, dict[str, JsonObject]]:
        stored = {object_name(config).name: config for config in (await self._cluster.list(CONFIGS)).items}
        try:
            controller = await self._cluster.get(CONTROLLER_CONFIG.resource, CONTROLLER)
        except NotFound:
            controller = None
        owners = Owners.of(
            (), (), controller, settings=settings_in_cache(self._informers), configs=stored.values(),
            pools=(await self._cluster.list(MACHINE_CONFIG_POOL.resource)).items,
            confidential=self._confidential.get("", CLUSTER),
        )  # fmt: skip
        return owners, stored

    async def _keep(self, kind: str, owners: Owners, stored: dict[str, JsonObject]) -> None:
        made = cluster_manifests(kind, owners, VERSION)
        for config in made:
            await keep(self._cluster, stored, config, _AS)
        names_made = {object_name(config).name for config in made}
        for name, config in list(stored.items()):
            ours = annotations_of(config).get(names.GENERATED_BY, "").startswith(OURS)
            if ours and _kind_of(config) == kind and name not in names_made:
                with suppress(NotFound):
                    await self._cluster.delete(CONFIGS, name)

    async def _tell(self, kind: str, resource: Resource, obj: Object, owners: Owners) -> None:
        """Say on the object what became of it."""
        conditions = cluster_status.conditions(kind, obj, owners, self._clock.now())
        if conditions == ((obj.get("status") or {}).get("conditions") or []):
            return
        with suppress(NotFound):
            patch = {"status": {"conditions": conditions}}
            await self._cluster.patch(resource, CLUSTER, patch, PatchType.MERGE, "", _STATUS)

    async def _tell_ciphers(self, owners: Owners) -> None:
        """Say which ciphers of the cluster's profile no kubelet gets; an APIServer has no conditions."""
        if owners.settings.apiserver is None:
            return
        dropped = cluster_tls(owners.settings).dropped
        text = f"kubelets do not know these ciphers, they were left out: {', '.join(dropped)}" if dropped else ""
        await self._announcements.warning(owners.settings.apiserver, names.Event.SETTINGS_LEFT_OUT, text)
