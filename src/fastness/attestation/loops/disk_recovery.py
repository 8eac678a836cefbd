"""Two approvers have the key of a disk: a loop of every broker, which has the vault, over Machines that carry a statement.

    annotation `fastness.dev/recover-disk`  → judged (`attestation.verdict.recovery`) → on the record → sealed to the key that the
                                              statement names → `status.disks[].recovery`, until the annotation goes

* The record comes first: who agreed, each on a line, and that the key is given; a refusal with its code. The person who wrote the
  annotation is on the record by the act itself (`attestation.admission.acts`).
* The answer opens with a key that only the person has who asked. It goes from the Machine when the annotation does, and after ten
  minutes in any case: what nobody fetched must not lie about.
* An Event says that it happened, and the Machine goes on saying so. The machine itself notices nothing, and its key stays good
  until the volume gets a new one.
* Any number of brokers may run: the answer is tied to the version of the Machine that was read, so one of them gives it. One that
  loses leaves entries beside those of the winner, with the same statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import read_appointments
from fastness.attestation.verdict.recovery import (
    BadRecovery,
    Recovery,
    agreed_recovery,
    concerned_volume,
    digest_of,
    issue_time,
)
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.jwe import sealed
from fastness.disks.keyring import answer, next_opening
from fastness.disks.live.key_store import DiskKeys
from fastness.disks.volumes import pool_disk
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name, rfc3339, view
from fastness.kinds.trusted_execution.disks import RECOVER
from fastness.kinds.trusted_execution.machine import MACHINE, SENT, Machine
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

AGREED: Final = "disk-recovery-agreed"
RECOVERED: Final = "disk-recovered"
REFUSED: Final = "disk-recovery-refused"
FETCHED_WITHIN: Final = timedelta(minutes=10)
_STATUS: Final = WriteOptions(manager="disk-recovery", subresource="status")


class DiskRecovery:
    """Answers statements that approvers signed."""

    name = "disk-recovery"
    writes: Sequence[Resource] = (MACHINE.resource, AUDIT_BATCH.resource, EVENTS)

    def __init__(
        self, cluster: Cluster, informers: Informers, keys: DiskKeys, record: Record, clock: Clock, entropy: RandomBytes
    ) -> None:
        self.sources: Sequence[Source] = (Source(MACHINE.resource, unread=SENT),)
        self._cluster = cluster
        self._machines = informers.of(MACHINE.resource)
        self._keys = keys
        self._record = record
        self._clock = clock
        self._entropy = entropy
        self._events = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Look at one Machine; raises RecordError, Conflict, BrokenSeal, which are tried again."""
        cached = self._machines.get(key.namespace, key.name)
        if key.namespace != NAMESPACE or cached is None:
            return GONE
        # From the cache first: nearly all looks end here, and cost no request.
        if RECOVER not in annotations_of(cached) and not _answers(cached):
            return Done()
        try:
            machine = await self._cluster.get(MACHINE.resource, key.name, key.namespace)
        except NotFound:
            return GONE
        text = annotations_of(machine).get(RECOVER)
        if text is None or is_being_deleted(machine):
            await self._take_back(machine)
            return Done()
        answered = _answered(machine, digest_of(text))
        if answered is None:
            await self._answer(machine, text)
            return Done(again_after=FETCHED_WITHIN.total_seconds())
        return await self._grown_old(machine, answered)

    async def _answer(self, machine: JsonObject, text: str) -> None:
        typed = view(machine, Machine)
        try:
            recovery = await self._judged(typed, text)
            await self._give(machine, typed, recovery, text)
        except BadRecovery as error:
            await self._refuse(machine, typed, text, error)

    async def _judged(self, machine: Machine, text: str) -> Recovery:
        # As the API has them and not as a cache does: whom it was that could agree is what all of this rests on.
        cluster = await self._cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        try:
            appointed = await self._cluster.get(CONFIG_MAP.resource, APPOINTMENTS, NAMESPACE)
        except NotFound:
            appointed = {}
        return agreed_recovery(text, cluster, machine, read_appointments(appointed).counting, self._clock.now())

    async def _give(self, machine: JsonObject, typed: Machine, recovery: Recovery, text: str) -> None:
        """Write it down, and then seal the keys to whoever asked; raises BadRecovery, RecordError, ApiError."""
        keys = await self._keys.read(typed.metadata.uid, recovery.volume)
        if not keys:
            raise BadRecovery("disk-key-destroyed", f"the key of {recovery.volume} was destroyed")
        ids, now = ",".join(key_id for key_id, _ in keys), self._clock.now()
        detail = {
            "volume": recovery.volume, "keys": ids, "reason": recovery.reason, "statement": digest_of(text),
            "until": rfc3339(recovery.expires),
        }  # fmt: skip
        where = f"machine/{typed.metadata.name}"
        for person in recovery.by:
            await self._record.append(RecordEntry(AGREED, person, where, detail=detail))
        await self._record.append(RecordEntry(RECOVERED, recovery.people, where, detail=detail))
        cluster = await self._cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        volume = next(entry for entry in typed.status.disks if entry.volume == recovery.volume)
        # The number of no release: nothing that is opened with this answer gives standing.
        opening = next_opening(volume, now, self._entropy)
        content = answer(volume, keys, pool_disk(cluster, typed.status.pool), opening)
        told = {
            "at": rfc3339(now), "by": recovery.people[:256], "reason": recovery.reason, "keys": ids,
            "issued": issue_time(recovery.issued), "statement": digest_of(text),
            "answer": sealed(content, recovery.recipient, self._entropy).decode(),
        }  # fmt: skip
        await self._events.warning(machine, "DiskRecovered", _given(recovery, typed.metadata.name))
        await self._write(machine, recovery.volume, told)

    async def _refuse(self, machine: JsonObject, typed: Machine, text: str, error: BadRecovery) -> None:
        volume = concerned_volume(text, typed)
        detail = {"code": error.code, "why": str(error), "statement": digest_of(text), "volume": volume}
        await self._record.append(
            RecordEntry(REFUSED, typed.metadata.name, f"machine/{typed.metadata.name}", detail=detail)
        )
        if not volume:
            return
        before = dict(_recovery(machine, volume))
        before.pop("answer", None)
        refused = {"statement": digest_of(text), "refused": error.code, "message": str(error)[:1024]}
        await self._write(machine, volume, {**before, **refused})

    async def _grown_old(self, machine: JsonObject, answered: JsonObject) -> Done:
        if not answered.get("answer"):
            return Done()
        left = datetime.fromisoformat(answered["at"]) + FETCHED_WITHIN - self._clock.now()
        if left > timedelta(0):
            return Done(again_after=max(left.total_seconds(), 1.0))
        await self._take_back(machine)
        return Done()

    async def _take_back(self, machine: JsonObject) -> None:
        """Leave no answer on a Machine: it was taken, or nobody came for it."""
        disks = [
            {**entry, "recovery": {name: value for name, value in entry["recovery"].items() if name != "answer"}}
            if (entry.get("recovery") or {}).get("answer")
            else entry
            for entry in _disks(machine)
        ]
        if disks != _disks(machine):
            await self._patch(machine, disks)

    async def _write(self, machine: JsonObject, volume: str, told: JsonObject) -> None:
        disks = [{**entry, "recovery": told} if entry["volume"] == volume else entry for entry in _disks(machine)]
        await self._patch(machine, disks)

    async def _patch(self, machine: JsonObject, disks: list[JsonObject]) -> None:
        version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": {"disks": disks}}
        name = object_name(machine).name
        await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)


def _given(recovery: Recovery, machine: str) -> str:
    """What everybody should know, and do."""
    return (
        f"the key of {recovery.volume} was given to whom {recovery.people} named: {recovery.reason}. Give the volume a new one "
        f"when this is over: fastness machine disk rekey {machine} {recovery.volume}"
    )


def _disks(machine: Object) -> list[JsonObject]:
    return list((machine.get("status") or {}).get("disks") or ())


def _recovery(machine: Object, volume: str) -> JsonObject:
    return next((entry.get("recovery") or {} for entry in _disks(machine) if entry["volume"] == volume), {})


def _answered(machine: Object, statement: str) -> JsonObject | None:
    """What was answered to a statement, whether it was given or refused."""
    told = ((entry.get("recovery") or {}) for entry in _disks(machine))
    return next((entry for entry in told if entry.get("statement") == statement), None)


def _answers(machine: Object) -> bool:
    return any((entry.get("recovery") or {}).get("answer") for entry in _disks(machine))
