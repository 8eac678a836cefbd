"""Machines that have keys of disks: held, told of, and their keys destroyed when they are no longer needed.

* A Machine that shall get a key is held by the finalizer `fastness.dev/disk-keys` before it gets one.
* Deleting it destroys its keys, and the record says which: what is on its disks cannot be read again by anybody. A Machine that
  another one supersedes is revoked and not deleted, and keeps them.
* After a re-key the machine reports which key its disk has; the ones before it are destroyed. The volume key inside of a disk
  stays the same, so an old header with the old key would open today's data: only destroying that key ends it.
* The condition `DisksEncrypted` says how the volumes stand, and for a machine that ran before its pool had any, what to do. An
  old copy of a disk that was opened is also told as an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.disks.keyring import superseded, volumes_in
from fastness.disks.live.key_store import HeldKeys, entries_of
from fastness.disks.volumes import (
    CONDITION,
    RECOVERABLE,
    condition_of,
    is_pinned,
    lacks_key,
    pool_disk,
    recoverable_of,
)
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.objects import (
    Condition,
    ObjectName,
    annotations_of,
    condition,
    is_being_deleted,
    object_name,
    view,
    with_condition,
)
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, MACHINE, REKEY, SENT, Machine
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

DESTROYED: Final = "disk-key-destroyed"
_AS: Final = WriteOptions(manager="disks")
_STATUS: Final = WriteOptions(manager="disks", subresource="status")


class DiskKeyLife:
    """Keeps Machines and the keys of their disks in step."""

    name = "disk-keys"
    writes: Sequence[Resource] = (MACHINE.resource, SECRET.resource, AUDIT_BATCH.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE.resource, unread=SENT),
            Source(CONFIDENTIAL_CLUSTER.resource, self._all_machines),
        )
        self._cluster = cluster
        self._machines = informers.of(MACHINE.resource)
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._keys = HeldKeys(cluster)
        self._record = record
        self._clock = clock
        self._events = Recorder(cluster, self.name, clock)

    def _all_machines(self, _cluster: Object) -> Iterable[ObjectName]:
        """What a pool's machines have for a disk may be another now."""
        return [object_name(machine) for machine in self._machines.list()]

    async def reconcile(self, key: ObjectName) -> Done:
        """Look at one Machine; raises RecordError, Conflict, which are tried again."""
        try:
            machine = await self._cluster.get(MACHINE.resource, key.name, key.namespace)
        except NotFound:
            return GONE
        if key.namespace != NAMESPACE:
            return Done()
        if is_being_deleted(machine):
            await self._bury(machine)
            return Done()
        machine = await self._hold(machine)
        machine = await self._took_rekey(machine)
        await self._drop_superseded(view(machine, Machine))
        await self._tell(machine)
        return Done()

    async def _hold(self, machine: JsonObject) -> JsonObject:
        """Hold a Machine that has keys of disks, or shall get one."""
        typed, finalizers = view(machine, Machine), list(machine["metadata"].get("finalizers") or ())
        due = lacks_key(typed, pool_disk(self._confidential.get("", NAME), typed.status.pool))
        if HOLDS_KEYS in finalizers or not (due or typed.status.disks):
            return machine
        return await self._patch(machine, {"finalizers": [*finalizers, HOLDS_KEYS]})

    async def _took_rekey(self, machine: JsonObject) -> JsonObject:
        """Take the wish for a new key off a Machine that has the key, has no such volume, or whose pin cannot change it."""
        volume = annotations_of(machine).get(REKEY)
        if volume is None:
            return machine
        typed = view(machine, Machine)
        disks = {entry.volume: entry for entry in typed.status.disks}
        if volume in disks and not disks[volume].next_key_id and not is_pinned(typed):
            return machine
        return await self._patch(machine, {"annotations": {REKEY: None}})

    async def _drop_superseded(self, machine: Machine) -> None:
        uid = machine.metadata.uid
        # Only where a key was replaced: everything else costs no look at the Secret.
        replaced = [
            volume for volume in machine.status.disks if volume.key_id not in ("", "k1") and not volume.next_key_id
        ]
        secret = await self._keys.entries(uid) if replaced else None
        for volume in replaced if secret is not None else ():
            old = superseded(entries_of(secret or {}), volume)
            if old:
                await self._append(
                    machine, volume.volume, ",".join(old), "replaced by a newer key that opened the disk"
                )
                await self._keys.drop(uid, volume.volume, old)

    async def _bury(self, machine: JsonObject) -> None:
        """Destroy the keys of a Machine that is deleted, on the record first, and let it go."""
        finalizers = machine["metadata"].get("finalizers") or []
        if HOLDS_KEYS not in finalizers:
            return
        typed = view(machine, Machine)
        secret = await self._keys.entries(typed.metadata.uid)
        if secret is not None:
            for volume in volumes_in(entries_of(secret)):
                why = "its Machine was deleted: what is on the disk cannot be read any more"
                await self._append(typed, volume, "all", why)
            await self._keys.destroy(secret)
        with suppress(NotFound):
            others = [finalizer for finalizer in finalizers if finalizer != HOLDS_KEYS]
            await self._patch(machine, {"finalizers": others or None})

    async def _tell(self, machine: JsonObject) -> None:
        typed = view(machine, Machine)
        if not typed.status.key_thumbprint:
            return
        settings = pool_disk(self._confidential.get("", NAME), typed.status.pool)
        state, present = condition_of(typed, settings), condition(machine, CONDITION)
        before = (machine.get("status") or {}).get("conditions") or []
        conditions = self._stating(before, CONDITION, state)
        conditions = self._stating(conditions, RECOVERABLE, recoverable_of(typed, settings))
        if conditions == before:
            return
        doubtful = state is not None and state.reason in ("RolledBack", "RecordOlder", "Exchanged", "NotOpened")
        # Before the condition: a process that ends in between tells it twice, and never not at all.
        if state is not None and doubtful and (present or {}).get("reason") != state.reason:
            await self._events.warning(machine, f"Disk{state.reason}", state.message)
        await self._patch_status(machine, conditions)

    def _stating(self, conditions: list[JsonObject], kind: str, state: Condition | None) -> list[JsonObject]:
        """Conditions with one that says this, or without it."""
        if state is None:
            return [entry for entry in conditions if entry.get("type") != kind]
        return with_condition(
            conditions, kind=kind, status=state.status, reason=state.reason, message=state.message[:1024],
            now=self._clock.now(),
        )  # fmt: skip

    async def _append(self, machine: Machine, volume: str, keys: str, why: str) -> None:
        detail = {"volume": volume, "keys": keys, "why": why, "uid": machine.metadata.uid}
        who = machine.status.key_thumbprint or machine.metadata.name
        await self._record.append(RecordEntry(DESTROYED, who, f"machine/{machine.metadata.name}", detail=detail))

    async def _patch(self, machine: JsonObject, meta: JsonObject) -> JsonObject:
        patch = {"metadata": {"resourceVersion": machine["metadata"]["resourceVersion"], **meta}}
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _AS)

    async def _patch_status(self, machine: JsonObject, conditions: list[JsonObject]) -> None:
        version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": {"conditions": conditions}}
        name = object_name(machine).name
        await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
