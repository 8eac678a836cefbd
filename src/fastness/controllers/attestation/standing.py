"""Staying attested: a machine whose proof is missed or failed loses its place on its node, step by step.

    Machine ─ proof good?  ─ no ─ Attested=False (ProofExpired when merely old) ─ Node: taint ─ cordon ─ drain, by policy
                           └ yes ─ Node: labels of what was proved; what was taken away is given back

The decisions are `domain.attestation.standing`. Each change is one write: the condition of the Machine, or the Node as a whole.
Nothing is written while nothing changes; the loop comes back when the proof will have grown old or the next step is due.

* Nodes are taken out of service only where the cluster enforces attestation for their pool. Elsewhere the loop only tells.
* A node of a Machine that is gone has nobody to vouch for it: it is cordoned at once.
* A drain goes through evictions, so disruption budgets hold; it is repeated until nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from fastness.cluster.clock import Clock
from fastness.cluster.errors import Conflict, NotFound
from fastness.cluster.events import EVENTS, Recorder
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.controllers.engine.controller import GONE, Done, Object, Source
from fastness.controllers.machineconfig.eviction import PODS, evict_all, pods_to_go
from fastness.controllers.machineconfig.rollout import NODES
from fastness.domain.attestation.breakglass import ANNOTATION, Override, live_override
from fastness.domain.attestation.breakglass import REASON as BREAK_GLASS
from fastness.domain.attestation.clusterstatus import interval_of
from fastness.domain.attestation.machinestanding import PROOF_EXPIRED, TAKEN_AWAY, standing_change
from fastness.domain.attestation.membership import NAMESPACE, machine_of_node
from fastness.domain.attestation.standing import (
    NOTE,
    Demand,
    Proof,
    Rules,
    Step,
    demanded,
    node_labels,
    node_patch,
    proof_of,
)
from fastness.domain.machineconfig.errors import BadPolicy
from fastness.domain.machineconfig.waves import duration
from fastness.domain.trustmodel import enforces
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.model.kind import JsonObject, Resource
from fastness.model.objects import ObjectName, annotations_of, condition, object_name, view, with_condition
from fastness.model.trusted_execution.machine import MACHINE, Machine

EVICT_SECONDS: Final = 5.0
_AS: Final = WriteOptions(manager="standing")
_STATUS: Final = WriteOptions(manager="standing", subresource="status")
_EVENTS: Final = {Step.TAINT: "NotAttested", Step.CORDON: "CordonedNotAttested", Step.DRAIN: "DrainedNotAttested"}


class Standing:
    """Keeps Nodes in step with what their machines prove."""

    name = "standing"
    writes: Sequence[Resource] = (MACHINE.resource, NODES, PODS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE.resource),
            Source(NODES, keys=machine_of),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._every_machine),
        )
        self._cluster = cluster
        self._clock = clock
        self._machines = informers.of(MACHINE.resource)
        self._nodes = informers.of(NODES)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._recorder = Recorder(cluster, self.name, clock)
        self._asked: tuple[object, object] | None = None

    def _every_machine(self, confidential: Object) -> Iterable[ObjectName]:
        """All of them when the cluster asks for something else; its status changes all the time and says nothing new."""
        asks = (confidential["metadata"].get("generation"), annotations_of(confidential).get(ANNOTATION))
        if asks == self._asked:
            return ()
        self._asked = asks
        return [object_name(machine) for machine in self._machines.list()]

    async def reconcile(self, key: ObjectName) -> Done:
        """One look at one machine and its node."""
        machine, confidential, now = self._machines.get(*key), self._clusters.get("", NAME), self._clock.now()
        if machine is None:
            return await self._abandoned(key, confidential)
        seen = view(machine, Machine)
        if not seen.status.key_thumbprint:
            return Done()
        override, interval = live_override(confidential, now), interval_of(confidential)
        proof = proof_of(seen, now, interval, override)
        try:
            await self._tell(machine, proof, override, interval)
            node = self._nodes.get("", seen.status.node_name)
            if node is None:
                return _again(proof.until, now)
            labels = node_labels(seen.status.properties, simulated=seen.status.simulated)
            return await self._apply(node, self._demand(proof, seen.status.pool, confidential, labels, now), now)
        except Conflict:
            return Done(again_after=0.5)

    def _demand(
        self, proof: Proof, pool: str, confidential: JsonObject | None, labels: dict[str, str], now: datetime
    ) -> Demand:
        found = demanded(proof, now, rules_of(confidential), labels)
        return (
            found if enforces(confidential, pool) else Demand(Step.NOTHING, found.reason, found.labels, found.next_at)
        )

    async def _tell(self, machine: JsonObject, proof: Proof, override: Override | None, interval: timedelta) -> None:
        """Say on the Machine how it stands now, and on `Attested` that the proof grew old, or counts again.

        Other outcomes of `Attested` are the verifier's.
        """
        now, status = self._clock.now(), {}
        known = condition(machine, "Attested") or {}
        affirmed = proof.good and proof.reason != BREAK_GLASS
        told = known.get("reason")
        grew_old = proof.overdue and told not in (PROOF_EXPIRED, BREAK_GLASS)
        if grew_old or (affirmed and told in TAKEN_AWAY):
            status["conditions"] = with_condition(
                (machine.get("status") or {}).get("conditions") or [], kind="Attested",
                status="True" if affirmed else "False", reason=proof.reason, message=proof.message, now=now,
            )  # fmt: skip
        status |= standing_change(machine, status, now, interval, override)
        if not status:
            return
        patch = {"metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]}, "status": status}
        name = object_name(machine).name
        await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _apply(self, node: JsonObject, demand: Demand, now: datetime) -> Done:
        name = object_name(node).name
        patch = node_patch(node, demand)
        if patch is not None:
            try:
                await self._cluster.patch(NODES, name, patch, PatchType.MERGE, "", _AS)
            except NotFound:
                return GONE
            await self._announce(node, demand, patch)
        if demand.step < Step.DRAIN:
            return _again(demand.next_at, now)
        blocked = await evict_all(self._cluster, name)
        if blocked:
            await self._recorder.warning(node, "DrainBlocked", f"not attested, waiting: {'; '.join(blocked[:5])}")
        return Done(again_after=EVICT_SECONDS) if await pods_to_go(self._cluster, name) else Done()

    async def _announce(self, node: JsonObject, demand: Demand, patch: JsonObject) -> None:
        about = {"apiVersion": "v1", "kind": "Node", **node}
        if demand.step > Step.NOTHING and patch.get("spec"):
            await self._recorder.warning(
                about,
                _EVENTS[demand.step],
                f"the machine is not attested: {demand.reason}; see `fastness attest explain`",
            )
        elif patch.get("spec"):
            await self._recorder.normal(about, "AttestedAgain", "the machine proved itself: the node takes pods again")

    async def _abandoned(self, key: ObjectName, confidential: JsonObject | None) -> Done:
        """The node of a Machine that is gone, if this loop ever looked after it."""
        suffix = f"-{key.name.removeprefix('machine-')}"
        node = next((one for one in self._nodes.list() if object_name(one).name.endswith(suffix)), None)
        if node is None or NOTE not in annotations_of(node):
            return GONE
        pool = object_name(node).name.removesuffix(suffix)
        step = Step.CORDON if enforces(confidential, pool) else Step.NOTHING
        try:
            await self._apply(node, Demand(step, "MachineGone"), self._clock.now())
        except Conflict:
            return Done(again_after=0.5)
        return GONE


def machine_of(node: Object) -> Iterable[ObjectName]:
    """The Machine that may be this node: both names come from the key of the machine."""
    name = machine_of_node(object_name(node).name)
    return (ObjectName(NAMESPACE, name),) if name else ()


def rules_of(confidential: JsonObject | None) -> Rules:
    """How fast a cluster takes nodes out of service; the defaults where it cannot be read."""
    missed = view(confidential or {}, ConfidentialCluster).spec.attestation.missed
    try:
        drain = duration(missed.drain_after, "missed.drainAfter") if missed.drain_after else None
        return Rules(duration(missed.cordon_after, "missed.cordonAfter"), drain)
    except BadPolicy:
        return Rules()


def _again(at: datetime | None, now: datetime) -> Done:
    return Done(again_after=max(0.1, (at - now).total_seconds())) if at is not None else Done()
