"""Configs that follow from other objects: the base of each role, KubeletConfigs, ContainerRuntimeConfigs.

An owner gets a number when it is first seen (an annotation, so that the name of its config never changes), a finalizer for each
config, and conditions that say whether it was accepted. Generated configs belong to their owner and are put back when edited.
An owner whose config a pool would refuse is refused itself: rendering exempts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from fastness import __version__
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
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.prune import CONFIGS
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    KUBELET,
    RUNTIME,
    base_configs,
    fits,
    generate,
    next_suffix,
    selects_pool,
    suffix_of,
)
from fastness.machineconfig.render.inputs import COMPLETED, FAILING, RUNNING
from fastness.runtime.clock import Clock

MCO = "machineconfiguration.openshift.io"
KUBELETS = KUBELET_CONFIG.resource
RUNTIMES = CONTAINER_RUNTIME_CONFIG.resource
CONTROLLERS = CONTROLLER_CONFIG.resource
CONTROLLER_NAME = "machine-config-controller"
VERSION = f"fastness-{__version__}"
ALL = ObjectName("", "*")
OWNERS = ((KUBELET, KUBELETS), (RUNTIME, RUNTIMES))
_AS = WriteOptions(manager="machine-config-generated")
_STATUS = WriteOptions(manager="machine-config-generated", subresource="status")


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def _if_generated(config: Object) -> Iterable[ObjectName]:
    return (ALL,) if names.GENERATED_BY in annotations_of(config) else ()


class Generated:
    """Keeps generated configs."""

    name = "machine-config-generated"
    writes: Sequence[Resource] = (CONFIGS, KUBELETS, RUNTIMES, CONTROLLERS)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(KUBELETS, keys=_everything), Source(RUNTIMES, keys=_everything),
            Source(MACHINE_CONFIG_POOL.resource, keys=_everything),
            Source(CONTROLLERS, keys=_everything), Source(CONFIGS, keys=_if_generated, delay=timing.render_delay),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._if_other_models, delay=timing.render_delay),
        )  # fmt: skip
        self._cluster = cluster
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._clock = clock
        self._generation: object = None

    def _if_other_models(self, cluster: Object) -> Iterable[ObjectName]:
        """Everything when the spec changed: pools may have other trust models. Its status changes all the time."""
        generation = cluster["metadata"].get("generation")
        changed, self._generation = generation != self._generation, generation
        return (ALL,) if changed else ()

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring everything generated in step with its owners."""
        controller = await self._controller()
        pools = (await self._cluster.list(MACHINE_CONFIG_POOL.resource)).items
        configs = {object_name(config).name: config for config in (await self._cluster.list(CONFIGS)).items}
        for pool in pools:
            name = object_name(pool).name
            if name in names.BUILT_IN_POOLS:
                for base in base_configs(name, controller, VERSION):
                    await self._keep(configs, base)
        await self._complete(controller)
        confidential = self._confidential.get("", CLUSTER)
        for kind, resource in OWNERS:
            await self._family(kind, resource, pools, configs, controller, confidential)
        return Done()

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

    async def _complete(self, controller: JsonObject) -> None:
        """Say that the base of every role is there: pools are rendered from now on."""
        status = controller.get("status") or {}
        before = status.get("conditions") or []
        conditions, now = list(before), self._clock.now()
        for kind, truth in ((RUNNING, "False"), (COMPLETED, "True"), (FAILING, "False")):
            conditions = with_condition(conditions, kind=kind, status=truth, reason="AsExpected", message="", now=now)
        generation = controller["metadata"].get("generation")
        if conditions == before and status.get("observedGeneration") == generation:
            return
        patch = {"status": {"observedGeneration": generation, "conditions": conditions}}
        await self._cluster.patch(CONTROLLERS, CONTROLLER_NAME, patch, PatchType.MERGE, "", _STATUS)

    async def _family(
        self,
        kind: str,
        resource: Resource,
        pools: list[JsonObject],
        stored: dict[str, JsonObject],
        controller: JsonObject,
        confidential: JsonObject | None,
    ) -> None:
        owners = (await self._cluster.list(resource)).items
        for owner in owners:
            chosen = [object_name(pool).name for pool in pools if selects_pool(owner, pool)]
            if is_being_deleted(owner):
                await self._release(resource, owner, stored)
                continue
            try:
                numbered = await self._numbered(resource, owner, owners)
                made = [generate(kind, numbered, pool, VERSION, controller) for pool in chosen]
                for config, pool in zip(made, chosen, strict=True):
                    fits(config, pool, trust_model(confidential, pool))
            except BadSettings as error:
                await self._tell(resource, owner, f"{error.message}: {error.hint}")
                continue
            await self._hold(resource, numbered, [object_name(config).name for config in made], stored)
            for generated in made:
                await self._keep(stored, generated)
            await self._tell(resource, owner, "")

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

    async def _keep(self, stored: dict[str, JsonObject], config: JsonObject) -> None:
        name = object_name(config).name
        present = stored.get(name)
        if present is None:
            try:
                stored[name] = await self._cluster.create(CONFIGS, config, _AS)
            except AlreadyExists:
                return
        elif _differs(present, config):
            notes = {**annotations_of(present), **annotations_of(config)}
            patch = [
                {"op": "replace", "path": "/spec", "value": config["spec"]},
                {"op": "add", "path": "/metadata/labels", "value": dict(labels_of(config))},
                {"op": "add", "path": "/metadata/annotations", "value": notes},
            ]
            stored[name] = await self._cluster.patch(CONFIGS, name, patch, PatchType.JSON, "", _AS)

    async def _tell(self, resource: Resource, owner: JsonObject, problem: str) -> None:
        """Say on the owner whether it was accepted."""
        status = owner.get("status") or {}
        before = status.get("conditions") or []
        conditions = with_condition(
            before, kind="Accepted", status="False" if problem else "True", reason="Refused" if problem else "Generated",
            message=problem or "Success", now=self._clock.now(),
        )  # fmt: skip
        kind = "Failure" if problem else "Success"
        conditions = [
            entry for entry in conditions if entry["type"] not in ("Success", "Failure") or entry["type"] == kind
        ]
        conditions = with_condition(
            conditions, kind=kind, status="True", reason="", message=problem or "Success", now=self._clock.now()
        )
        generation = owner["metadata"].get("generation")
        if conditions == before and status.get("observedGeneration") == generation:
            return
        patch = {"status": {"observedGeneration": generation, "conditions": conditions}}
        try:
            await self._cluster.patch(resource, object_name(owner).name, patch, PatchType.MERGE, "", _STATUS)
        except NotFound:
            return


def _differs(present: JsonObject, config: JsonObject) -> bool:
    """Whether a generated config is not what it should be; who made it counts, because versions must not mix."""
    made_by = (annotations_of(side).get(names.GENERATED_BY) for side in (present, config))
    return present.get("spec") != config["spec"] or labels_of(present) != labels_of(config) or len(set(made_by)) > 1
