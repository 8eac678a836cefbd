"""Statuses of Machines that nobody of the control plane wrote: told, recorded, and put back.

    not signed by us ─ entry of the record ─ Event ─ remembered as it was before? ─ yes ─ put back, signed again
                                                                                  └ no ─ condition Believed=False, until a person
                                                                                         vouches for it, or deletes the Machine

Doors and loops take such a machine for one that never attested without any help of this loop (`attestation.live.statuses`).
Here people learn of it, and what can be mended is.

* Who writes into one again and again is on the record once a minute for each machine, not each time.
* `spec.vouched` is the digest of the status that a person looked at. It is signed as it stands if it is still that one, on the
  record with the reason, and the digest is taken away: the same status put there later is not vouched for.
* A signature by a key that is about to end is made anew: the Machine of a machine that is off for months stays believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.live.statuses import Doubted, Statuses
from fastness.attestation.machine.signed_status import (
    BELIEVED,
    FIELD,
    REASON,
    message,
    signature_of,
    uid_of,
    vouched_digest,
)
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, is_being_deleted, object_name, with_condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

QUIET: Final = timedelta(minutes=1)
LOOK: Final = timedelta(days=1)
_AS: Final = WriteOptions(manager="machine-statuses")
_STATUS: Final = WriteOptions(manager="machine-statuses", subresource="status")


class MachineStatuses:
    """Keeps the statuses of Machines ours."""

    name = "machine-statuses"
    writes: Sequence[Resource] = (MACHINE.resource, EVENTS, AUDIT_BATCH.resource)

    def __init__(
        self, cluster: Cluster, informers: Informers, record: Record, clock: Clock, statuses: Statuses
    ) -> None:
        self.sources: Sequence[Source] = (Source(MACHINE.resource),)
        self._cluster = cluster
        self._record = record
        self._clock = clock
        self._statuses = statuses
        self._recorder = Recorder(cluster, self.name, clock)
        self._entered: dict[str, datetime] = {}

    async def reconcile(self, key: ObjectName) -> Done:
        """One look at one Machine; raises RecordError, Conflict, which are tried again."""
        if key.namespace != NAMESPACE:
            return Done()
        try:
            machine = await self._cluster.get(MACHINE.resource, key.name, key.namespace)
        except NotFound:
            self._entered.pop(key.name, None)
            return GONE
        doubted = self._statuses.doubted(key.name)
        if is_being_deleted(machine):
            return Done()
        if doubted is None:
            return await self._renewed(machine)
        if doubted.machine["spec"].get("vouched") == vouched_digest(doubted.machine):
            return await self._vouched(doubted.machine)
        await self._tell(doubted)
        with suppress(Invalid):  # a field that is written once, and was not before: it cannot be taken away again
            if doubted.before is not None:
                await self._write(doubted.machine, await self._signed(doubted.machine, doubted.before["status"]))
                return Done()
        await self._show(doubted)
        return Done()

    async def _renewed(self, machine: JsonObject) -> Done:
        """Take the word of a person away that has done its work; sign anew what a key signed that is about to end."""
        if machine["spec"].get("vouched"):
            version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"vouched": None, "vouchedReason": None}}
            name = object_name(machine).name
            machine = await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _AS)
        signature = signature_of(machine)
        if signature is not None and await self._statuses.ends(signature):
            await self._write(machine, await self._signed(machine, machine["status"]))
        return Done(again_after=LOOK.total_seconds())

    async def _vouched(self, machine: JsonObject) -> Done:
        """Sign a status that a person vouches for, as it stands."""
        status = machine["status"]
        conditions = [entry for entry in status.get("conditions") or () if entry.get("type") != BELIEVED]
        reason = str(machine["spec"].get("vouchedReason") or "")
        await self._append("machine-status-vouched", machine, reason=reason, digest=machine["spec"]["vouched"])
        await self._write(machine, await self._signed(machine, {**status, "conditions": conditions}))
        return Done(again_after=0.0)

    async def _tell(self, doubted: Doubted) -> None:
        """Say it on the record and as an Event, not more often than once in a while."""
        name, now = object_name(doubted.machine).name, self._clock.now()
        last = self._entered.get(name)
        if last is not None and timedelta() <= now - last < QUIET:
            return
        await self._append("machine-status-refused", doubted.machine, doubt=str(doubted.doubt))
        self._entered[name] = now
        about = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, **doubted.machine}
        await self._recorder.warning(about, REASON, message(doubted.doubt))

    async def _show(self, doubted: Doubted) -> None:
        """Say it where people look, in the status that nobody believes; no signature makes ours of it."""
        machine = doubted.machine
        status = machine.get("status") or {}
        conditions = with_condition(
            status.get("conditions") or [], kind=BELIEVED, status="False", reason=REASON, message=message(doubted.doubt),
            now=self._clock.now(),
        )  # fmt: skip
        shown_status = {"conditions": conditions, "standing": "Waiting", "standingReason": REASON}
        if any(status.get(name) != value for name, value in shown_status.items()):
            await self._patch(machine, {**shown_status, FIELD: status.get(FIELD)})

    async def _signed(self, machine: JsonObject, status: JsonObject) -> JsonObject:
        return await self._statuses.signed(machine, {name: value for name, value in status.items() if name != FIELD})

    async def _write(self, machine: JsonObject, status: JsonObject) -> JsonObject:
        return await self._patch(machine, _replacing(machine.get("status") or {}, status))

    async def _patch(self, machine: JsonObject, status: JsonObject) -> JsonObject:
        patch = {"metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]}, "status": status}
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _append(self, what: str, machine: JsonObject, **detail: str) -> None:
        name = object_name(machine).name
        facts = {"uid": uid_of(machine), **{key: value for key, value in detail.items() if value}}
        await self._record.append(RecordEntry(what, name, resource=f"machine/{name}", detail=facts))


def _replacing(old: JsonObject, new: JsonObject) -> JsonObject:
    """The merge patch that makes one object another, with nothing left of what it was."""
    gone: dict[str, Any] = dict.fromkeys(name for name in old if name not in new)
    return gone | {
        name: _replacing(old[name], value) if isinstance(value, dict) and isinstance(old.get(name), dict) else value
        for name, value in new.items()
    }
