"""Keeps a MachineOSConfig for every pool that nobody described an image for, while the cluster is layered by default.

What is to be done is decided in `builds/default_config.py`. Everything after that is the loop of builds and the rollout, as for a
MachineOSConfig that somebody wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from fastness.builds.checks import pool_of
from fastness.builds.default_config import Act, hand_over, manifest, move, next_act, why_not_removed
from fastness.builds.loops.statuses import CONFIGS
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, metadata, object_name
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.built_images import ImageModes
from fastness.machineconfig.rollout.built import config_for
from fastness.machineconfig.rollout.image_mode import ImageMode
from fastness.runtime.clock import Clock

_ALL = ObjectName("", "*")
_AS = WriteOptions(manager="default-images")


def _of_config(config: Object) -> Iterable[ObjectName]:
    return (ObjectName("", pool_of(config)),)


def _every(_obj: Object) -> Iterable[ObjectName]:
    return (_ALL,)


class DefaultConfigs:
    """Describes images of pools that nobody described."""

    name = "default-images"
    writes: Sequence[Resource] = (CONFIGS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIGS, keys=_of_config, delay=timing.render_delay),
            Source(MACHINE_CONFIG_POOL.resource, delay=timing.render_delay),
            *(Source(resource, keys=_every, delay=timing.render_delay) for resource in ImageModes.reads),
        )
        self._cluster = cluster
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._configs = informers.of(CONFIGS)
        self._modes = ImageModes(informers)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the MachineOSConfig of one pool, or of all, to what the cluster says."""
        pools = self._pools.list() if key == _ALL else [self._pools.get("", key.name)]
        for pool in pools:
            if pool is not None:
                await self._keep(pool, self._modes.now())
        return Done()

    async def _keep(self, pool: JsonObject, mode: ImageMode) -> None:
        name = object_name(pool).name
        config = config_for(name, self._configs.list())
        match next_act(pool, config, mode):
            case Act.MAKE if mode.place is not None:
                with suppress(AlreadyExists):
                    await self._cluster.create(CONFIGS, manifest(pool, mode.place), _AS)
                    text = f"pool {name} gets an image, pushed to {mode.place.spec(name)}: the cluster is layered by default"
                    await self._recorder.normal(pool, names.Event.IMAGE_BY_DEFAULT, text)
            case Act.MOVE if mode.place is not None and config is not None:
                await self._patch(config, move(pool, mode.place))
            case Act.HAND_OVER if config is not None:
                text = f"MachineOSConfig {object_name(config).name} was changed, and belongs to whoever did from now on"
                if await self._patch(config, hand_over()):
                    await self._recorder.normal(dict(config), names.Event.IMAGE_BY_DEFAULT, text)
            case Act.REMOVE if config is not None:
                await self._remove(config)
            case Act.KEEP_FOR_NODES if config is not None:
                text = f"pool {name} keeps its image although the cluster is not layered any more: {why_not_removed(config)}"
                await self._recorder.warning(pool, names.Event.IMAGE_BY_DEFAULT, text)

    async def _patch(self, config: Object, patch: JsonObject) -> bool:
        """Patch what was looked at, and nothing that somebody wrote since; whether it was there."""
        same = {**patch, "metadata": {**patch["metadata"], "resourceVersion": metadata(config)["resourceVersion"]}}
        try:
            await self._cluster.patch(CONFIGS, object_name(config).name, same, PatchType.MERGE, "", _AS)
        except (Conflict, NotFound):
            return False
        return True

    async def _remove(self, config: Object) -> None:
        uid = str(metadata(config)["uid"])
        with suppress(NotFound, Conflict):
            await self._cluster.delete(CONFIGS, object_name(config).name, "", DeleteOptions(uid=uid))
