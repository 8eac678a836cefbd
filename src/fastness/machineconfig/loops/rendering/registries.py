"""Registries: a config for each pool with the built-in label, from all that is said about registries.

Everything is looked at together, because one file of a machine follows from many objects (`render/registries`). What is wrong
with one of them stops all pools: they keep the configs that they have, `RegistriesDegraded` and an event name the object and the
reason, and the work is tried again, soon at first and each minute in the end. What a runtime cannot be told stops the pools that
have it, and no others.

Without an Image `cluster` nothing is made, and mirror sets and policies are told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from fastness import __version__
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, metadata, object_name, with_condition
from fastness.kinds.openshift.images import IMAGE_CONFIG_NAME
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.statuses import conditions_by, write_status
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, WriteOptions
from fastness.machineconfig.loops.rendering.keep import keep
from fastness.machineconfig.loops.rendering.prune import CONFIGS
from fastness.machineconfig.loops.rendering.registry_view import POLICIES, RegistryView, registry_sources
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.generated import REGISTRIES, generated_name
from fastness.machineconfig.render.registries.configs import RegistryConfigs, registry_configs
from fastness.machineconfig.render.registries.objects import RegistryObjects, culprit_of
from fastness.machineconfig.render.registries.policy import Remark
from fastness.machineconfig.rollout.status import registries_condition
from fastness.observe.logs import logger
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

POOLS = MACHINE_CONFIG_POOL.resource
CONTROLLERS = CONTROLLER_CONFIG.resource
OURS = "fastness-"
VERSION = f"{OURS}{__version__}"
ALL = ObjectName("", "*")
PENDING = "Pending"
_AS = WriteOptions(manager="machine-config-registries")
_STATUS = WriteOptions(manager="machine-config-registries", subresource="status")
_SUFFIX = generated_name(REGISTRIES, "")[len("99-") :]
_log = logger("registries")


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def _if_ours(config: Object) -> Iterable[ObjectName]:
    return (ALL,) if object_name(config).name.endswith(_SUFFIX) else ()


class Registries:
    """Keeps the configs about registries."""

    name = "machine-config-registries"
    writes: Sequence[Resource] = (CONFIGS, POOLS, POLICIES, EVENTS)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(POOLS, keys=_everything, delay=timing.render_delay),
            Source(CONTROLLERS, keys=_everything, delay=timing.render_delay),
            Source(CONFIGS, keys=_if_ours, delay=timing.render_delay),
            *registry_sources(_everything, timing.render_delay),
        )
        self._cluster = cluster
        self._view = RegistryView(informers)
        self._pools = informers.of(POOLS)
        self._controllers = informers.of(CONTROLLERS)
        self._configs = informers.of(CONFIGS)
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._events = BoundedCache[tuple[object, ...], bool](1024)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring all configs about registries in step; raises BadRegistries after telling what stops all of them."""
        objects = await self._view.objects(self._cluster)
        pools, controllers = self._pools.list(), self._controllers.list()
        stored = {
            name: config for config in self._configs.list() if (name := object_name(config).name).endswith(_SUFFIX)
        }
        result = registry_configs(objects, pools, controllers[0] if controllers else None, VERSION)
        for config in result.configs.values():
            await keep(self._cluster, stored, config, _AS)
        await self._forget(stored, result)
        await self._tell_pools(
            pools, {pool: str(error) for pool, error in {**result.lacking, **result.refused}.items()}
        )
        await self._tell(objects, result)
        for error in result.refused.values() if result.settings is None else ():
            raise error
        return Done()

    async def _forget(self, stored: Mapping[str, JsonObject], result: RegistryConfigs) -> None:
        """Delete configs of pools that have none any more; one that cannot be made anew stays as it is."""
        stay = {generated_name(REGISTRIES, pool) for pool in (*result.configs, *result.refused)}
        for name, config in stored.items():
            ours = annotations_of(config).get(names.GENERATED_BY, "").startswith(OURS)
            owned = any(owner.get("kind") == REGISTRIES for owner in metadata(config).get("ownerReferences") or ())
            if ours and owned and name not in stay:
                with suppress(NotFound):
                    await self._cluster.delete(CONFIGS, name)

    async def _tell_pools(self, pools: Iterable[JsonObject], reasons: Mapping[str, str]) -> None:
        for pool in pools:
            why, now = reasons.get(object_name(pool).name, ""), self._clock.now()
            change = conditions_by(partial(registries_condition, failure=why, now=now))
            await write_status(self._cluster, POOLS, pool, change, _STATUS)

    async def _tell(self, objects: RegistryObjects, result: RegistryConfigs) -> None:
        """Say on the objects what becomes of them."""
        if objects.image is None:
            text = f"nothing follows from it while there is no Image {IMAGE_CONFIG_NAME!r} of config.openshift.io/v1"
            for obj in objects.everything():
                await self._warn(obj, names.Event.REGISTRIES_WAITING, text)
            return
        for error in (*result.refused.values(), *result.lacking.values()):
            await self._warn(_guilty(error, objects), names.Event.REGISTRIES_REFUSED, str(error))
        settings = result.settings
        if settings is None:
            return
        for scope in settings.left_out:
            text = (
                f'error adding "{scope}" to blocked registries, cannot block the repository being used by the payload'
            )
            await self._warn(objects.image, names.Event.PAYLOAD_NOT_BLOCKED, text)
        for policy in objects.policies:
            await self._remark(dict(policy), settings.remarks.get(object_name(policy)))

    async def _remark(self, policy: JsonObject, remark: Remark | None) -> None:
        """Say on an ImagePolicy why it is not carried out as it stands, or take that back."""

        def conditions(current: JsonObject) -> list[JsonObject]:
            before: list[JsonObject] = list((current.get("status") or {}).get("conditions") or ())
            if remark is None:
                return [entry for entry in before if entry.get("type") != PENDING]
            return with_condition(
                before, kind=PENDING, status="False", reason=remark.reason, message=remark.message,
                now=self._clock.now(), generation=metadata(current).get("generation"),
            )  # fmt: skip

        await write_status(self._cluster, POLICIES, policy, conditions_by(conditions), _STATUS)

    async def _warn(self, obj: Object, reason: str, text: str) -> None:
        """An event, once for each form of an object: retries say nothing new."""
        key = (metadata(obj).get("uid"), metadata(obj).get("generation"), reason, text)
        if key not in self._events:
            self._events.put(key, True)
            _log.warning("registries.refused", about=culprit_of(obj), reason=reason, error=text)
            await self._recorder.warning(obj, reason, text)


def _guilty(error: BadRegistries, objects: RegistryObjects) -> Object:
    """The object that an error is about; the Image where it is none of those that were looked at."""
    image: Object = objects.image or {}
    candidates = {culprit_of(obj): obj for obj in objects.everything()}
    return candidates.get(error.culprit, image)
