"""Pointers that an installer made (`<role>-user-data`): left alone, but for two things.

* The CA in one follows the doors' CA, or new machines would meet a server that they do not trust.
* A spec 2 stub becomes one of spec 3 when every machine set that uses it says, in the annotation `fastness.dev/pointer-version`,
  that its boot image reads spec 3. Until then it stays: an old boot image reads nothing else. The Secret says what happened and
  when, in the annotations that operators of this field know.

What is more than a plain stub, or names several authorities, is not guessed at: an event says so. A stub carries no ticket, so
whoever wants new machines from it points the machine set at the managed Secret (`user_data.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fastness.enrolment.trusted_cluster import Doors
from fastness.keys.authorities import named
from fastness.keys.doors import NAME as DOORS_NAME
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import legacy_stubs
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, object_name, rfc3339
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, MACHINE_SET
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig import pointer
from fastness.machineconfig.loops.user_data import CA_DELAY, SECRETS
from fastness.machineconfig.render.errors import BadPointer
from fastness.runtime.clock import Clock

MACHINE_SETS = MACHINE_SET.resource
CONTROL_PLANE_SETS = CONTROL_PLANE_MACHINE_SET.resource
EVERY = ObjectName(names.USER_DATA_NAMESPACE, "*")
_AS = WriteOptions(manager="user-data-stubs")


def _every_stub(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


class InstallerStubs:
    """Keeps pointers of an installer usable."""

    name = "user-data-stubs"
    writes: Sequence[Resource] = (SECRETS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, doors: Callable[[], Doors | None]) -> None:
        here = Scope(names.USER_DATA_NAMESPACE)
        self.sources: Sequence[Source] = (
            Source(SECRETS, scope=here),
            Source(SECRETS, keys=_every_stub, scope=named(DOORS_NAME), delay=CA_DELAY),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=_every_stub),
            Source(MACHINE_SETS, keys=_every_stub, scope=here), Source(CONTROL_PLANE_SETS, keys=_every_stub, scope=here),
        )  # fmt: skip
        self._cluster = cluster
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._clock = clock
        self._doors = doors
        self._recorder = Recorder(cluster, self.name, clock)
        self._secrets = informers.of(SECRETS, here)
        self._makers = (informers.of(MACHINE_SETS, here), informers.of(CONTROL_PLANE_SETS, here))

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
        if object_name(secret).name.endswith(names.USER_DATA_SUFFIX) or not pointer.is_unmanaged_pointer(secret):
            return
        try:
            await self._follow(secret)
        except BadPointer as error:
            await self._recorder.warning(secret, names.Event.BAD_POINTER, f"{error.message}: {error.hint}")

    async def _follow(self, secret: JsonObject) -> None:
        """The CA first, because it needs nobody's word; then the version."""
        doors = self._doors()
        # Under such a name the gate shows a certificate of the installer's own authority, which is what the stub has.
        own = pointer.hosts_of(secret) & legacy_stubs(self._clusters.get("", NAME)).keys()
        fresh = pointer.with_ca(secret, doors.ca) if doors is not None and doors.ca and not own else None
        if fresh is not None:
            text = f"{object_name(secret)} has the new CA of the doors"
            secret = await self._write(secret, {"data": fresh}, names.Event.CA_REFRESHED, text)
        for informer in self._makers:
            await informer.synced()
        makers = [maker for informer in self._makers for maker in informer.list()]
        version = pointer.readable_by(object_name(secret).name, makers)
        data = pointer.upgraded(secret, version) if version else None
        if data is None:
            return
        notes = {names.STUB_UPGRADED_TO: version, names.STUB_UPGRADED_AT: rfc3339(self._clock.now())}
        text = f"{object_name(secret)} is of Ignition {version} now, as the boot images of its machine sets read it"
        await self._write(secret, {"data": data, "metadata": {"annotations": notes}}, names.Event.STUB_UPGRADED, text)

    async def _write(self, secret: JsonObject, patch: JsonObject, event: names.Event, text: str) -> JsonObject:
        """Patch what was read and nothing newer; one that changed meanwhile comes again by itself."""
        place, version = object_name(secret), secret["metadata"]["resourceVersion"]
        body = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
        try:
            written = await self._cluster.patch(SECRETS, place.name, body, PatchType.MERGE, place.namespace, _AS)
        except (Conflict, NotFound):
            return secret
        await self._recorder.normal({"apiVersion": "v1", "kind": "Secret", **written}, event, text)
        return written
