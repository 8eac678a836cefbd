"""Rendering: one config for each pool, stored before the pool points to it.

For one pool at a time: all MachineConfigs that it selects are examined and merged (`machineconfig/render/render`). What
comes out is stored under a name made of its content; then, and only then, the pool's spec names it and the rollout begins.
When nothing can be rendered the pool keeps what it has and says why in `RenderDegraded`.

* Nothing is rendered before everything that it is made from is there (`machineconfig/render/inputs`): the base of the role,
  settings in their present form, generated configs of this version.
* An image that is named by a tag is asked of its registry once, for the rendered config that it goes into; as long as the pool
  has that config, the tag means what it meant then.
* A pool without a named image is not rendered while one of its nodes does not know which image it would go back to.
* A rendered config that somebody edits is put back.
* Examined configs are kept until they change: a re-render after one change examines one config.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from fastness import __version__
from fastness.formats.image_reference import digest_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pinned_images import OS_IMAGE_STREAM
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, metadata, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.statuses import write_status
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.live.registry import RegistryImages
from fastness.machineconfig.loops.rendering.cluster_kinds import (
    API_SERVERS,
    FEATURE_GATES,
    NODE_CONFIGS,
    settings_in_cache,
)
from fastness.machineconfig.loops.rendering.defaults import SETTINGS
from fastness.machineconfig.loops.rendering.generated import CONTROLLERS, KUBELETS, RUNTIMES
from fastness.machineconfig.loops.rendering.prune import CONFIGS
from fastness.machineconfig.loops.rendering.registry_access import AccessView
from fastness.machineconfig.loops.rendering.registry_view import RegistryView, registry_sources
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.rollout import EVERY
from fastness.machineconfig.render.errors import BadRegistries, BadStreams
from fastness.machineconfig.render.generated import Owners
from fastness.machineconfig.render.inputs import Defaults, obstacle, with_stream
from fastness.machineconfig.render.inputs import major as major_of_stream
from fastness.machineconfig.render.prune import is_rendered
from fastness.machineconfig.render.reconcile import overrides_of
from fastness.machineconfig.render.render import PERHAPS_NO_RUNC, Rendered, RenderFailure, Setting, render
from fastness.machineconfig.render.validate import Examined, examine
from fastness.machineconfig.rollout.status import render_condition
from fastness.machineconfig.streams.offers import STREAM
from fastness.machineconfig.streams.readiness import streams_obstacle
from fastness.pools.membership import PoolSelectors, SeveralPools
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock
from fastness.runtime.errors import FastnessError

CONFIDENTIAL = CONFIDENTIAL_CLUSTER.resource
STREAMS = OS_IMAGE_STREAM.resource
OURS = "fastness-"
CONTROLLER_VERSION = f"{OURS}{__version__}"
MAX_EXAMINED = 4096
ASK_AGAIN = 30.0
_BASE_UNKNOWN = "base-image"
ResolveImage = Callable[[str], Awaitable[str]]
"""The image that a tag means now, by digest; raises FastnessError."""
REGISTRY_SECONDS = 30.0
_AS = WriteOptions(manager="machine-config-render")
_STATUS = WriteOptions(manager="machine-config-render", subresource="status")


def _concerned(config: Object) -> Iterable[ObjectName]:
    """The pool that owns a rendered config; any pool may select another one."""
    if is_rendered(config):
        owners = metadata(config).get("ownerReferences") or ()
        return [ObjectName("", owner["name"]) for owner in owners if owner.get("kind") == "MachineConfigPool"]
    return (EVERY,)


def _nobody(_obj: Object) -> Iterable[ObjectName]:
    return ()


def _base_unknown(node: Object) -> Iterable[str]:
    return [annotations_of(node)[names.BASE_IMAGE]] if names.BASE_IMAGE in annotations_of(node) else ()


def _without_base(node: Object) -> Iterable[ObjectName]:
    """Every pool, for a node that does not know its base; heartbeats of all others concern nobody here."""
    return (EVERY,) if annotations_of(node).get(names.BASE_IMAGE) == names.UNKNOWN_IMAGE else ()


def _every_pool(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


class Rendering:
    """Keeps the rendered config of every pool."""

    name = "machine-config-render"
    writes: Sequence[Resource] = (CONFIGS, MACHINE_CONFIG_POOL.resource, EVENTS)

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, images: RegistryImages, timing: Timing = FIELD,
        resolve: ResolveImage | None = None,
    ) -> None:  # fmt: skip
        """`images` are looked into for labels and asked what tags mean, unless `resolve` knows."""
        self._access = AccessView(informers, _nobody)
        self.sources: Sequence[Source] = (
            *self._access.sources,
            Source(MACHINE_CONFIG_POOL.resource, delay=timing.render_delay),
            Source(CONFIGS, keys=_concerned, delay=timing.render_delay),
            Source(CONFIDENTIAL, keys=_every_pool, delay=timing.render_delay),
            Source(SETTINGS, keys=_every_pool, delay=timing.render_delay),
            *(
                Source(source_kind, keys=_every_pool, delay=timing.render_delay)
                for source_kind in (KUBELETS, RUNTIMES, CONTROLLERS, STREAMS, NODE_CONFIGS, FEATURE_GATES, API_SERVERS)
            ),
            *registry_sources(_every_pool, timing.render_delay),
            Source(NODES, keys=_without_base, delay=timing.render_delay),
        )
        self._resolve = resolve
        self._nodes = informers.of(NODES)
        self._nodes.add_index(_BASE_UNKNOWN, _base_unknown)
        self._cluster = cluster
        self._informers = informers
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._configs = informers.of(CONFIGS)
        self._confidential = informers.of(CONFIDENTIAL)
        self._settings = informers.of(SETTINGS)
        self._kubelets = informers.of(KUBELETS)
        self._runtimes = informers.of(RUNTIMES)
        self._controllers = informers.of(CONTROLLERS)
        self._streams = informers.of(STREAMS)
        self._registries = RegistryView(informers)
        self._examined: dict[tuple[str, str, str], Examined] = {}
        self._images = images
        self._majors = BoundedCache[str, int](256)

    async def reconcile(self, key: ObjectName) -> Done:
        """Render one pool, or all."""
        if key == EVERY:
            waits = [await self._sync(each) for each in self._pools.list()]
            return Done(again_after=next((wait for wait in waits if wait is not None), None))
        pool = self._pools.get("", key.name)
        if pool is None:
            return GONE
        return Done(again_after=await self._sync(pool))

    async def _sync(self, pool: JsonObject) -> float | None:
        """Render one pool; in how many seconds to look again, where nothing would tell."""
        if is_being_deleted(pool):
            return None
        owners = self._owners()
        streams, settings = self._streams.get("", "cluster"), self._settings.get("", "cluster")
        blocked = streams_obstacle(streams, settings, CONTROLLER_VERSION) or obstacle(
            pool, self._configs.list(), owners, CONTROLLER_VERSION, OURS
        )
        if blocked is not None and not blocked.lasting:
            await self._recorder.normal(pool, names.Event.RENDER_WAITING, blocked.why)
            return None
        setting = self._setting(pool, owners, blocked.why if blocked is not None else "")
        result = await self._rendered(pool, setting)
        if isinstance(result, Rendered) and any(problem.code == PERHAPS_NO_RUNC for problem in result.warnings):
            major = await self._major(str(result.spec["osImageURL"]))
            setting = replace(setting, defaults=setting.defaults.knowing(str(result.spec["osImageURL"]), major))
            result = await self._rendered(pool, setting)
        if isinstance(result, RenderFailure):
            await self._tell(pool, result.message)
            # A registry tells nobody that it has an image now.
            return ASK_AGAIN if result.unresolved else None
        await self._store(pool, result, setting.defaults)
        await self._tell(await self._point(pool, result), "")
        return None

    async def _rendered(self, pool: JsonObject, setting: Setting) -> Rendered | RenderFailure:
        """What the pool renders to, with its image by digest."""
        result = render(pool, self._configs.list(), setting)
        if not isinstance(result, RenderFailure) or not result.unresolved:
            return result
        tagged = result.unresolved
        try:
            async with asyncio.timeout(REGISTRY_SECONDS):
                by_digest = await (self._resolve or self._asked)(tagged)
        except (FastnessError, TimeoutError) as error:
            why = str(error) or f"{tagged}: its registry did not answer within {REGISTRY_SECONDS:.0f} seconds"
            return replace(result, message=f"Failed to render configuration for pool {result.pool}: {why}")
        digests = {**(setting.digests or {}), tagged: by_digest}
        return render(pool, self._configs.list(), replace(setting, digests=digests))

    async def _asked(self, tagged: str) -> str:
        """The image that a tag means, as its registry says; raises BadStreams, BadRegistries."""
        access = self._access.access(await self._registries.objects(self._cluster))
        return await self._images.resolve(tagged, access)

    def _digests(self, pool: JsonObject) -> dict[str, str]:
        """What the tag of the pool's image was resolved to, for the config that the pool has."""
        target = ((pool.get("spec") or {}).get("configuration") or {}).get("name") or ""
        config = (self._configs.get("", target) if target else None) or {}
        tagged = annotations_of(config).get(names.RESOLVED_FROM, "")
        image = str((config.get("spec") or {}).get("osImageURL") or "")
        return {tagged: image} if tagged and digest_of(image) else {}

    def _nodes_without_base(self, pool: str) -> tuple[str, ...]:
        nodes = self._nodes.by_index(_BASE_UNKNOWN, names.UNKNOWN_IMAGE)
        if not nodes:
            return ()
        selectors, members = PoolSelectors(self._pools.list()), []
        for node in nodes:
            with suppress(SeveralPools):
                members += [object_name(node).name] if selectors.of(node).primary == pool else []
        return tuple(sorted(members))

    def _setting(self, pool: JsonObject, owners: Owners, blocked: str) -> Setting:
        """What rendering depends on beside the configs."""
        running = ((pool.get("status") or {}).get("configuration") or {}).get("name") or ""
        plain = Defaults.of(owners.controller, CONTROLLER_VERSION)
        defaults, _, missing = with_stream(plain, pool, self._pools.list(), self._streams.get("", "cluster"))
        return Setting(
            defaults=defaults,
            trust=trust_model(self._confidential.get("", "cluster"), object_name(pool).name),
            current=self._configs.get("", running) if running else None,
            overrides=overrides_of(self._settings.get("", "cluster")),
            examine=self._examine,
            obstacle=blocked or missing,
            digests=self._digests(pool),
            without_base=self._nodes_without_base(object_name(pool).name),
        )

    async def _major(self, image: str) -> int:
        """The major version of the system in an image that a config names, by its label; 0 where nobody can tell."""
        major = self._majors.get(image)
        if major is not None or "@" not in image:
            return major or 0
        try:
            async with asyncio.timeout(REGISTRY_SECONDS):
                access = self._access.access(await self._registries.objects(self._cluster))
                labels = await self._images.labels(image, access)
        except (BadStreams, BadRegistries, TimeoutError):
            return 0  # asked again with the next render; the pool is warned meanwhile
        major = major_of_stream(labels.get(STREAM, ""))
        self._majors.put(image, major)
        return major

    def _owners(self) -> Owners:
        """What configs are generated from."""
        controllers = self._controllers.list()
        controller = controllers[0] if controllers else None
        owners = Owners.of(
            self._kubelets.list(), self._runtimes.list(), controller,
            settings=settings_in_cache(self._informers), pools=self._pools.list(), configs=self._configs.list(),
            confidential=self._confidential.get("", "cluster"),
        )  # fmt: skip
        registries = self._registries.configs(self._pools.list(), controller, CONTROLLER_VERSION)
        return replace(owners, registries=registries.specs, registries_refused=registries.reasons)

    def _examine(self, config: Object, trust: TrustModel) -> Examined:
        meta = config["metadata"]
        key = (str(meta.get("uid")), str(meta.get("resourceVersion")), trust.value)
        examined = self._examined.get(key)
        if examined is None:
            if len(self._examined) >= MAX_EXAMINED:
                self._examined.clear()
            examined = self._examined[key] = examine(config, trust)
        return examined

    async def _store(self, pool: JsonObject, rendered: Rendered, defaults: Defaults) -> None:
        """Have the rendered config in the cluster, with exactly this content."""
        try:
            stored = await self._cluster.get(CONFIGS, rendered.name)
        except NotFound:
            try:
                await self._cluster.create(CONFIGS, rendered.manifest(pool, defaults), _AS)
            except AlreadyExists:
                return
            text = f"{rendered.name} successfully generated from {', '.join(rendered.source)}"
            await self._recorder.normal(pool, names.Event.RENDERED_CONFIG_GENERATED, text)
            return
        # The name is a digest of the content: other content under it was written by somebody else, and nodes would follow it.
        if stored.get("spec") != rendered.spec:
            version = stored["metadata"]["resourceVersion"]
            patch = [
                {"op": "test", "path": "/metadata/resourceVersion", "value": version},
                {"op": "replace", "path": "/spec", "value": rendered.spec},
            ]
            await self._cluster.patch(CONFIGS, rendered.name, patch, PatchType.JSON, "", _AS)

    async def _point(self, pool: JsonObject, rendered: Rendered) -> JsonObject:
        """The pool, whose spec names the rendered config now."""
        target = rendered.configuration()
        present = (pool.get("spec") or {}).get("configuration") or {}
        if present.get("name") == target["name"] and present.get("source") == target["source"]:
            return pool
        try:
            patch = {"spec": {"configuration": target}}
            return await self._cluster.patch(
                MACHINE_CONFIG_POOL.resource, object_name(pool).name, patch, PatchType.MERGE, "", _AS
            )
        except NotFound:
            return pool

    async def _tell(self, pool: JsonObject, failure: str) -> None:
        """Say in the conditions whether rendering went well."""
        now = self._clock.now()

        def change(current: JsonObject) -> JsonObject | None:
            status = current.get("status") or {}
            conditions = render_condition(current, failure, now)
            return None if conditions == (status.get("conditions") or []) else {"conditions": conditions}

        await write_status(self._cluster, MACHINE_CONFIG_POOL.resource, pool, change, _STATUS)
