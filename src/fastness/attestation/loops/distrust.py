"""Distrusts: whom each one hits is counted, and the machines say so.

Doors ask the Distrusts themselves, so tokens stop without this loop. It makes the consequence last and visible:

* A machine that is named by identity (machine, key, tenant) gets the condition Revoked; the verifier, enrolment and the rollout
  of nodes follow from that. One that proved something distrusted (image, generation, TCB) loses Attested until it proves better.
* Either way its epoch rises in the same write, so that no token of before counts again when the Distrust has ended.
* Beginning, end and deletion of a Distrust go on the record; the end lifts what it did and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from fastness.attestation.verdict.distrust import DISTRUSTED, Distrusted, about_machine, against, read_distrust
from fastness.attestation.verdict.machine_standing import taken_away
from fastness.formats.words import counted
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, object_name, view, with_condition
from fastness.kinds.trusted_execution.machine import MACHINE, SENT, Machine
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", "*")
GATHER_SECONDS: Final = 1.0
FINALIZER: Final = "fastness.dev/on-the-record"
_AS: Final = WriteOptions(manager="distrust")
_STATUS: Final = WriteOptions(manager="distrust", subresource="status")


def _one(_: object) -> Iterable[ObjectName]:
    return (KEY,)


class Distrusting:
    """Makes machines show what stands against them.

    A machine that changes is looked at alone; all of them only when what is distrusted changes. Whom each Distrust hits is kept
    in memory, so that counting costs nothing while machines attest again.
    """

    name = "distrust"
    writes: Sequence[Resource] = (DISTRUST.resource, MACHINE.resource, AUDIT_BATCH.resource)

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(DISTRUST.resource, _one),
            Source(MACHINE.resource, unread=SENT),
            Source(MACHINE.resource, self._recount, delay=GATHER_SECONDS, unread=SENT),
        )
        self._cluster = cluster
        self._distrusts = informers.of(DISTRUST.resource)
        self._machines = informers.of(MACHINE.resource)
        self._record = record
        self._clock = clock
        self._hits: dict[str, tuple[str, ...]] = {}
        self._applied: list[Distrusted] | None = None

    def _recount(self, _: object) -> Iterable[ObjectName]:
        return (KEY,) if self._hits or self._applied else ()

    async def reconcile(self, key: ObjectName) -> Done:
        """One machine; or, when what is distrusted changed, all of them, and the counts."""
        now = self._clock.now()
        read = [entry for entry in map(read_distrust, self._distrusts.list()) if entry is not None]
        live = [entry for entry in read if entry.live(now)]
        if key != KEY:
            return Done() if await self._look(key, live, now) else Done(again_after=0.5)
        late = False
        if live != self._applied:
            done = [await self._look(object_name(machine), live, now) for machine in self._machines.list()]
            late = not all(done)
            self._applied = None if late else live
        for obj in self._distrusts.list():
            if is_being_deleted(obj):
                await self._end(obj)
            else:
                await self._count(obj, now)
        ends = [(entry.expires - now).total_seconds() for entry in live if entry.expires is not None]
        return Done(again_after=0.5 if late else max(0.1, min(ends)) if ends else None)

    async def _look(self, key: ObjectName, live: Sequence[Distrusted], now: datetime) -> bool:
        """One machine; False when it changed meanwhile."""
        machine = self._machines.get(*key)
        if machine is None or is_being_deleted(machine) or not (machine.get("status") or {}).get("keyThumbprint"):
            self._hits.pop(key.name, None)
            return True
        hits = against(live, about_machine(view(machine, Machine)), now)
        if hits:
            self._hits[key.name] = tuple(hit.name for hit in hits)
        else:
            self._hits.pop(key.name, None)
        return await self._mark(machine, hits, now)

    async def _mark(self, machine: JsonObject, hits: Sequence[Distrusted], now: datetime) -> bool:
        """Write what a machine must show; False when it changed meanwhile."""
        status = wanted_status(machine, hits, now)
        if status is None:
            return True
        what = "machine-distrusted" if hits else "machine-trusted-again"
        name = object_name(machine).name
        names = ", ".join(hit.name for hit in hits) or _formerly(machine)
        why = {"by": names[:256], **({"target": hits[0].line[:256]} if hits else {})}
        await self._record.append(RecordEntry(what, machine["status"]["keyThumbprint"], f"machine/{name}", detail=why))
        version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": status}
        try:
            await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
        except NotFound:
            return True
        except Conflict:
            return False
        return True

    async def _end(self, obj: JsonObject) -> None:
        """Let a Distrust go, once that is on the record."""
        finalizers = obj["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            return
        name = object_name(obj).name
        await self._record.append(RecordEntry("distrust-deleted", name, f"distrust/{name}", detail=_detail(obj)))
        left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
        meta = {"finalizers": left or None, "resourceVersion": obj["metadata"]["resourceVersion"]}
        with suppress(NotFound, Conflict):
            await self._cluster.patch(DISTRUST.resource, name, {"metadata": meta}, PatchType.MERGE, "", _AS)

    async def _count(self, obj: JsonObject, now: datetime) -> None:
        read = read_distrust(obj)
        if read is None:
            return
        live, count = read.live(now), sum(read.name in names for names in self._hits.values())
        before = obj.get("status") or {}
        status: JsonObject = {
            "target": read.line[:1024], "affected": {"machines": count},
            "observedGeneration": obj["metadata"].get("generation"),
            "conditions": with_condition(
                before.get("conditions") or [], kind="Applied", status=str(live), reason="Applied" if live else "Expired",
                message=f"{counted(count, 'machine is', 'machines are')} refused because of it" if live else "it has ended",
                now=now,
            ),
        }  # fmt: skip
        if all(before.get(name) == value for name, value in status.items()):
            return
        if (condition(obj, "Applied") or {}).get("status") != str(live):
            what = "distrust-begins" if live else "distrust-ends"
            await self._record.append(RecordEntry(what, read.name, f"distrust/{read.name}", detail=_detail(obj)))
        try:
            if FINALIZER not in (obj["metadata"].get("finalizers") or []):
                meta = {"finalizers": [*(obj["metadata"].get("finalizers") or []), FINALIZER]}
                await self._cluster.patch(DISTRUST.resource, read.name, {"metadata": meta}, PatchType.MERGE, "", _AS)
            await self._cluster.patch(DISTRUST.resource, read.name, {"status": status}, PatchType.MERGE, "", _STATUS)
        except NotFound:
            return


def _formerly(machine: JsonObject) -> str:
    """The Distrust that a machine was revoked by, as its condition says."""
    message = str((condition(machine, "Revoked") or {}).get("message") or "")
    return message.removeprefix("Distrust ").partition(":")[0] if message.startswith("Distrust ") else ""


def _detail(obj: JsonObject) -> dict[str, str]:
    status, spec = obj.get("status") or {}, obj["spec"]
    read = read_distrust({**obj, "metadata": {"name": obj["metadata"]["name"]}})
    target = read.line if read is not None else str(status.get("target", ""))
    return {"target": target[:256], "reason": str(spec.get("reason", ""))[:256]}


def wanted_status(machine: JsonObject, hits: Sequence[Distrusted], now: datetime) -> JsonObject | None:
    """The patch of the status of a machine that these Distrusts hit; None when it shows that already."""
    status = machine.get("status") or {}
    conditions, epoch = status.get("conditions") or [], int(status.get("epoch") or 0)
    revoked, attested = condition(machine, "Revoked") or {}, condition(machine, "Attested") or {}
    who = next((hit for hit in hits if hit.revokes), None)
    ours = revoked.get("status") == "True" and revoked.get("reason") == DISTRUSTED
    if who is not None and revoked.get("status") != "True":
        message = f"Distrust {who.name}: {who.reason}"
        changed = with_condition(
            conditions, kind="Revoked", status="True", reason=DISTRUSTED, message=message[:1024], now=now
        )
        return {"conditions": taken_away(changed, "Revoked", message, now), "epoch": epoch + 1}
    if who is None and ours:
        changed = with_condition(
            conditions, kind="Revoked", status="False", reason="TrustedAgain", message="nothing stands against it", now=now
        )  # fmt: skip
        return {"conditions": changed}
    if hits and who is None and attested.get("status") == "True":
        message = f"Distrust {hits[0].name}: {hits[0].line}"
        changed = with_condition(
            conditions, kind="Attested", status="False", reason=DISTRUSTED, message=message[:1024], now=now
        )
        return {"conditions": changed, "epoch": epoch + 1}
    return None
