"""Builds: from MachineOSConfig and pool to an image by digest, which the rollout then takes to the nodes.

For one pool at a time:

    check     is all that the MachineOSConfig names there and good, and is there somebody who builds?   condition Buildable
    order     the build of exactly this rendered config; its name follows from what goes in
    reuse     an image of the same inputs that is still in the registry is taken, and nothing is built
    build     under way until it ends, or until nobody wants it any more
    tell      current build and image on the MachineOSConfig; the rollout reads them
    prune     old builds with their images, never one that a node boots or was told to boot

* A pool that cannot be rendered, or whose nodes fail, gets no new build: the next config is the cure, not another image. Images
  that exist are taken all the same, so going back is always possible.
* Paused pools build.
* A build that a restart interrupted begins anew: it is what was asked for. One that ended stays as it ended.
* A MachineOSConfig that goes takes its builds along. Their images go from the registry when no node boots one any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from fastness.attestation.values.pushed_here import PUSHED_HERE
from fastness.builds import life
from fastness.builds.checks import (
    NODE_PULL,
    PULL,
    PUSH,
    checked,
    pool_of,
    pull_secret_name,
    registry_credentials,
    secret_name,
)
from fastness.builds.credentials import credential_in
from fastness.builds.defaults import base_configs
from fastness.builds.errors import TransferFailed
from fastness.builds.inputs import BuildInputs, StillRendering, build_name, inputs
from fastness.builds.live.builder import Builder, Order, why_not_sealed
from fastness.builds.live.image_signer import ImageSigner
from fastness.builds.loops.logs import MAPS, drop_log
from fastness.builds.loops.measures import measured, show
from fastness.builds.loops.statuses import AS, BUILDS, CONFIGS, MANAGER, BuildStatuses
from fastness.builds.loops.under_way import LOOK_EVERY, UnderWay
from fastness.builds.placement import Setting, public_configs
from fastness.builds.sealing import is_sealed
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.kubernetes.native import JOB
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.names import PoolCondition
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import (
    ObjectName,
    annotations_of,
    condition,
    is_being_deleted,
    labels_of,
    metadata,
    object_name,
)
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType
from fastness.machineconfig.loops.rendering.registry_access import asked_access
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.render import sources_of
from fastness.machineconfig.rollout.built import config_for, phase_of
from fastness.machineconfig.rollout.disruption import policies_of
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.observe import metrics
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

POOLS: Final = MACHINE_CONFIG_POOL.resource
MOST_OF_EVENT: Final = 700
_BLOCKING: Final = (
    PoolCondition.RENDER_DEGRADED,
    PoolCondition.NODE_DEGRADED,
    PoolCondition.PINNED_IMAGE_SETS_DEGRADED,
)
_log = logger("builds")


Vouch = Callable[[str, str], Awaitable[str]]
"""The controllers' word for the image of a pool, as `attestation.values.pushed_here` has it."""


async def nobody_vouches(_pool: str, _image: str) -> str:
    """For control planes whose images no standing approval is for."""
    return ""


def _of_config(config: Object) -> Iterable[ObjectName]:
    return (ObjectName("", pool_of(config)),)


def _of_build(build: Object) -> Iterable[ObjectName]:
    pool = labels_of(build).get(names.BUILD_POOL_LABEL, "")
    return (ObjectName("", pool),) if pool else ()


def _nobody(_obj: Object) -> Iterable[ObjectName]:
    return ()


class Builds:
    """Keeps the image of every pool that has a MachineOSConfig."""

    name = MANAGER
    writes: Sequence[Resource] = (CONFIGS, BUILDS, EVENTS, MAPS, SECRET.resource, JOB.resource)

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, builder: Builder, timing: Timing = FIELD,
        vouch: Vouch = nobody_vouches, signer: ImageSigner | None = None,
    ) -> None:  # fmt: skip
        self.sources: Sequence[Source] = (
            Source(CONFIGS, keys=_of_config, delay=timing.render_delay),
            Source(BUILDS, keys=_of_build, delay=timing.rollout_delay),
            Source(POOLS, delay=timing.render_delay),
            *(Source(each, keys=_nobody) for each in (MACHINE_CONFIG.resource, NODES, MACHINE_CONFIGURATION.resource)),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=_nobody),
        )
        self._cluster = cluster
        self._clock = clock
        self._builder = builder
        self._vouch = vouch
        self._retry = timing.streams_retry
        self._recorder = Recorder(cluster, self.name, clock)
        self._statuses = BuildStatuses(cluster, clock)
        self._under_way = UnderWay(cluster, clock, builder, self._statuses, timing.streams_retry, signer)
        self._configs = informers.of(CONFIGS)
        self._builds = informers.of(BUILDS)
        self._pools = informers.of(POOLS)
        self._machine_configs = informers.of(MACHINE_CONFIG.resource)
        self._nodes = informers.of(NODES)
        self._settings = informers.of(MACHINE_CONFIGURATION.resource)
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._seen: set[str] = set()

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the image of one pool to what is asked for."""
        config = config_for(key.name, self._configs.list())
        show(
            key.name,
            config,
            self._builds.list(),
            self._pools.get("", key.name),
            self._nodes.list(),
            self._configs.list(),
        )
        waits = await self._let_go(key.name, config)
        for other in [each for each in self._configs.list() if pool_of(each) == key.name and each is not config]:
            await self._refused(other)
        if config is None:
            return Done(again_after=self._retry if waits else None)
        described = await self._refused(dict(config))
        pool = self._pools.get("", key.name)
        if described is None or pool is None:
            return Done(again_after=self._retry)
        return await self._keep(described, pool)

    # ------------------------------------------------------------ check

    async def _refused(self, config: JsonObject) -> JsonObject | None:
        """The MachineOSConfig when its image can be built, None when not, which it says then."""
        if is_being_deleted(config):
            return None
        secrets = {field: await self._secret(config, field) for field in (PUSH, PULL, NODE_PULL)}
        pools = [object_name(pool).name for pool in self._pools.list()]
        proven = enforces(self._confidential.get("", CLUSTER), pool_of(config))
        problems = checked(config, self._configs.list(), pools, secrets, enforcing=proven)
        reason, text = (problems[0].reason, "; ".join(map(str, problems))) if problems else ("", "")
        if not problems and (obstacle := await self._builder.obstacle()):
            reason, text = "NoBuilder", obstacle
        elif not problems and is_sealed(config) and (obstacle := await why_not_sealed(self._builder)):
            reason, text = "CannotSeal", obstacle
        written = await self._statuses.buildable(config, reason, text)
        if reason:
            await self._recorder.warning(config, names.Event.BUILD_REFUSED, text)
        return None if reason else written

    async def _secret(self, config: JsonObject, field: str) -> JsonObject | None:
        name = pull_secret_name(config) if field == NODE_PULL else secret_name(config, field)
        return await self._secret_named(name) if name else None

    async def _secret_named(self, name: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SECRET.resource, name, names.OPERATOR_NAMESPACE)
        except NotFound:
            return None

    # ------------------------------------------------------------ order

    async def _keep(self, config: JsonObject, pool: JsonObject) -> Done:
        rendered = self._rendered(pool)
        if rendered is None:
            return Done(again_after=self._retry)
        try:
            made_of = self._inputs(config, pool, rendered)
        except StillRendering:
            return Done(again_after=self._retry)
        reason, text = made_of.problem
        if reason:
            await self._statuses.buildable(config, reason, text)
            return Done(again_after=self._retry)
        name = build_name(config, pool, rendered)
        if names.REBUILD in annotations_of(config):
            return await self._rebuild(config, made_of)
        if names.PRE_BUILT in annotations_of(config):
            return await self._seed(config, pool, name, made_of)
        build = self._builds.get("", name)
        if build is not None and is_being_deleted(build):
            return Done(again_after=self._retry)
        if build is None:
            build = await self._order(config, pool, name, made_of)
        if build is None:
            return Done(again_after=self._retry)
        await self._statuses.current(config, name, life.image_of(build))
        return await self._advance(config, build, made_of)

    def _rendered(self, pool: JsonObject) -> JsonObject | None:
        name = str(((pool.get("spec") or {}).get("configuration") or {}).get("name") or "")
        return self._machine_configs.get("", name) if name else None

    def _inputs(self, config: JsonObject, pool: JsonObject, rendered: JsonObject) -> BuildInputs:
        """What goes into the image; raises StillRendering."""
        every = self._machine_configs.list()
        model = trust_model(self._confidential.get("", CLUSTER), object_name(pool).name)
        setting = Setting(
            policies_of(self._settings.get("", "cluster")),
            model is TrustModel.CONFIDENTIAL_CLUSTER,
            public_configs(every),
            base_configs(every),
        )
        return inputs(config, rendered, sources_of(pool, every), setting)

    async def _order(self, config: JsonObject, pool: JsonObject, name: str, made_of: BuildInputs) -> JsonObject | None:
        """Make the object of a build, unless the pool is in no state for one."""
        mine = self._mine(config)
        present = life.same_image(mine, made_of.digest, name)
        if present is None and any((condition(pool, kind) or {}).get("status") == "True" for kind in _BLOCKING):
            return None
        for old in life.superseded(mine, name):
            # At once: the next look at this pool may be an hour away, when this build has ended.
            if (going := await self._delete(old)) is not None:
                await self._finish(going)
        rendered = str(pool["spec"]["configuration"]["name"])
        try:
            sources = [str(source.name) for source in sources_of(pool, self._machine_configs.list())]
            described = life.manifest(name, config, rendered, made_of.digest, sources)
            build = await self._cluster.create(BUILDS, described, AS)
        except AlreadyExists:
            return None
        metrics.BUILDS.ordered(pool_of(config))
        await self._recorder.normal(config, names.Event.BUILD_STARTED, f"build {name} for {rendered}")
        return build

    async def _seed(self, config: JsonObject, pool: JsonObject, name: str, made_of: BuildInputs) -> Done:
        """Let a pool start on an image that was built before there was a cluster: a build that has ended stands for it."""
        access = await self._access(config)
        if access is None:
            return Done(again_after=self._retry)
        try:
            image = life.pre_built_image(config)
            await self._builder.require(image, access[0])
        except (ValueError, TransferFailed) as error:
            await self._statuses.buildable(config, "PreBuiltImageInvalid", f"annotation {names.PRE_BUILT}: {error}")
            return Done(again_after=self._retry)
        rendered = str(pool["spec"]["configuration"]["name"])
        standing = life.manifest(name, config, rendered, made_of.digest, pre_built=True)
        try:
            build = await self._cluster.create(BUILDS, standing, AS)
        except AlreadyExists:
            build = await self._cluster.get(BUILDS, name)
        text = f"{names.PRE_BUILT_SEEDED}: nothing was built"
        await self._ended(config, build, BuildPhase.SUCCEEDED, text, image)
        await self._statuses.seeded(config, image)
        return Done(again_after=self._retry)

    async def _rebuild(self, config: JsonObject, made_of: BuildInputs) -> Done:
        """Throw away what was built of these inputs, and hear the wish: the next look orders anew."""
        for build in self._mine(config):
            if annotations_of(build).get(names.IMAGE_INPUTS) == made_of.digest:
                await self._delete(build)
        await self._statuses.rebuilding(config)
        await self._recorder.normal(config, names.Event.REBUILD_REQUESTED, "the image is built anew")
        return Done(again_after=self._retry)

    def _mine(self, config: Object) -> list[JsonObject]:
        name = object_name(config).name
        builds = self._builds.list()
        return [
            each for each in builds if labels_of(each).get(names.BUILD_OF_LABEL) == name and not is_being_deleted(each)
        ]

    # ------------------------------------------------------------ build

    async def _advance(self, config: JsonObject, build: JsonObject, made_of: BuildInputs) -> Done:
        phase = phase_of(build)
        if phase is BuildPhase.SUCCEEDED:
            return await self._succeeded(config, build)
        if not phase.under_way:
            return Done()
        access = await self._access(config)
        if access is None:
            return Done(again_after=self._retry)
        present = life.same_image(self._mine(config), made_of.digest, object_name(build).name)
        if present is not None and await self._is_there(life.image_of(present), access[1]):
            text = f"the image of {object_name(present).name} is made of the same"
            await self._statuses.vouched(build, annotations_of(present).get(PUSHED_HERE, ""))
            await self._ended(config, build, BuildPhase.SUCCEEDED, text, life.image_of(present))
            return Done()
        if leak := credential_in(made_of, (each.credentials for each in access)):
            await self._ended(config, build, BuildPhase.FAILED, leak)
            return Done(again_after=LOOK_EVERY)
        return await self._build(config, build, made_of, access)

    async def _build(
        self, config: JsonObject, build: JsonObject, made_of: BuildInputs, access: tuple[RegistryAccess, RegistryAccess]
    ) -> Done:
        name = object_name(build).name
        prepared = await self._statuses.move(build, BuildPhase.PREPARED, f"what goes in is known: {made_of.digest}")
        moving = await self._statuses.move(prepared or build, BuildPhase.BUILDING, "the image is being built")
        if moving is None:
            return Done()
        labels = {
            "machineconfig": build["spec"]["machineConfig"]["name"], "machineconfigpool": pool_of(config),
            "baseOSContainerImage": made_of.base, "dev.fastness.inputs": made_of.digest,
        }  # fmt: skip
        uid = str(metadata(build)["uid"])
        order = Order(name, made_of, life.tagged(config, name), *access, labels, uid)
        if (runner := self._builder.runs(name)) is not None:
            await self._statuses.runs(moving, runner)
        with measured(pool_of(config), moving, self._clock) as measure:
            outcome = await self._under_way.follow(moving, order, lambda: self._wanted(config, name))
            measure(outcome.phase, outcome.pushed)
        if outcome.image:
            await self._statuses.vouched(moving, await self._vouch(pool_of(config), outcome.image))
        await self._ended(config, moving, outcome.phase, outcome.text, outcome.image)
        if outcome.phase is not BuildPhase.FAILED:
            await self._builder.forget(name)
        return Done(again_after=LOOK_EVERY)

    def _wanted(self, config: JsonObject, name: str) -> bool:
        """Whether a build that is under way is still what its pool asks for."""
        build, now = self._builds.get("", name), self._configs.get("", object_name(config).name)
        pool = self._pools.get("", pool_of(config))
        if build is None or now is None or pool is None or is_being_deleted(build) or is_being_deleted(now):
            return False
        rendered = self._rendered(pool)
        return rendered is None or build_name(now, pool, rendered) == name

    async def _ended(
        self, config: JsonObject, build: JsonObject, phase: BuildPhase, text: str, image: str = ""
    ) -> None:
        written = await self._statuses.move(build, phase, text, image)
        name = object_name(build).name
        if written is None:
            return
        if phase is BuildPhase.SUCCEEDED:
            self._seen.add(metadata(build)["uid"])
            await self._statuses.current(config, name, image)
            await self._recorder.normal(config, names.Event.BUILD_COMPLETED, f"build {name} made {image}")
        elif phase is BuildPhase.FAILED:
            # An event is short, and why a build failed stands at the end of what it printed.
            end = text if len(text) <= MOST_OF_EVENT else f"… {text[-MOST_OF_EVENT:]}"
            await self._recorder.warning(config, names.Event.BUILD_FAILED, f"build {name} failed: {end}")
        else:
            await self._recorder.warning(config, names.Event.BUILD_INTERRUPTED, f"build {name}: {text}")

    async def _succeeded(self, config: JsonObject, build: JsonObject) -> Done:
        """A build that is done: its image must still be there, looked at once; what nobody needs goes."""
        uid = metadata(build)["uid"]
        if uid not in self._seen:
            access = await self._access(config)
            if access is None:
                return Done(again_after=self._retry)
            if not await self._is_there(life.image_of(build), access[1]):
                await self._delete(build)
                return Done(again_after=self._retry)
            self._seen.add(uid)
        for old in life.prunable(self._mine(config), object_name(build).name, self._used()):
            await self._delete(old)
        return Done()

    async def _is_there(self, image: str, access: RegistryAccess) -> bool:
        """Whether the registry has an image; an answer other than yes or no is yes: nothing is thrown away for it."""
        try:
            await self._builder.require(image, access)
        except TransferFailed as error:
            return not error.absent
        return True

    async def _access(self, config: JsonObject) -> tuple[RegistryAccess, RegistryAccess] | None:
        """How the base is pulled and the image pushed; None where that cannot be told, which the object says."""
        try:
            pull_secret = await self._secret(config, PULL)
            pull = await asked_access(self._cluster, registry_credentials(pull_secret) if pull_secret else None)
            push_secret = await self._secret(config, PUSH)
            push = await asked_access(self._cluster, registry_credentials(push_secret) if push_secret else b"")
        except (BadRegistries, ValueError) as error:
            await self._statuses.buildable(config, "RegistriesInvalid", str(error))
            return None
        return pull, push

    # ------------------------------------------------------------ end

    async def _let_go(self, pool: str, config: Object | None) -> bool:
        """Builds that are about to go, and those whose MachineOSConfig is gone; whether some wait for nodes.

        A pool that has none any more takes its nodes off their image, which goes from the registry after the last of them. Where
        another MachineOSConfig came, it may want a build of the same name, and does not wait.
        """
        owner, waits = object_name(config).name if config is not None else "", False
        for build in [each for each in self._builds.list() if labels_of(each).get(names.BUILD_POOL_LABEL) == pool]:
            if is_being_deleted(build) and config is None and life.image_of(build) in self._used():
                waits = True
            elif is_being_deleted(build):
                await self._finish(build)
            elif labels_of(build).get(names.BUILD_OF_LABEL) != owner:
                await self._delete(build)
        return waits

    async def _finish(self, build: JsonObject) -> None:
        """Take the image of a build out of its registry, unless somebody needs it, and let the object go."""
        image = life.image_of(build)
        others = {
            life.image_of(each) for each in self._builds.list() if each is not build and not is_being_deleted(each)
        }
        if image and image not in others and image not in self._used() and not life.is_pre_built(build):
            secret = await self._secret_named(annotations_of(build).get(names.PUSH_SECRET, ""))
            try:
                access = await asked_access(self._cluster, registry_credentials(secret) if secret else b"")
                await self._builder.delete(image, access)
            except (TransferFailed, BadRegistries, ValueError) as error:
                # Not there, or not ours to delete: no reason to keep the object of a build for ever.
                _log.info("build.image_left", build=object_name(build).name, error=str(error))
        await self._builder.forget(object_name(build).name)
        await drop_log(self._cluster, object_name(build).name)
        left = [each for each in metadata(build).get("finalizers") or () if each != names.BUILD_FINALIZER]
        if left == (metadata(build).get("finalizers") or []):
            return
        version = {"resourceVersion": metadata(build).get("resourceVersion"), "finalizers": left}
        try:
            await self._cluster.patch(BUILDS, object_name(build).name, {"metadata": version}, PatchType.MERGE, "", AS)
        except (NotFound, Conflict):
            return

    def _used(self) -> set[str]:
        """The images that some node boots, or was told to boot."""
        keys = (names.CURRENT_IMAGE, names.DESIRED_IMAGE, names.BOOTED_IMAGE)
        return {annotations_of(node).get(key, "") for node in self._nodes.list() for key in keys} - {""}

    async def _delete(self, build: Object) -> JsonObject | None:
        """Let a build go; as it is then, None where it was gone."""
        options = DeleteOptions(uid=metadata(build)["uid"])
        try:
            return await self._cluster.delete(BUILDS, object_name(build).name, "", options)
        except (NotFound, Conflict):
            return None
