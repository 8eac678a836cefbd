"""The status of the ConfidentialCluster: counts of machines, and conditions that tell the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.controllers.engine.controller import GONE, Done, Source
from fastness.domain.attestation.alarms import newest_success, override_said, verifying
from fastness.domain.attestation.anchors import accepted_evidence
from fastness.domain.attestation.clusterstatus import conditions_of, counted, interval_of
from fastness.domain.attestation.collateralstate import freshness
from fastness.domain.attestation.values import ValueBook
from fastness.model.fastness_dev.audit import AUDIT_BATCH
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.model.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.model.kind import JsonObject, Resource
from fastness.model.objects import ObjectName, condition, object_name, view, with_condition
from fastness.model.trusted_execution.approvals import APPROVED_IMAGE
from fastness.model.trusted_execution.machine import MACHINE, Machine
from fastness.observe.metrics import LAST_ATTESTED
from fastness.trust import collateralnews
from fastness.trust.ports import Entry, Record
from fastness.trust.tiles import CONFIG_MAPS, NAMESPACE

KEY: Final = ObjectName("", NAME)
GATHER_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 30.0
# Counting thousands of machines takes a while: at most a fiftieth of the time, however often they change.
SHARE: Final = 50
_STATUS: Final = WriteOptions(manager="confidential-cluster", subresource="status")


def _one(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


def _news(found: Mapping[str, Any]) -> Iterable[ObjectName]:
    meta = found["metadata"]
    return (KEY,) if (meta.get("namespace"), meta["name"]) == (NAMESPACE, collateralnews.NAME) else ()


class Confidential:
    """Writes the status of the ConfidentialCluster."""

    name = "confidential-cluster"
    writes: Sequence[Resource] = (CONFIDENTIAL_CLUSTER.resource, AUDIT_BATCH.resource)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, record: Record | None = None) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIDENTIAL_CLUSTER.resource, _one),
            Source(MACHINE.resource, self._if_changed, delay=GATHER_SECONDS),
            Source(REFERENCE_VALUE_SET.resource, _one, delay=GATHER_SECONDS),
            Source(APPROVED_IMAGE.resource, _one, delay=GATHER_SECONDS),
            Source(CONFIG_MAPS, _news, delay=GATHER_SECONDS),
        )
        self._cluster = cluster
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        # Read once per change, and woken only by one that tells another story: machines attest again all the time.
        self._seen: dict[ObjectName, Machine] = {}
        self._changed = True
        informers.of(MACHINE.resource).subscribe(self._machine_changed)
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._images = informers.of(APPROVED_IMAGE.resource)
        self._maps = informers.of(CONFIG_MAPS)
        self._clock = clock
        self._record = record
        self._not_before = float("-inf")

    def _machine_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            self._changed = self._seen.pop(object_name(old or {}), None) is not None or self._changed
            return
        seen, known = view(new, Machine), self._seen.get(object_name(new))
        self._changed = self._changed or known is None or _story(seen) != _story(known)
        self._seen[object_name(new)] = seen

    def _if_changed(self, _: Any) -> Iterable[ObjectName]:
        return (KEY,) if self._changed else ()

    async def reconcile(self, _: ObjectName) -> Done:
        """Write what changed; look again in a while, because proofs grow old by themselves."""
        now = self._clock.monotonic()
        if now < self._not_before:
            return Done(again_after=self._not_before - now)
        self._changed = False
        found = self._clusters.get("", NAME)
        if found is None:
            return GONE
        status = self._status(found)
        after = self._clock.monotonic()
        self._not_before = after + (after - now) * SHARE
        old = found.get("status") or {}
        await self._note_override(found, {**found, "status": status})
        if any(old.get(name) != value for name, value in status.items()):
            patch = {"status": status}
            await self._cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, "", _STATUS)
        return Done(again_after=LOOK_SECONDS)

    async def _note_override(self, old: JsonObject, new: JsonObject) -> None:
        """Beginning and end of an override go on the record before anything says so."""
        was, now = condition(old, "Overridden") or {}, condition(new, "Overridden") or {}
        if self._record is None or was.get("status", "False") == now.get("status"):
            return
        what = "break-glass-begins" if now.get("status") == "True" else "break-glass-ends"
        await self._record.append(Entry(what, NAME, "cluster", detail={"override": str(now.get("message", ""))[:512]}))

    def _status(self, found: JsonObject) -> JsonObject:
        now = self._clock.now()
        machines, interval = self._seen.values(), interval_of(found)
        counts = counted(machines, now, interval)
        book = ValueBook.of(self._sets.list(), now, self._images.list())
        conditions: Sequence[JsonObject] = (found.get("status") or {}).get("conditions") or []
        generation = found["metadata"].get("generation")
        told = (self._maps.get(NAMESPACE, collateralnews.NAME) or {}).get("data") or {}
        collateral = freshness(told.values(), now)
        last = newest_success(machines)
        LAST_ATTESTED.set(last.timestamp() if last is not None else 0)
        alarms = (verifying(found, machines, now, interval), override_said(found, now))
        for said in (*conditions_of(found, accepted_evidence(found), book, counts, collateral), *alarms):
            status = "Unknown" if said.status is None else str(said.status)
            conditions = with_condition(
                conditions, kind=said.kind, status=status, reason=said.reason, message=said.message, now=now,
                generation=generation,
            )  # fmt: skip
        return {"conditions": list(conditions), "observedGeneration": generation, **counts.to_json()}


def _story(machine: Machine) -> tuple[object, ...]:
    """What the counts depend on, but for the time of the last proof: that is looked at every while anyway."""
    said = tuple((one.type, one.status, one.reason) for one in machine.status.conditions)
    return machine.spec.approval, bool(machine.status.last_verdict), said
