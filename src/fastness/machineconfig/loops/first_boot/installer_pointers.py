"""Pointers that an installer made (`<role>-user-data`): left alone, but for those that are ours.

* One that trusts the doors of this cluster, and nobody else, follows their CA: else its machines would meet a server that they do
  not trust. One that trusts anybody else is not ours, and not one byte of it changes.
* A spec 2 stub becomes what the managed Secret of its pool is when every machine set that uses it has a boot image that reads
  spec 3, and either the stub was ours or each of those sets says so in the annotation `fastness.dev/pointer-version`. Until then
  it stays: an old boot image reads nothing else. The Secret says what happened and when, in the annotations that operators of
  this field know, and from then on it has the ticket of its pool, today's and tomorrow's.

What is more than a plain stub, or names several authorities, is not guessed at: an event says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fastness.enrolment.trusted_cluster import Doors
from fastness.keys.authorities import named
from fastness.keys.doors import NAME as DOORS_NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of, labels_of, object_name, rfc3339
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, MACHINE_SET
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig import installer_stub as stubs
from fastness.machineconfig.boot_images.pointer_version import LOWEST, read_by_all
from fastness.machineconfig.loops.first_boot.boot_image_stream import StreamView, stream_source
from fastness.machineconfig.loops.first_boot.user_data import CA_DELAY, SECRETS
from fastness.machineconfig.render.errors import BadPointer
from fastness.runtime.clock import Clock

MACHINE_SETS = MACHINE_SET.resource
CONTROL_PLANE_SETS = CONTROL_PLANE_MACHINE_SET.resource
EVERY = ObjectName(names.USER_DATA_NAMESPACE, "*")
_AS = WriteOptions(manager="user-data-stubs")


def _every_stub(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


def _stub_of_secret(secret: Object) -> Iterable[ObjectName]:
    """The stub itself, or the one beside a managed Secret, whose ticket it may carry."""
    place = object_name(secret)
    if place.name.endswith(names.USER_DATA_SUFFIX):
        pool = place.name.removesuffix(names.USER_DATA_SUFFIX)
        return (ObjectName(place.namespace, f"{pool}{names.UNMANAGED_USER_DATA_SUFFIX}"),)
    return (place,)


class InstallerStubs:
    """Keeps pointers of an installer usable."""

    name = "user-data-stubs"
    writes: Sequence[Resource] = (SECRETS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, doors: Callable[[], Doors | None]) -> None:
        here = Scope(names.USER_DATA_NAMESPACE)
        self.sources: Sequence[Source] = (
            Source(SECRETS, keys=_stub_of_secret, scope=here),
            Source(SECRETS, keys=_every_stub, scope=named(DOORS_NAME), delay=CA_DELAY),
            Source(MACHINE_SETS, keys=_every_stub, scope=here), Source(CONTROL_PLANE_SETS, keys=_every_stub, scope=here),
            stream_source(_every_stub),
        )  # fmt: skip
        self._cluster = cluster
        self._clock = clock
        self._doors = doors
        self._recorder = Recorder(cluster, self.name, clock)
        self._secrets = informers.of(SECRETS, here)
        self._makers = (informers.of(MACHINE_SETS, here), informers.of(CONTROL_PLANE_SETS, here))
        self._stream = StreamView(informers)

    async def reconcile(self, key: ObjectName) -> Done:
        """Look at one stub, or at all."""
        if key == EVERY:
            for each in self._secrets.list():
                await self._sync(each)
            return Done()
        secret = self._secrets.get(key.namespace, key.name)
        if secret is None:
            return GONE
        await self._sync(secret)
        return Done()

    async def _sync(self, secret: JsonObject) -> None:
        if object_name(secret).name.endswith(names.USER_DATA_SUFFIX) or not stubs.is_unmanaged_pointer(secret):
            return
        try:
            await self._follow(secret)
        except BadPointer as error:
            await self._recorder.warning(secret, names.Event.BAD_POINTER, f"{error.message}: {error.hint}")

    async def _follow(self, secret: JsonObject) -> None:
        """Spec 3 first, because that brings the CA along; else the CA alone."""
        doors = self._doors()
        ca = doors.ca if doors is not None else ""
        version = await self._version(secret, ca)
        managed = self._secrets.get(names.USER_DATA_NAMESPACE, f"{stubs.pool_of(secret)}{names.USER_DATA_SUFFIX}")
        if version and managed is not None and names.MANAGED_CA_LABEL in labels_of(managed):
            patch = stubs.brought(secret, managed, version, rfc3339(self._clock.now()))
            if patch is not None and names.STUB_UPGRADED_TO in patch["metadata"]["annotations"]:
                text = f"{object_name(secret)} is of Ignition {version} now, as the boot images of its machine sets read it"
                await self._write(secret, patch, names.Event.STUB_UPGRADED, text)
            elif patch is not None:
                text = f"{object_name(secret)} follows {object_name(managed)}"
                await self._write(secret, patch, names.Event.USER_DATA_UPDATED, text)
            return
        patch = stubs.with_ca(secret, ca) if ca else None
        if patch is not None:
            text = f"{object_name(secret)} has the new CA of the doors"
            await self._write(secret, patch, names.Event.CA_REFRESHED, text)

    async def _version(self, secret: JsonObject, ca: str) -> str:
        """The version that a stub is to be brought to, or was; empty when it stays what it is."""
        name = object_name(secret).name
        if stubs.is_brought(secret):
            return annotations_of(secret)[names.STUB_UPGRADED_TO]
        if not stubs.is_legacy(secret):
            return ""
        for informer in self._makers:
            await informer.synced()
        makers = [maker for informer in self._makers for maker in informer.list()]
        version = read_by_all(name, makers, await self._stream.current())
        if version < LOWEST:
            return ""
        if not stubs.says_so(name, makers) and not stubs.leads_here(secret, ca):
            text = (
                f"the boot images of its machine sets read Ignition {version}, but it leads to a server that is not ours: point "
                f"them at {stubs.pool_of(secret)}{names.USER_DATA_SUFFIX}, or say so on each with {names.POINTER_VERSION}"
            )
            await self._recorder.normal(secret, names.Event.STUB_LEFT_ALONE, text)
            return ""
        return version

    async def _write(self, secret: JsonObject, patch: JsonObject, event: names.Event, text: str) -> None:
        """Patch what was read and nothing newer; one that changed meanwhile comes again by itself."""
        place, version = object_name(secret), secret["metadata"]["resourceVersion"]
        body = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
        try:
            written = await self._cluster.patch(SECRETS, place.name, body, PatchType.MERGE, place.namespace, _AS)
        except (Conflict, NotFound):
            return
        await self._recorder.normal({"apiVersion": "v1", "kind": "Secret", **written}, event, text)
