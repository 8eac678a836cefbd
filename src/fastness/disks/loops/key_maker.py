"""Keys are made where the vault is: a loop of every broker, over the Machines that shall have an encrypted volume.

    approved in a pool with a volume, never attested, held by the finalizer    → key k1, `status.disks` says so
    annotation `fastness.dev/rekey-disk: <volume>`                              → the next key beside it; both open the next boot

* A Machine is held by its finalizer first (`key_life`): otherwise one that is deleted at this moment would leave a key behind.
* Any number of brokers may run: a key has a name that all of them work out alike, and the first to write it wins.
* The key is there before the Machine says so. A process that ends in between leaves a key that the next look finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.disks.keyring import is_rekeyed, key_ids, next_id
from fastness.disks.live.key_store import DiskKeys, entries_of
from fastness.disks.volumes import Settings, is_pinned, lacks_key, pool_disk, volume_of
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name, rfc3339, view
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, MACHINE, REKEY, SENT, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

_STATUS: Final = WriteOptions(manager="disk-keys", subresource="status")


class DiskKeyMaker:
    """Makes keys of disks."""

    name = "disk-key-maker"
    writes: Sequence[Resource] = (MACHINE.resource, SECRET.resource)

    def __init__(self, cluster: Cluster, informers: Informers, keys: DiskKeys, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE.resource, unread=SENT),
            Source(CONFIDENTIAL_CLUSTER.resource, self._all_machines),
        )
        self._cluster = cluster
        self._machines = informers.of(MACHINE.resource)
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._keys = keys
        self._record = record
        self._clock = clock

    def _all_machines(self, _cluster: Object) -> Iterable[ObjectName]:
        """What a pool's machines have for a disk may be another now."""
        return [object_name(machine) for machine in self._machines.list()]

    async def reconcile(self, key: ObjectName) -> Done:
        """Make the key that one Machine lacks, or the next one; raises RecordError, Conflict, which are tried again."""
        cached = self._machines.get(key.namespace, key.name)
        if key.namespace != NAMESPACE or cached is None:
            return GONE
        # From the cache first: nearly all looks end here, and cost no request.
        if not self._is_due(cached):
            return Done()
        try:
            machine = await self._cluster.get(MACHINE.resource, key.name, key.namespace)
        except NotFound:
            return GONE
        if self._is_due(machine):
            await self._make(machine)
        return Done()

    def _is_due(self, machine: Object) -> bool:
        if is_being_deleted(machine) or HOLDS_KEYS not in (machine["metadata"].get("finalizers") or ()):
            return False
        typed = view(machine, Machine)
        return lacks_key(typed, self._settings(typed)) or bool(self._volume_to_rekey(machine, typed))

    def _settings(self, machine: Machine) -> Settings | None:
        return pool_disk(self._confidential.get("", NAME), machine.status.pool)

    def _volume_to_rekey(self, machine: Object, typed: Machine) -> str:
        volume = volume_of(typed, annotations_of(machine).get(REKEY, ""))
        # Not while the disk may have to be looked at by a person: a second key would open the copy that is in doubt, too.
        # Nor where the Clevis pin opens it: it cannot change the key of a disk, and would be shut out by another one.
        if volume is None or is_rekeyed(volume) or volume.doubtful is not None or is_pinned(typed):
            return ""
        return volume.volume if membership_of(typed) is Membership.APPROVED else ""

    async def _make(self, machine: JsonObject) -> None:
        typed = view(machine, Machine)
        uid, settings = typed.metadata.uid, self._settings(typed)
        rekeyed = self._volume_to_rekey(machine, typed)
        volume = rekeyed or (settings.volume if settings else "")
        entries = entries_of(await self._keys.entries(uid) or {})
        recorded = volume_of(typed, volume)
        before = [recorded.key_id] if recorded is not None else []
        unused = [key_id for key_id in key_ids(entries, volume) if key_id not in before]
        # One that was made and not written on the Machine before a process ended is the next one.
        key_id = unused[0] if unused else next_id([*key_ids(entries, volume), *before])
        if not unused:
            what = "disk-key-replaced" if rekeyed else "disk-key-made"
            detail = {"volume": volume, "key": key_id, "uid": uid, **({"pin": "Clevis"} if is_pinned(typed) else {})}
            who = typed.status.key_thumbprint
            await self._record.append(RecordEntry(what, who, f"machine/{typed.metadata.name}", detail=detail))
            await self._keys.make(uid, volume, key_id, pin=is_pinned(typed))
        await self._tell(machine, volume, key_id, rekeyed=bool(rekeyed))

    async def _tell(self, machine: JsonObject, volume: str, key_id: str, *, rekeyed: bool) -> None:
        made = rfc3339(self._clock.now())
        held = (machine.get("status") or {}).get("disks") or []
        if rekeyed:
            news = {"nextKeyId": key_id, "nextKeyMade": made}
            disks = [{**entry, **news} if entry["volume"] == volume else entry for entry in held]
        else:
            disks = [*held, {"volume": volume, "state": "Pending", "keyId": key_id, "keyMade": made}]
        version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": {"disks": disks}}
        name = object_name(machine).name
        await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
