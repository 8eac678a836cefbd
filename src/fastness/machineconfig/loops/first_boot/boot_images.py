"""Boot images: machine sets are kept at the images of the release, and moved to managed user-data in the same write.

It acts when an upgrade is over (ClusterVersion says Completed, where there is one) and MachineConfiguration was observed as it
stands; which sets, which image and why not is decided in `boot_images.manage`. What came of it stands in MachineConfiguration:
`status.managedBootImagesStatus` and the conditions `BootImageUpdateProgressing` and `BootImageUpdateDegraded`; each set says in
an event what was done to it or why not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from fastness.formats.coreos_stream import Stream
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
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
from fastness.kinds.openshift.config import CLUSTER_VERSION, INFRASTRUCTURE
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, MACHINE_SET
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.boot_images import manage
from fastness.machineconfig.boot_images.images import NotManaged
from fastness.machineconfig.loops.first_boot.boot_image_stream import NAME, NAMESPACE, StreamView, stream_source
from fastness.machineconfig.loops.rendering.defaults import CLUSTER, SETTINGS
from fastness.machineconfig.loops.rendering.render import CONFIDENTIAL
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

SECRETS = SECRET.resource
POOLS = MACHINE_CONFIG_POOL.resource
IMAGES = APPROVED_IMAGE.resource
HERE = Scope(names.USER_DATA_NAMESPACE)
GATHER_SECONDS: Final = 0.2
MOST_REMEMBERED: Final = 1024
# How the sets are called in the condition, in the order in which they are gone through: the control plane first.
KINDS: Final[Mapping[str, tuple[Resource, str]]] = {
    manage.CONTROL_PLANE_SETS: (CONTROL_PLANE_MACHINE_SET.resource, "ControlPlaneMachineSets"),
    manage.SETS: (MACHINE_SET.resource, "MAPI MachineSets"),
}
_AS = WriteOptions(manager="boot-images")
_STATUS = WriteOptions(manager="boot-images", subresource="status")


def _cluster(_obj: Object) -> Iterable[ObjectName]:
    return (CLUSTER,)


class BootImages:
    """Keeps machine sets at the boot images of the release."""

    name = "boot-images"
    writes: Sequence[Resource] = (*(resource for resource, _ in KINDS.values()), SETTINGS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            *(Source(resource, keys=_cluster, scope=HERE, delay=GATHER_SECONDS) for resource, _ in KINDS.values()),
            Source(SETTINGS, keys=_cluster), Source(POOLS, keys=_cluster, delay=GATHER_SECONDS),
            Source(SECRETS, keys=_cluster, scope=HERE, delay=GATHER_SECONDS), Source(CONFIDENTIAL, keys=_cluster),
            Source(INFRASTRUCTURE.resource, keys=_cluster), Source(CLUSTER_VERSION.resource, keys=_cluster),
            Source(IMAGES, keys=_cluster), stream_source(_cluster),
        )  # fmt: skip
        self._cluster = cluster
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._stream = StreamView(informers)
        self._makers: dict[str, Informer] = {plural: informers.of(kind, HERE) for plural, (kind, _) in KINDS.items()}
        self._settings = informers.of(SETTINGS)
        self._pools = informers.of(POOLS)
        self._secrets = informers.of(SECRETS, HERE)
        self._confidential = informers.of(CONFIDENTIAL)
        self._infrastructure = informers.of(INFRASTRUCTURE.resource)
        self._versions = informers.of(CLUSTER_VERSION.resource)
        self._images = informers.of(IMAGES)
        # By set and image: how often it was written. A restart forgets, and begins with patience again.
        self._written = BoundedCache[tuple[str, str], int](MOST_REMEMBERED)
        self._told = BoundedCache[tuple[str, str], bool](MOST_REMEMBERED)

    async def reconcile(self, key: ObjectName) -> Done:
        """Go through all sets, and report."""
        settings = self._settings.get("", CLUSTER.name)
        if settings is None or is_being_deleted(settings):
            return Done()
        for informer in (*self._makers.values(), self._secrets, self._pools, self._infrastructure, self._versions):
            await informer.synced()
        managed = manage.managed_status(settings, self._infrastructure.get("", CLUSTER.name))
        stream, waiting = await self._stream.current(), self._waits_for(settings)
        tallies = {title: manage.Tally() for _, title in KINDS.values()}
        for plural, (resource, title) in KINDS.items():
            for maker in self._makers[plural].list():
                if manage.is_selected(managed, plural, maker) and not is_being_deleted(maker):
                    await self._look(resource, maker, stream, waiting, tallies[title])
        problem = self._stream.problem
        if stream is None and not problem and any(tally.total for tally in tallies.values()):
            problem = f"there is no ConfigMap {NAMESPACE}/{NAME}: nobody knows the boot images of the release"
        conditions = manage.boot_image_conditions(settings, tallies, problem, waiting, self._clock.now())
        await self._report(settings, managed, conditions)
        return Done()

    def _waits_for(self, settings: JsonObject) -> str:
        """What has to happen before a set is touched; empty when nothing."""
        observed = (settings.get("status") or {}).get("observedGeneration")
        if observed != metadata(settings).get("generation", observed):
            return "MachineConfiguration to be observed"
        for version in self._versions.list():
            history = (version.get("status") or {}).get("history") or ()
            if history and history[0].get("state") != "Completed":
                return f"the upgrade to {history[0].get('version')} to complete"
        return ""

    async def _look(
        self, resource: Resource, maker: JsonObject, stream: Stream | None, waiting: str, tally: manage.Tally
    ) -> None:
        """Bring one set to the image of the release, and count it; raises ApiError."""
        tally.total += 1
        if stream is None:
            return
        step = manage.decide(maker, stream, self._trust(), self._own_secrets(), self._approved())
        if isinstance(step, manage.Update):
            step = self._cooled(maker, step)
        match step:
            case manage.Current():
                tally.done += 1
            case NotManaged(reason, counted):
                tally.total -= 0 if counted else 1
                tally.done += 1 if counted else 0
                tally.skipped += [manage.told(maker, reason)] if counted else []
                await self._tell(maker, names.Event.BOOT_IMAGE_SKIPPED, reason, warning=False)
            case manage.Refused(reason):
                tally.refused.append(manage.told(maker, reason))
                await self._tell(maker, names.Event.BOOT_IMAGE_REFUSED, reason, warning=True)
            case manage.Update() if not waiting:
                await self._update(resource, maker, step)

    def _cooled(self, maker: JsonObject, update: manage.Update) -> manage.Step:
        count = self._written.get((str(metadata(maker).get("uid")), update.image)) or 0
        return manage.hot_loop(count, update.image) or update

    async def _update(self, resource: Resource, maker: JsonObject, update: manage.Update) -> None:
        place, mark = object_name(maker), (str(metadata(maker).get("uid")), update.image)
        try:
            await self._cluster.patch(resource, place.name, update.patch, PatchType.MERGE, place.namespace, _AS)
        except (Conflict, NotFound):
            return  # it changed meanwhile, and comes again by itself
        self._written.put(mark, (self._written.get(mark) or 0) + 1)
        text = f"its machines boot {update.image} (release {update.release}) from now on, with managed user-data"
        await self._recorder.normal(maker, names.Event.BOOT_IMAGE_UPDATED, text)

    async def _tell(self, maker: JsonObject, reason: str, text: str, *, warning: bool) -> None:
        """An event, once for each reason: looking again says nothing new."""
        mark = (str(metadata(maker).get("uid")), text)
        if mark in self._told:
            return
        self._told.put(mark, True)
        await (self._recorder.warning if warning else self._recorder.normal)(maker, reason, text)

    async def _report(self, settings: JsonObject, managed: JsonObject, conditions: list[JsonObject]) -> None:
        status = settings.get("status") or {}
        if status.get("managedBootImagesStatus") == managed and status.get("conditions") == conditions:
            return
        # Only over what was read: the defaults write the status of the same object.
        version = {"resourceVersion": metadata(settings).get("resourceVersion")}
        patch = {"metadata": version, "status": {"managedBootImagesStatus": managed, "conditions": conditions}}
        with suppress(Conflict, NotFound):
            await self._cluster.patch(SETTINGS, CLUSTER.name, patch, PatchType.MERGE, "", _STATUS)

    def _trust(self) -> dict[str, TrustModel]:
        confidential = self._confidential.get("", "cluster")
        return {
            object_name(pool).name: trust_model(confidential, object_name(pool).name) for pool in self._pools.list()
        }

    def _own_secrets(self) -> set[str]:
        return {
            object_name(secret).name for secret in self._secrets.list() if names.MANAGED_CA_LABEL in labels_of(secret)
        }

    def _approved(self) -> set[str]:
        """The releases of approved images whose measurements are reference values."""
        return {
            annotations_of(image)[names.BOOT_IMAGE]
            for image in self._images.list()
            if names.BOOT_IMAGE in annotations_of(image)
            and (condition(image, "Committed") or {}).get("status") == "True"
        }
