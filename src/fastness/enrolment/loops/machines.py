"""Machines after enrolment: decisions go on the record, replaced ones are revoked, those that never come are swept.

* `spec.approval` is what an administrator wants; the condition `Approved` follows once the decision is on the record. The doors
  ask for both, so an approval without a trace lets nobody in; a quarantine needs no trace to count.
* A Machine that waits because something stood against its chip goes on when nothing does any more (`attestation.machine.chip`).
* Evidence in its name that is not its own is an Event, until a person settles it (`attestation.verdict.dispute`).
* `spec.pool` moves a Machine: that goes on the record, what it proved was for another pool, and tokens of before are dead.
* Of several Machines with one endorsement key (a reinstalled machine makes a new attestation key) only the newest that is
  approved stays; the others are revoked. It is worked out from all of them, so two that enrolled at the same instant end alike.
* A Machine that enrolled and never attested is deleted: a day after it was approved, a week if nobody approved it. Its key goes
  with it, and the machine may enrol again. A quarantined or revoked one stays until somebody deletes it.
* What such a one bars outlives it: a finalizer holds it until a Distrust says what newcomers wait on because of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from fastness.attestation.machine.chip import (
    AWAITING,
    BARRED,
    INDEX,
    awaiting_chip,
    barred_places,
    bars,
    kept_against,
    kept_bar,
    on_chip,
    standing_against,
    waits_for_bar_alone,
)
from fastness.attestation.machine.machine import (
    ENDORSEMENT_LABEL,
    POOL_LABEL,
    SUPERSEDED,
    approval_condition,
    replaced_by,
)
from fastness.attestation.machine.signed_status import is_disbelieved
from fastness.attestation.verdict.dispute import CONDITION as DISPUTED
from fastness.attestation.verdict.dispute import settled
from fastness.attestation.verdict.distrust import Distrusted, read_distrust
from fastness.attestation.verdict.machine_standing import moved, taken_away
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, labels_of, object_name, view, with_condition
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, MACHINE, SENT, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

NEVER_ATTESTED: Final = timedelta(days=1)
NEVER_APPROVED: Final = timedelta(days=7)
_AS: Final = WriteOptions(manager="machines")
_STATUS: Final = WriteOptions(manager="machines", subresource="status")
_WHAT: Final = {
    "True": "approve", "Quarantined": "quarantine", "Pending": "suspend", CHIP_BARRED: "suspend",
}  # fmt: skip


class Machines:
    """Keeps Machines in step with what was decided about them."""

    name = "machines"
    writes: Sequence[Resource] = (MACHINE.resource, DISTRUST.resource, AUDIT_BATCH.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE.resource, unread=SENT),
            Source(MACHINE.resource, self._waiting_for_chip_of, unread=SENT),
            Source(DISTRUST.resource, self._waiting_for_kept),
        )
        self._cluster = cluster
        self._machines = informers.of(MACHINE.resource, indexers={INDEX: on_chip, AWAITING: awaiting_chip})
        self._distrusts = informers.of(DISTRUST.resource)
        self._record = record
        self._clock = clock
        self._events = Recorder(cluster, self.name, clock)
        self._told: dict[str, str] = {}

    def _waiting_for_chip_of(self, machine: Object) -> Iterable[ObjectName]:
        """The Machines that wait for the chip of a Machine: what stood against it may have ended."""
        chips = on_chip(machine)
        return [object_name(waiting) for chip in chips for waiting in self._machines.by_index(AWAITING, chip)]

    def _waiting_for_kept(self, distrust: Object) -> Iterable[ObjectName]:
        """The Machines that wait for a chip that a Machine which is gone barred: the bar may have been taken back."""
        chip = ((distrust.get("spec") or {}).get("bars") or {}).get("chip")
        return [object_name(waiting) for waiting in self._machines.by_index(AWAITING, chip)] if chip else []

    async def reconcile(self, key: ObjectName) -> Done:
        """Decide about one Machine; raises RecordError, Conflict, which are tried again."""
        try:
            machine = await self._cluster.get(MACHINE.resource, key.name, key.namespace)
        except NotFound:
            return GONE
        if key.namespace != NAMESPACE:
            return Done()
        if is_being_deleted(machine):
            return await self._bury(machine)
        if view(machine, Machine).status.key_thumbprint:
            machine = await self._free_chip(machine)
            machine = await self._follow_approval(machine)
            machine = await self._follow_move(machine)
            machine = await self._follow_disputes(machine)
            machine = await self._revoke_replaced(machine)
            machine = await self._hold(machine)
        return await self._sweep(machine)

    async def _free_chip(self, machine: JsonObject) -> JsonObject:
        """End the wait of a machine against whose chip nothing stands any more; the approval that it had counts again."""
        if not waits_for_bar_alone(machine):
            return machine
        chip = machine["status"]["awaitedChip"]
        peers = (view(peer, Machine) for peer in self._machines.by_index(INDEX, chip))
        if (standing_against(peers) or kept_against(chip, self._kept())) is not None:
            return machine
        patch = {
            "metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]}, "status": {"awaitedChip": None},
        }  # fmt: skip
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _follow_approval(self, machine: JsonObject) -> JsonObject:
        conditions = approval_condition(machine, self._clock.now())
        if conditions == ((machine.get("status") or {}).get("conditions") or []):
            return machine
        decided = next(entry for entry in conditions if entry["type"] == "Approved")
        what = _WHAT["True" if decided["status"] == "True" else decided["reason"]]
        spec = machine["spec"]
        chip = spec.get("chip") or "" if what == "approve" else ""
        # On the record first: if this process ends here the entry is written twice, which is better than an approval without one.
        await self._append(f"machine-{what}", machine, reason=spec.get("approvalReason") or "", chip=chip)
        # Whoever comes out of quarantine proves itself anew: tokens of before stay dead.
        if what != "quarantine":
            return await self._set(machine, conditions)
        epoch = int(machine["status"].get("epoch") or 0) + 1
        why = "the machine is in quarantine"
        return await self._set(machine, taken_away(conditions, "Quarantined", why, self._clock.now()), epoch=epoch)

    async def _follow_move(self, machine: JsonObject) -> JsonObject:
        """Move a machine to the pool that somebody chose for it. Labels of its node never do that."""
        typed = view(machine, Machine)
        pool = typed.spec.pool
        if not pool or pool == typed.status.pool:
            return machine
        await self._append("machine-moved", machine, reason=typed.spec.pool_reason, to=pool)
        conditions = (machine.get("status") or {}).get("conditions") or []
        status = moved(typed, conditions, pool, self._clock.now())
        patch = {"metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]}, "status": status}
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _follow_disputes(self, machine: JsonObject) -> JsonObject:
        """Tell of evidence that is not the machine's, and end what a person settled."""
        change = settled(machine, self._clock.now())
        if change:
            patch = {"metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]}, "status": change}
            name = object_name(machine).name
            machine = await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
        dispute, uid = condition(machine, DISPUTED) or {}, machine["metadata"]["uid"]
        newest = max((str(entry["since"]) for entry in machine["status"].get("disputes") or ()), default="")
        if not newest:
            self._told.pop(uid, None)
        elif newest > self._told.get(uid, ""):
            self._told[uid] = newest
            await self._events.warning(machine, str(dispute.get("reason")), str(dispute.get("message")))
        return machine

    async def _revoke_replaced(self, machine: JsonObject) -> JsonObject:
        """Revoke the machine if a newer one has its endorsement key, or the older ones if it is the newest."""
        label = labels_of(machine).get(ENDORSEMENT_LABEL)
        if not label:
            return machine
        scope = Scope(NAMESPACE, labels=f"{ENDORSEMENT_LABEL}={label}")
        peers = (await self._cluster.list(MACHINE.resource, scope)).items
        # One TPM is one machine: an older attestation key that still worked would let a copied disk go on beside the new
        # installation.
        for old, new in replaced_by(peers):
            await self._append("machine-superseded", old, by=object_name(new).name)
            message = f"its TPM enrolled a new key as {object_name(new).name}"
            conditions = with_condition(
                old["status"].get("conditions") or [], kind="Revoked", status="True", reason=SUPERSEDED,
                message=message, now=self._clock.now(),
            )  # fmt: skip
            changed = await self._set(old, taken_away(conditions, SUPERSEDED, message, self._clock.now()))
            if object_name(old) == object_name(machine):
                machine = changed
        return machine

    async def _sweep(self, machine: JsonObject) -> Done:
        """Delete a machine that never came, or come back when it may be."""
        typed = view(machine, Machine)
        standing = membership_of(typed)
        ours = POOL_LABEL in labels_of(machine) or bool(typed.status.key_thumbprint)
        came = typed.status.last_attested or typed.status.overridden_until
        if is_disbelieved(machine):
            return Done()  # it may have proved itself: nobody knows before it is put back
        if not ours or came or standing in (Membership.QUARANTINED, Membership.REVOKED):
            return Done()
        left = (_end(machine, standing) - self._clock.now()).total_seconds()
        if left > 0:
            return Done(again_after=left)
        await self._append("machine-swept", machine)
        meta = machine["metadata"]
        # As it was looked at: a machine that attests in this very moment must not be deleted as one that never came.
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        try:
            await self._cluster.delete(MACHINE.resource, meta["name"], NAMESPACE, options)
        except (NotFound, Conflict):
            return Done(again_after=1.0)
        return GONE

    def _kept(self) -> Iterable[Distrusted]:
        """The Distrusts that stand now."""
        read = (read_distrust(obj) for obj in self._distrusts.list())
        now = self._clock.now()
        return (entry for entry in read if entry is not None and entry.live(now))

    async def _hold(self, machine: JsonObject) -> JsonObject:
        """Keep a Machine that bars newcomers from going without a trace, and let one go that does not any more."""
        finalizers = machine["metadata"].get("finalizers") or []
        if bars(view(machine, Machine)) == (BARRED in finalizers):
            return machine
        held = (
            [*finalizers, BARRED]
            if BARRED not in finalizers
            else [finalizer for finalizer in finalizers if finalizer != BARRED]
        )
        return await self._finalize(machine, held)

    async def _bury(self, machine: JsonObject) -> Done:
        """Write down what a deleted Machine bars, on the record and as a Distrust, and let it go."""
        finalizers = machine["metadata"].get("finalizers") or []
        if BARRED not in finalizers:
            return Done()
        typed = view(machine, Machine)
        if bars(typed):
            bar = kept_bar(typed)
            await self._append("machine-deleted", machine, kept=bar["metadata"]["name"], **barred_places(typed))
            # Before the finalizer goes: a crash in between leaves a bar and a Machine, never neither.
            with suppress(AlreadyExists):
                await self._cluster.create(DISTRUST.resource, bar, _AS)
        with suppress(NotFound):
            await self._finalize(machine, [finalizer for finalizer in finalizers if finalizer != BARRED])
        return Done()

    async def _finalize(self, machine: JsonObject, finalizers: list[str]) -> JsonObject:
        version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
        patch = {"metadata": {**version, "finalizers": finalizers or None}}
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _AS)

    async def _set(self, machine: JsonObject, conditions: list[JsonObject], **more: int) -> JsonObject:
        patch = {
            "metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]},
            "status": {"conditions": conditions, **more},
        }
        name = object_name(machine).name
        return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _append(self, what: str, machine: JsonObject, **detail: str) -> None:
        status = machine.get("status") or {}
        details = {"pool": status.get("pool") or "", "uid": machine["metadata"]["uid"], **detail}
        facts = {name: value for name, value in details.items() if value}
        name = object_name(machine).name
        await self._record.append(
            RecordEntry(what, status.get("keyThumbprint") or name, resource=f"machine/{name}", detail=facts)
        )


def _end(machine: JsonObject, standing: Membership) -> datetime:
    """When a machine that has not attested is given up."""
    made = machine["metadata"]["creationTimestamp"]
    approved = condition(machine, "Approved")
    if standing is Membership.APPROVED and approved is not None:
        return datetime.fromisoformat(approved.get("lastTransitionTime") or made) + NEVER_ATTESTED
    return datetime.fromisoformat(made) + NEVER_APPROVED
