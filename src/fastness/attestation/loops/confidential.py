"""The status of the ConfidentialCluster: counts of machines, and conditions that tell the truth.

How each machine stands is `attestation.verdict.machine_standing`, and which nodes never attested `unprovednodes`; the same
numbers are metrics. Beginning and end of an override go on the record and are Events, and so does every lowering (`guarding`); a
confirmation that was used is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fastness.attestation.evidence.roots import accepted_evidence
from fastness.attestation.live import collateral_report
from fastness.attestation.loops.guarding import Guard
from fastness.attestation.status.alarms import approvers_said, newest_success, override_said, verifying
from fastness.attestation.status.cluster import StandingRules, conditions_of, counted
from fastness.attestation.status.collateral import freshness
from fastness.attestation.status.unproved_nodes import never_attested
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import LOST, pending_text, read_appointments
from fastness.keys.authorities import HERE, SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_EVICT, CONFIRM_LOWER, NAME
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import (
    ObjectName,
    annotations_of,
    condition,
    labels_of,
    metadata,
    object_name,
    view,
    with_condition,
)
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Conflict
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe.metrics import LAST_ATTESTED, MACHINE_STANDINGS, NODES_NEVER_ATTESTED
from fastness.record.entry import Record, RecordEntry
from fastness.record.live.tiles import TileStore
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", NAME)
NODES: Final = NODE.resource
POOLS: Final = MACHINE_CONFIG_POOL.resource
MOST_NAMED: Final = 100
GATHER_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 0.5  # for the record to say who lowered protection
# Counting thousands of machines takes a while: at most a fiftieth of the time, however often they change.
SHARE: Final = 50
_AS: Final = WriteOptions(manager="confidential-cluster")
_STATUS: Final = WriteOptions(manager="confidential-cluster", subresource="status")


def _one(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


def _news(names: Mapping[str, Any]) -> Iterable[ObjectName]:
    meta = names["metadata"]
    return (
        (KEY,) if meta.get("namespace") == NAMESPACE and meta["name"] in (collateral_report.NAME, APPOINTMENTS) else ()
    )


class Confidential:
    """Writes the status of the ConfidentialCluster."""

    name = "confidential-cluster"
    writes: Sequence[Resource] = (CONFIDENTIAL_CLUSTER.resource, AUDIT_BATCH.resource, EVENTS, SECRETS)

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        clock: Clock,
        record: Record | None = None,
        tiles: TileStore | None = None,
        watched: Callable[[], bool] = lambda: True,
    ) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIDENTIAL_CLUSTER.resource, _one),
            Source(MACHINE.resource, self._if_changed, delay=GATHER_SECONDS),
            Source(REFERENCE_VALUE_SET.resource, _one, delay=GATHER_SECONDS),
            Source(APPROVED_IMAGE.resource, _one, delay=GATHER_SECONDS),
            Source(CONFIG_MAP.resource, _news, scope=HERE, delay=GATHER_SECONDS),
            Source(NODES, self._if_changed, delay=GATHER_SECONDS),
            Source(POOLS, self._if_changed, delay=GATHER_SECONDS),
        )
        self._cluster = cluster
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        # Read once per change, and woken only by one that tells another story: machines attest again all the time.
        self._machine_views: dict[ObjectName, Machine] = {}
        self._changed = True
        informers.of(MACHINE.resource).subscribe(self._machine_changed)
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._images = informers.of(APPROVED_IMAGE.resource)
        self._maps = informers.of(CONFIG_MAP.resource, HERE)
        self._nodes, self._pools = informers.of(NODES), informers.of(POOLS)
        self._nodes.subscribe(self._node_changed)
        self._pools.subscribe(self._pool_changed)
        self._recorder = Recorder(cluster, self.name, clock)
        self._guard: Guard | None = None
        if record is not None and tiles is not None:
            self._guard = Guard(cluster, record, tiles, self._recorder, watched)
            self._clusters.subscribe(self._guard.note)
        self._clock = clock
        self._record = record
        self._not_before = float("-inf")

    def _machine_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            self._changed = self._machine_views.pop(object_name(old or {}), None) is not None or self._changed
            return
        machine, before = view(new, Machine), self._machine_views.get(object_name(new))
        self._changed = self._changed or before is None or _story(machine) != _story(before)
        self._machine_views[object_name(new)] = machine

    def _node_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Only which nodes there are and in which pools: a node tells of itself all the time."""
        moved = old is None or new is None or labels_of(old) != labels_of(new)
        self._changed = self._changed or moved

    def _pool_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        selects = [(pool.get("spec") or {}).get("nodeSelector") for pool in (old or {}, new or {})]
        self._changed = self._changed or selects[0] != selects[1]

    def _if_changed(self, _: Any) -> Iterable[ObjectName]:
        return (KEY,) if self._changed else ()

    async def reconcile(self, _: ObjectName) -> Done:
        """Write what changed; look again in a while, because proofs grow old by themselves."""
        now = self._clock.monotonic()
        if now < self._not_before:
            return Done(again_after=self._not_before - now)
        self._changed = False
        cluster = self._clusters.get("", NAME)
        if self._guard is not None and not await self._guard.settle(cluster):
            return Done(again_after=WAIT_SECONDS)
        if cluster is None:
            return GONE
        await self._take_off(cluster)
        # Only the computing counts: what was waited for kept nobody from working.
        began = self._clock.monotonic()
        status = self._status(cluster)
        ended = self._clock.monotonic()
        self._not_before = ended + (ended - began) * SHARE
        old = cluster.get("status") or {}
        await self._note_override(cluster, {**cluster, "status": status})
        if any(old.get(name) != value for name, value in status.items()):
            patch = {"status": status}
            await self._cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, "", _STATUS)
        return Done(again_after=LOOK_SECONDS)

    async def _take_off(self, cluster: JsonObject) -> None:
        """A confirmation goes with the change that it was for: the digest fits no other one, and it only confuses readers."""
        meta = metadata(cluster)
        observed = int((cluster.get("status") or {}).get("observedGeneration") or 0)
        used = {name: None for name in (CONFIRM_LOWER, CONFIRM_EVICT, LOST) if name in annotations_of(cluster)}
        if used and int(meta.get("generation") or 0) > observed:
            patch = {"metadata": {"resourceVersion": meta.get("resourceVersion"), "annotations": used}}
            with suppress(Conflict):
                await self._cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE, "", _AS)

    async def _note_override(self, old: JsonObject, new: JsonObject) -> None:
        """Beginning and end of an override go on the record before anything says so, and are told to everybody who watches."""
        was, now = condition(old, "Overridden") or {}, condition(new, "Overridden") or {}
        if was.get("status", "False") == now.get("status"):
            return
        begins, message = now.get("status") == "True", str(now.get("message", ""))
        if self._record is not None:
            what = "break-glass-begins" if begins else "break-glass-ends"
            await self._record.append(RecordEntry(what, NAME, "cluster", detail={"override": message[:512]}))
        if begins:
            await self._recorder.warning(old, "OverrideBegins", f"machines are let in without proof: {message}")
        else:
            await self._recorder.normal(old, "OverrideEnds", f"machines have to attest again: {message}")

    def _status(self, cluster: JsonObject) -> JsonObject:
        now = self._clock.now()
        appointments = read_appointments(self._maps.get(NAMESPACE, APPOINTMENTS))
        machines, rules = self._machine_views.values(), StandingRules.of(cluster, now, appointments.counting)
        standings = [rules.standing(machine, now) for machine in machines]
        MACHINE_STANDINGS.show((str(entry.state), entry.simulated) for entry in standings)
        unproved = never_attested(cluster, self._nodes.list(), self._pools.list(), machines)
        NODES_NEVER_ATTESTED.set(len(unproved))
        counts = counted(standings)
        book = ReferenceValues.of(self._sets.list(), now, self._images.list())
        conditions: Sequence[JsonObject] = (cluster.get("status") or {}).get("conditions") or []
        generation = cluster["metadata"].get("generation")
        reports = (self._maps.get(NAMESPACE, collateral_report.NAME) or {}).get("data") or {}
        collateral = freshness(reports.values(), now)
        last = newest_success(machines)
        LAST_ATTESTED.set(last.timestamp() if last is not None else 0)
        alarms = (
            verifying(cluster, machines, now, rules.interval, unproved),
            override_said(cluster, now, appointments.counting),
            approvers_said(pending_text(appointments)),
        )
        stands = conditions_of(cluster, accepted_evidence(cluster), book, counts, collateral, rules.override, unproved)
        guarded = (self._guard.condition(),) if self._guard is not None else ()
        for change in (*stands, *alarms, *guarded):
            status = "Unknown" if change.status is None else str(change.status)
            conditions = with_condition(
                conditions, kind=change.kind, status=status, reason=change.reason, message=change.message, now=now,
                generation=generation,
            )  # fmt: skip
        nodes = {"nodesNeverAttested": len(unproved), "neverAttested": list(unproved[:MOST_NAMED])}
        return {"conditions": list(conditions), "observedGeneration": generation, **counts.to_json(), **nodes}


def _story(machine: Machine) -> tuple[object, ...]:
    """What the counts depend on, but for the time of the last proof: that is looked at every while anyway."""
    states = tuple((entry.type, entry.status, entry.reason) for entry in machine.status.conditions)
    return machine.spec.approval, bool(machine.status.last_verdict), states
