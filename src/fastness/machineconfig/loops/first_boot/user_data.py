"""Managed user-data: what a new machine of a pool is created with.

For every pool there is a Secret `<pool>-user-data-managed` with a pointer config, and a join ticket inside it. Both are ours:

* The ticket changes every day, the one before stays good for a day more, and where machines enrol each is good for as many as
  the pool may need (`pool_ticket.py`).
* A hand edit is put back, and an event says so; a Secret that somebody made before us is adopted, and an event says that.
* A new CA of the doors, another trust model or pointer version rewrite the pointer; the ticket in it stays.
* The version is what the boot images of all machine sets that use the Secret read (`boot_images.pointer_version`); the condition
  `UserDataDegraded` of the pool says which, why, and what cannot be served.
* With a pool go its Secret, which it owns, and its tickets.

Pointers that an installer made are the business of `installer_pointers.py`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.keys.authorities import named
from fastness.keys.doors import NAME as DOORS_NAME
from fastness.kinds.fastness_dev.trust_model import trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NAMESPACE, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, labels_of, metadata, object_name
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.statuses import conditions_by, write_status
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.machineconfig import pointer
from fastness.machineconfig.boot_images.pointer_version import PointerVersion, pointer_version
from fastness.machineconfig.loops.first_boot.boot_image_stream import StreamView, stream_source
from fastness.machineconfig.loops.first_boot.pool_ticket import (
    CONTROL_PLANE_SETS,
    MACHINE_SETS,
    POOL_LABEL,
    TICKETS,
    PoolTickets,
)
from fastness.machineconfig.loops.rendering.render import CONFIDENTIAL
from fastness.machineconfig.loops.updates.rollout import EVERY
from fastness.machineconfig.render.errors import BadPointer
from fastness.machineconfig.rollout.status import user_data_condition
from fastness.runtime.clock import Clock, Entropy

SECRETS = SECRET.resource
NAMESPACES = NAMESPACE.resource
GATHER_SECONDS = 0.2  # a ticket changes with every machine that uses it
CA_DELAY = 1.0  # seconds: whoever tells where the doors are reads the same Secret, and may see it a moment later
_AS = WriteOptions(manager="user-data")
_STATUS = WriteOptions(manager="user-data", subresource="status")


def _every_pool(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


def _pool_of_secret(secret: Object) -> Iterable[ObjectName]:
    name = object_name(secret).name
    managed = name.endswith(names.USER_DATA_SUFFIX)
    return (ObjectName("", name.removesuffix(names.USER_DATA_SUFFIX)),) if managed else ()


def _pool_of_ticket(ticket: Object) -> Iterable[ObjectName]:
    pool = labels_of(ticket).get(POOL_LABEL)
    return (ObjectName("", pool),) if pool else ()


class UserData:
    """Keeps the user-data of every pool."""

    name = "user-data"
    writes: Sequence[Resource] = (SECRETS, TICKETS, NAMESPACES, MACHINE_CONFIG_POOL.resource, EVENTS)

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        clock: Clock,
        entropy: Entropy,
        doors: Callable[[], Doors | None],
    ) -> None:
        here = Scope(names.USER_DATA_NAMESPACE)
        self.sources: Sequence[Source] = (
            Source(MACHINE_CONFIG_POOL.resource), Source(CONFIDENTIAL, keys=_every_pool),
            Source(SECRETS, keys=_pool_of_secret, scope=here),
            Source(TICKETS, keys=_pool_of_ticket, delay=GATHER_SECONDS),
            Source(MACHINE_SETS, keys=_every_pool, scope=here), Source(CONTROL_PLANE_SETS, keys=_every_pool, scope=here),
            Source(SECRETS, keys=_every_pool, scope=named(DOORS_NAME), delay=CA_DELAY), stream_source(_every_pool),
            Source(TRUSTED_EXECUTION_CLUSTER.resource, keys=_every_pool),  # it may say where machines enrol
        )  # fmt: skip
        self._cluster = cluster
        self._doors = doors
        # A pool comes up under its own key and under that of all: two at once would mint two tickets.
        self._turn = asyncio.Lock()
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._confidential = informers.of(CONFIDENTIAL)
        self._makers = (informers.of(MACHINE_SETS, here), informers.of(CONTROL_PLANE_SETS, here))
        self._stream = StreamView(informers)
        self._clock = clock
        self._tickets = PoolTickets(cluster, informers, clock, entropy, self._recorder)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the user-data of one pool, or of all, in step."""
        if key == EVERY:
            for each in self._pools.list():
                await self._sync(each)
            return Done()
        pool = self._pools.get("", key.name)
        if pool is None:
            await self._tickets.drop(lambda ticket: labels_of(ticket).get(POOL_LABEL) == key.name)
            return GONE
        return Done(again_after=await self._sync(pool))

    async def _sync(self, pool: JsonObject) -> float | None:
        """Bring a pool in step; in how many seconds its ticket is replaced."""
        async with self._turn:
            return await self._sync_alone(pool)

    async def _sync_alone(self, pool: JsonObject) -> float | None:
        doors = self._doors()
        if doors is None or is_being_deleted(pool):
            return None
        name = object_name(pool).name
        trust = trust_model(self._confidential.get("", "cluster"), name)
        present = await self._stored_secret(name)
        held = await self._tickets.held(pool, trust, _ticket_in(present))
        chosen = await self._version(pool)
        try:
            document = pointer.pointer(name, trust, doors, held.ticket.reveal(), chosen.version)
        except BadPointer as error:
            await self._recorder.warning(pool, names.Event.BAD_POINTER, f"{error.message}: {error.hint}")
            return held.seconds
        await self._write(pool, present, pointer.user_data_secret(pool, document))
        await self._tell(pool, chosen)
        return held.seconds

    async def _version(self, pool: JsonObject) -> PointerVersion:
        for informer in self._makers:
            await informer.synced()
        makers = [maker for informer in self._makers for maker in informer.list()]
        return pointer_version(pool, makers, await self._stream.current())

    async def _tell(self, pool: JsonObject, chosen: PointerVersion) -> None:
        """Say in the pool's conditions of which version its pointer is and why; raises ApiError."""
        change = conditions_by(lambda current: user_data_condition(current, chosen, self._clock.now()))
        if not change(pool):
            return
        if chosen.problem:
            await self._recorder.warning(pool, names.Event.BAD_POINTER, chosen.problem)
        elif chosen.unknown:
            await self._recorder.warning(pool, names.Event.BOOT_IMAGE_UNKNOWN, chosen.note)
        await write_status(self._cluster, MACHINE_CONFIG_POOL.resource, pool, change, _STATUS)

    async def _stored_secret(self, pool: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SECRETS, f"{pool}{names.USER_DATA_SUFFIX}", names.USER_DATA_NAMESPACE)
        except NotFound:
            return None

    async def _write(self, pool: JsonObject, present: JsonObject | None, secret: JsonObject) -> None:
        place = object_name(secret)
        if present is None:
            await self._create(secret)
            return
        ours = names.MANAGED_CA_LABEL in labels_of(present)
        same = all(present.get(part) == secret[part] for part in ("data", "type"))
        if same and ours and _owned(present, pool) and pointer.untouched(present):
            return
        touched = not pointer.untouched(present) or not ours
        if present.get("type") != secret["type"] or present.get("immutable"):
            # Neither a type nor an immutable content can be changed in place.
            await self._cluster.delete(
                SECRETS, place.name, place.namespace, DeleteOptions(uid=present["metadata"]["uid"])
            )
            await self._create(secret)
        else:
            patch = {
                "metadata": {part: secret["metadata"][part] for part in ("labels", "annotations", "ownerReferences")},
                "data": {**dict.fromkeys(present.get("data") or {}), **secret["data"]},
            }
            await self._cluster.patch(SECRETS, place.name, patch, PatchType.MERGE, place.namespace, _AS)
        await self._say(pool, place, present, touched=touched)

    async def _say(self, pool: JsonObject, place: ObjectName, present: JsonObject, *, touched: bool) -> None:
        """Adopted from somebody, put back after a hand, or rewritten by ourselves."""
        marked = names.MANAGED_CA_LABEL in labels_of(present) or names.USER_DATA_DIGEST in annotations_of(present)
        if not marked:
            await self._recorder.normal(pool, names.Event.USER_DATA_ADOPTED, f"{place} is kept by Fastness from now on")
        elif touched:
            text = f"{place} was changed by hand and is put back"
            await self._recorder.warning(pool, names.Event.USER_DATA_RESTORED, text)
        else:
            text = f"{place} follows the doors, the trust model and the annotations of its pool"
            await self._recorder.normal(pool, names.Event.USER_DATA_UPDATED, text)

    async def _create(self, secret: JsonObject) -> None:
        try:
            await self._cluster.create(SECRETS, secret, _AS)
        except AlreadyExists:
            return
        except NotFound:
            meta = {"name": names.USER_DATA_NAMESPACE}
            await self._cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, _AS)
            await self._cluster.create(SECRETS, secret, _AS)


def _owned(secret: JsonObject, pool: JsonObject) -> bool:
    """Whether the Secret goes with this very pool, not with one of the same name that is no more."""
    owners = metadata(secret).get("ownerReferences") or ()
    return any(owner.get("uid") == metadata(pool).get("uid") for owner in owners)


def _ticket_in(secret: Mapping[str, Any] | None) -> str:
    """The ticket that a pointer carries; empty when there is none or it cannot be read."""
    try:
        data = base64.b64decode(((secret or {}).get("data") or {}).get("userData") or "")
        merge = json.decode(data)["ignition"]["config"]["merge"][0]
        values = [entry.get("value", "") for entry in merge["httpHeaders"] if entry.get("name") == "Authorization"]
    except (ValueError, FormatError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return values[0].removeprefix("Bearer ") if values else ""
