"""Configs that follow from other objects: the base of each role, KubeletConfigs, ContainerRuntimeConfigs.

The base follows from the ControllerConfig, which is told here what can be read of the cluster (`node_sources.py`), and from
pools: those of a built-in role have one, and custom pools that differ from the workers. What was made is noted on the
ControllerConfig, so that rendering knows which is the newest without reading Secrets. A source that is named and missing makes it
`Failing`, with the reason, and nothing is rendered until that is mended; what nodes get beside their configs has a condition of
its own and holds up nothing.

An owner gets a number when it is first seen (an annotation, so that the name of its config never changes), a finalizer for each
config, and conditions that say whether it was accepted: the last three outcomes, and the last one once more in the older form.
Generated configs belong to their owner and are put back when edited. An owner whose config a pool would refuse is refused itself:
rendering exempts nothing. What is wrong with a spec is not tried again: it stays wrong until somebody changes it.

What a config is made from beside its owner (nodes.config, FeatureGate, APIServer) is watched too: each of them changes the
kubelet's whole file, wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from fastness import __version__
from fastness.formats import json
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.fastness_dev.trust_model import trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.kubelet_config import CONTAINER_RUNTIME_CONFIG, KUBELET_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, labels_of, object_name, with_condition
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.announcements import Announcements
from fastness.machineconfig.loops.rendering.cluster_kinds import (
    API_SERVERS,
    FEATURE_GATES,
    NODE_CONFIGS,
    if_spec_changed,
    settings_in_cache,
)
from fastness.machineconfig.loops.rendering.keep import keep
from fastness.machineconfig.loops.rendering.node_sources import LOOK_AGAIN, NodeSourceReader
from fastness.machineconfig.loops.rendering.prune import CONFIGS
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.base.cluster_facts import ClusterObjects, contents, facts, restated
from fastness.machineconfig.render.base.table import base_names
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    CONTROLLER,
    KUBELET,
    RUNTIME,
    TLS,
    Owners,
    base_configs,
    base_digest,
    base_digests,
    fits,
    generate,
    is_base,
    next_suffix,
    remarks,
    selects_pool,
    suffix_of,
    tls_digest,
)
from fastness.machineconfig.render.inputs import COMPLETED, FAILING, RUNNING, TRUST_FAILING
from fastness.machineconfig.render.outcome import outcome_conditions
from fastness.machineconfig.trust.node_trust import node_trust
from fastness.runtime.clock import Clock

MCO = "machineconfiguration.openshift.io"
KUBELETS = KUBELET_CONFIG.resource
RUNTIMES = CONTAINER_RUNTIME_CONFIG.resource
CONTROLLERS = CONTROLLER_CONFIG.resource
CONTROLLER_NAME = "machine-config-controller"
VERSION = f"fastness-{__version__}"
ALL = ObjectName("", "*")
OWNERS = ((KUBELET, KUBELETS), (RUNTIME, RUNTIMES))
_OURS: Object = {"metadata": {"ownerReferences": [{"kind": CONTROLLER}]}}
_AS = WriteOptions(manager="machine-config-generated")
_STATUS = WriteOptions(manager="machine-config-generated", subresource="status")


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def wakes_bases(config: Object) -> Iterable[ObjectName]:
    """Whether a change of this config may leave something generated out of step: the one key of the loop, or none."""
    # A person's config too that has the name of a base: when it goes, the base that it kept away is made.
    in_the_way = object_name(config).name in base_names(labels_of(config).get(names.ROLE_LABEL, ""))
    return (ALL,) if names.GENERATED_BY in annotations_of(config) or in_the_way else ()


class Generated:
    """Keeps generated configs."""

    name = "machine-config-generated"
    writes: Sequence[Resource] = (CONFIGS, KUBELETS, RUNTIMES, CONTROLLERS, EVENTS)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self._reader = NodeSourceReader(cluster, informers, _everything)
        self.sources: Sequence[Source] = (
            *self._reader.sources,
            Source(KUBELETS, keys=_everything), Source(RUNTIMES, keys=_everything),
            Source(MACHINE_CONFIG_POOL.resource, keys=_everything),
            Source(CONTROLLERS, keys=_everything), Source(CONFIGS, keys=wakes_bases, delay=timing.render_delay),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=if_spec_changed(ALL), delay=timing.render_delay),
            *(Source(settings, keys=_everything) for settings in (NODE_CONFIGS, FEATURE_GATES, API_SERVERS)),
        )  # fmt: skip
        self._cluster = cluster
        self._informers = informers
        self._announcements = Announcements(cluster, self.name, clock)
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring everything generated in step with its owners."""
        controller = await self._controller()
        objects = await self._reader.objects(controller)
        controller = await self._restate(controller, objects)
        pools = (await self._cluster.list(MACHINE_CONFIG_POOL.resource)).items
        configs = {object_name(config).name: config for config in (await self._cluster.list(CONFIGS)).items}
        owners = Owners.of(
            (), (), controller, settings=settings_in_cache(self._informers), pools=pools, configs=configs.values(),
            confidential=self._confidential.get("", CLUSTER),
        )  # fmt: skip
        controller, wrong = await self._bases(owners, objects, configs)
        beside = [str(problem) for problem in objects.sourced.problems if not problem.is_rendered]
        await self._complete(controller, wrong, [*beside, *node_trust(controller, None)[1]])
        owners = replace(owners, controller=controller)
        for kind, resource in OWNERS:
            await self._family(kind, resource, configs, owners)
        remarks_on_trust = "; ".join(objects.sourced.remarks)
        await self._announcements.warning(controller, names.Event.TRUST_SOURCE_MISSING, remarks_on_trust)
        return Done(again_after=LOOK_AGAIN)

    async def _restate(self, controller: JsonObject, objects: ClusterObjects) -> JsonObject:
        """Write down what can be read of the cluster, and tell where it stands."""
        news = restated(controller, facts(objects), objects)
        if news is None:
            return controller
        stated = await self._cluster.patch(CONTROLLERS, CONTROLLER_NAME, news.patch, PatchType.MERGE, "", _AS)
        if news.news:
            await self._recorder.normal(stated, names.Event.CLUSTER_FACTS_READ, "; ".join(news.news))
        return stated

    async def _bases(
        self, owners: Owners, objects: ClusterObjects, stored: dict[str, JsonObject]
    ) -> tuple[JsonObject, list[str]]:
        """Keep the base configs of all pools that have one; the ControllerConfig that notes them, and what sources lack."""
        controller = dict(owners.controller or {})
        sources, missing = contents(controller, objects)
        wrong, held = list(map(str, missing)), base_digests(controller)
        digests = {TLS: tls_digest(owners)}
        for pool in owners.pools:
            if pool not in names.BUILT_IN_POOLS and not owners.has_own_base(pool):
                continue
            inputs, absent = owners.inputs(pool, sources)
            if pool not in names.BUILT_IN_POOLS and not all(
                is_base(stored.get(name, _OURS)) for name in base_names(pool)
            ):
                continue  # a person's config has one of the names; the pool says so
            if not missing and not absent:
                for base in base_configs(pool, inputs, owners, VERSION):
                    await keep(self._cluster, stored, base, _AS)
                    digests[object_name(base).name] = base_digest(base)
                continue
            # Its machines keep what they have. What objects lack the pool says itself; what sources lack only we have seen.
            digests |= {name: held[name] for name in base_names(pool) if name in held}
            wrong += [str(each) for each in absent if each not in owners.inputs(pool)[1]]
        await self._forget_bases(stored, digests, owners)
        if digests == held:
            return controller, wrong
        patch = {"metadata": {"annotations": {names.BASE_CONFIGS: json.canonical(digests).decode()}}}
        return await self._cluster.patch(CONTROLLERS, CONTROLLER_NAME, patch, PatchType.MERGE, "", _AS), wrong

    async def _forget_bases(self, stored: dict[str, JsonObject], digests: dict[str, str], owners: Owners) -> None:
        """Delete bases of custom pools that are gone, or that are like the workers again."""
        for name, config in list(stored.items()):
            pool = labels_of(config).get(names.ROLE_LABEL, "")
            ours = is_base(config) and annotations_of(config).get(names.GENERATED_BY, "").startswith("fastness-")
            if not ours or name not in base_names(pool) or pool in names.BUILT_IN_POOLS or owners.has_own_base(pool):
                continue
            if name not in digests:
                with suppress(NotFound):
                    await self._cluster.delete(CONFIGS, name)
                stored.pop(name)

    async def _controller(self) -> JsonObject:
        """The ControllerConfig, made if there is none, stamped by us if it was another's."""
        stamp = {names.CONTROLLER_VERSION: VERSION}
        try:
            controller = await self._cluster.get(CONTROLLERS, CONTROLLER_NAME)
        except NotFound:
            meta = {"name": CONTROLLER_NAME, "annotations": stamp}
            made = {"apiVersion": names.API_VERSION, "kind": "ControllerConfig", "metadata": meta, "spec": {}}
            return await self._cluster.create(CONTROLLERS, made, _AS)
        if annotations_of(controller).get(names.CONTROLLER_VERSION) == VERSION:
            return controller
        patch = {"metadata": {"annotations": stamp}}
        return await self._cluster.patch(CONTROLLERS, CONTROLLER_NAME, patch, PatchType.MERGE, "", _AS)

    async def _complete(self, controller: JsonObject, wrong: list[str], beside: list[str]) -> None:
        """Say that the base of every role is there, and pools are rendered from now on; or what it waits for.

        `beside` is what is wrong with that which nodes get beside their configs: nothing waits for it.
        """
        status = controller.get("status") or {}
        before = status.get("conditions") or []
        conditions, now = list(before), self._clock.now()
        for kind, problems, message in (
            (RUNNING, [], ""), (FAILING, wrong, "; ".join(dict.fromkeys(wrong))),
            (TRUST_FAILING, beside, "; ".join(dict.fromkeys(beside))),
        ):  # fmt: skip
            truth, reason = ("True", "SourceMissing") if problems else ("False", "AsExpected")
            conditions = with_condition(conditions, kind=kind, status=truth, reason=reason, message=message, now=now)
        truth, reason = ("False", "SourceMissing") if wrong else ("True", "AsExpected")
        conditions = with_condition(conditions, kind=COMPLETED, status=truth, reason=reason, message="", now=now)
        generation = controller["metadata"].get("generation")
        if conditions == before and status.get("observedGeneration") == generation:
            return
        patch = {"status": {"observedGeneration": generation, "conditions": conditions}}
        await self._cluster.patch(CONTROLLERS, CONTROLLER_NAME, patch, PatchType.MERGE, "", _STATUS)

    async def _family(self, kind: str, resource: Resource, stored: dict[str, JsonObject], owners: Owners) -> None:
        objects = (await self._cluster.list(resource)).items
        for owner in objects:
            chosen = [name for name, pool in owners.pools.items() if selects_pool(owner, pool)]
            if is_being_deleted(owner):
                await self._release(resource, owner, stored)
                continue
            try:
                numbered = await self._numbered(resource, owner, objects)
                made = [generate(kind, numbered, pool, VERSION, owners) for pool in chosen]
                for config, pool in zip(made, chosen, strict=True):
                    fits(config, pool, trust_model(owners.confidential, pool))
                without_effect = [remark for pool in chosen for remark in remarks(kind, numbered, pool, owners)]
            except BadSettings as error:
                await self._tell(resource, owner, error.message)
                continue
            await self._hold(resource, numbered, [object_name(config).name for config in made], stored)
            for generated in made:
                await keep(self._cluster, stored, generated, _AS)
            await self._tell(resource, owner, "")
            text = "; ".join(dict.fromkeys(without_effect))
            await self._announcements.warning(owner, names.Event.SETTINGS_LEFT_OUT, text)

    async def _numbered(self, resource: Resource, owner: JsonObject, owners: list[JsonObject]) -> JsonObject:
        if suffix_of(owner) is not None:
            return owner
        suffix = next_suffix(owners)
        patch = {"metadata": {"annotations": {names.NAME_SUFFIX: suffix}}}
        numbered = await self._cluster.patch(resource, object_name(owner).name, patch, PatchType.MERGE, "", _AS)
        owners[owners.index(owner)] = numbered
        return numbered

    async def _hold(
        self, resource: Resource, owner: JsonObject, configs: list[str], stored: dict[str, JsonObject]
    ) -> None:
        """Let the owner stay until its configs are gone; those for pools that it selects no more go now."""
        held = list(owner["metadata"].get("finalizers") or ())
        stale = [name for name in held if "-generated-" in name and name not in configs]
        for name in stale:
            with suppress(NotFound):
                await self._cluster.delete(CONFIGS, name)
            stored.pop(name, None)
        finalizers = [*(name for name in held if name not in stale), *(name for name in configs if name not in held)]
        if finalizers != held:
            patch = {"metadata": {"finalizers": finalizers or None}}
            await self._cluster.patch(resource, object_name(owner).name, patch, PatchType.MERGE, "", _AS)

    async def _release(self, resource: Resource, owner: JsonObject, stored: dict[str, JsonObject]) -> None:
        """Delete the configs of an owner that goes, then let it go."""
        held = list(owner["metadata"].get("finalizers") or ())
        ours = [name for name in held if name in stored or "-generated-" in name]
        for name in ours:
            try:
                await self._cluster.delete(CONFIGS, name)
            except NotFound:
                continue
        left = [name for name in held if name not in ours]
        if left != held:
            patch = {"metadata": {"finalizers": left or None}}
            await self._cluster.patch(resource, object_name(owner).name, patch, PatchType.MERGE, "", _AS)

    async def _tell(self, resource: Resource, owner: JsonObject, problem: str) -> None:
        """Say on the owner whether it was accepted."""
        status = owner.get("status") or {}
        before = status.get("conditions") or []
        conditions = outcome_conditions(before, problem, self._clock.now())
        generation = owner["metadata"].get("generation")
        if conditions == before and status.get("observedGeneration") == generation:
            return
        patch = {"status": {"observedGeneration": generation, "conditions": conditions}}
        try:
            await self._cluster.patch(resource, object_name(owner).name, patch, PatchType.MERGE, "", _STATUS)
        except NotFound:
            return
