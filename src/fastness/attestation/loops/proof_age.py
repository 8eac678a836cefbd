"""Staying attested: a machine whose proof is missed or failed loses its place on its node, step by step.

    Machine ─ proof good?  ─ no ─ Attested=False (ProofExpired when merely old) ─ Node: taint ─ cordon ─ drain, by policy
                           └ yes ─ Node: labels of what was proved; what was taken away is given back

The decisions are `attestation.machine.proof_age`. Each change is one write: the condition of the Machine, or the Node as a whole.
Nothing is written while nothing changes; the loop comes back when the proof will have grown old or the next step is due.

* Nodes are taken out of service only where the cluster enforces attestation for their pool. Elsewhere the loop only tells.
* A node of such a pool that belongs to no Machine is tainted, however it came to be; with NoExecute where the pool says `evict`.
* A node of a Machine that is gone has nobody to vouch for it: it is cordoned at once.
* A drain goes through evictions, so disruption budgets hold; it is repeated until nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from fastness.attestation.machine.proof_age import (
    CORDONED,
    TAINT_KEY,
    Demand,
    Proof,
    Rules,
    Step,
    demanded,
    node_labels,
    node_patch,
    proof_of,
    unclaimed,
)
from fastness.attestation.machine.signed_status import is_disbelieved
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.verdict.breakglass import ANNOTATION, Override, listed_approvers, live_override
from fastness.attestation.verdict.breakglass import REASON as BREAK_GLASS
from fastness.attestation.verdict.machine_standing import PROOF_EXPIRED, TAKEN_AWAY, standing_change
from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import enforces, evicts
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
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
from fastness.kinds.trusted_execution.machine import MACHINE, NOTE, SENT, Machine
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.eviction import evict_all, pods_to_go
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.pools.membership import PoolSelectors, SeveralPools
from fastness.protocol.machine_names import machine_of_node
from fastness.runtime.clock import Clock

EVICT_SECONDS: Final = 5.0
_BY_NODE: Final = "standing-node"
_READS: Final = fields(
    "metadata.labels", "spec.taints", "spec.unschedulable", annotations=(NOTE, CORDONED, names.DESIRED_DRAIN)
)
_AS: Final = WriteOptions(manager="standing")
_STATUS: Final = WriteOptions(manager="standing", subresource="status")
_EVENTS: Final = {Step.TAINT: "NotAttested", Step.CORDON: "CordonedNotAttested", Step.DRAIN: "DrainedNotAttested"}


class ProofAge:
    """Keeps Nodes in step with what their machines prove."""

    name = "standing"
    writes: Sequence[Resource] = (MACHINE.resource, NODE.resource, POD.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINE.resource, unread=SENT),
            Source(NODE.resource, keys=self._of_changed_node, reads=_READS),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._everybody),
            Source(MACHINE_CONFIG_POOL.resource, keys=self._unclaimed_nodes),
        )
        self._cluster = cluster
        self._clock = clock
        self._machines = informers.of(MACHINE.resource)
        self._machines.add_index(_BY_NODE, _node_of)
        self._nodes = informers.of(NODE.resource)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._watched: tuple[object, object] | None = None
        self._selecting: object = None
        self._node_facts: dict[str, object] = {}
        self._nodes.subscribe(self._forget)
        self._selectors = PoolSelectors(())

    def _forget(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            self._node_facts.pop(object_name(old or {}).name, None)

    def _of_changed_node(self, node: Object) -> Iterable[ObjectName]:
        """Who must look at a node that changed; nobody where it changed in nothing that counts here.

        An update writes a node about ten times, and heartbeats do for ever.
        """
        name, facts = object_name(node).name, _counting(node)
        if self._node_facts.get(name) == facts:
            return ()
        self._node_facts[name] = facts
        return self._of_node(node)

    def _of_node(self, node: Object) -> Iterable[ObjectName]:
        """The Machine that is this node; the node itself where there is none."""
        name = object_name(node).name
        machine = self._machine_of(name)
        return (object_name(machine) if machine is not None else ObjectName("", name),)

    def _machine_of(self, node: str) -> JsonObject | None:
        """The Machine that may be a node, by what enrolment wrote on it: a name that looks like its node's is no claim."""
        return next(iter(self._machines.by_index(_BY_NODE, node)), None)

    def _unclaimed_nodes(self, _pool: Object) -> Iterable[ObjectName]:
        """The nodes without a Machine, when pools select others than before."""
        pools = self._pools.list()
        selecting = sorted(
            (object_name(pool).name, repr((pool.get("spec") or {}).get("nodeSelector"))) for pool in pools
        )
        if selecting == self._selecting:
            return ()
        self._selecting, self._selectors = selecting, PoolSelectors(pools)
        return self._nodes_alone()

    def _nodes_alone(self) -> list[ObjectName]:
        return [key for node in self._nodes.list() for key in self._of_node(node) if not key.namespace]

    def _everybody(self, confidential: Object) -> Iterable[ObjectName]:
        """All of them when the cluster asks for something else; its status changes all the time and says nothing new."""
        asks = (confidential["metadata"].get("generation"), annotations_of(confidential).get(ANNOTATION))
        if asks == self._watched:
            return ()
        self._watched = asks
        return [*map(object_name, self._machines.list()), *self._nodes_alone()]

    async def reconcile(self, key: ObjectName) -> Done:
        """One look at one machine and its node."""
        if not key.namespace:
            return await self._alone(self._nodes.get("", key.name))
        machine, confidential, now = self._machines.get(*key), self._clusters.get("", NAME), self._clock.now()
        if machine is None:
            return await self._abandoned(key)
        machine_view = view(machine, Machine)
        if not machine_view.status.key_thumbprint:
            return await self._abandoned(key) if is_disbelieved(machine) else Done()
        override, interval = live_override(confidential, now, listed_approvers(confidential)), interval_of(confidential)
        proof = proof_of(machine_view, now, interval, override)
        try:
            await self._tell(machine, proof, override, interval)
            node = self._nodes.get("", machine_view.status.node_name)
            if node is None:
                return _again(proof.until, now)
            labels = node_labels(machine_view)
            return await self._apply(
                node, self._demand(proof, machine_view.status.pool, confidential, labels, now), now
            )
        except Conflict:
            return Done(again_after=0.5)

    def _demand(
        self, proof: Proof, pool: str, confidential: JsonObject | None, labels: dict[str, str], now: datetime
    ) -> Demand:
        demand = demanded(proof, now, rules_of(confidential), labels)
        if not enforces(confidential, pool):
            return Demand(Step.NOTHING, demand.reason, demand.labels, demand.next_at)
        return replace(demand, evict=evicts(confidential, pool))

    async def _tell(self, machine: JsonObject, proof: Proof, override: Override | None, interval: timedelta) -> None:
        """Say on the Machine how it stands now, and on `Attested` that the proof grew old, or counts again.

        Other outcomes of `Attested` are the verifier's.
        """
        now, status = self._clock.now(), {}
        attested = condition(machine, "Attested") or {}
        affirmed = proof.good and proof.reason != BREAK_GLASS
        before = attested.get("reason")
        grew_old = proof.overdue and before not in (PROOF_EXPIRED, BREAK_GLASS)
        if grew_old or (affirmed and before in TAKEN_AWAY):
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
                await self._cluster.patch(NODE.resource, name, patch, PatchType.MERGE, "", _AS)
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

    async def _abandoned(self, key: ObjectName) -> Done:
        """The node of a Machine that is gone, or whose status is not believed: nobody vouches for it."""
        suffix = f"-{key.name.removeprefix('machine-')}"
        return await self._alone(
            next((node for node in self._nodes.list() if object_name(node).name.endswith(suffix)), None)
        )

    async def _alone(self, node: JsonObject | None) -> Done:
        """A node that belongs to no Machine."""
        if node is None or self._machine_of(object_name(node).name) is not None:
            return GONE
        pool, confidential = self._pool_of(node), self._clusters.get("", NAME)
        demand = (
            unclaimed(node, enforced=enforces(confidential, pool), evict=evicts(confidential, pool)) if pool else None
        )
        if demand is None:
            return GONE
        try:
            return await self._apply(node, demand, self._clock.now())
        except Conflict:
            return Done(again_after=0.5)

    def _pool_of(self, node: JsonObject) -> str:
        """The pool of a node; of several that claim it, one that enforces, if there is one.

        A node without labels that enrolment named carries the pool in its name.
        """
        self._unclaimed_nodes({})
        name = object_name(node).name
        try:
            return self._selectors.of(node).primary or (name.rpartition("-")[0] if machine_of_node(name) else "")
        except SeveralPools as error:
            confidential = self._clusters.get("", NAME)
            # The strict one: a label that a node gives itself must not move it to a pool that asks for nothing.
            return next((pool for pool in error.pools if enforces(confidential, pool)), error.pools[0])


def _counting(node: Object) -> tuple[object, ...]:
    """All of a node that a look at it depends on, and what it could have written.

    Whether somebody else cordoned or drains it counts only where we have taken it out of service, or are to give it back. An
    update does both to every node of a pool.
    """
    spec, notes = node.get("spec") or {}, annotations_of(node)
    effects = tuple(taint.get("effect") for taint in spec.get("taints") or () if taint.get("key") == TAINT_KEY)
    ours = (
        metadata(node).get("uid"),
        tuple(sorted(labels_of(node).items())),
        effects,
        notes.get(NOTE),
        notes.get(CORDONED),
    )
    if not effects and CORDONED not in notes:
        return ours
    return (*ours, bool(spec.get("unschedulable")), notes.get(names.DESIRED_DRAIN))


def _node_of(machine: Object) -> Iterable[str]:
    name = (machine.get("status") or {}).get("nodeName")
    return (str(name),) if name else ()


def rules_of(confidential: JsonObject | None) -> Rules:
    """How fast a cluster takes nodes out of service; the defaults where it cannot be read."""
    missed = view(confidential or {}, ConfidentialCluster).spec.attestation.missed
    try:
        drain = duration(missed.drain_after, "missed.drainAfter") if missed.drain_after else None
        return Rules(duration(missed.cordon_after, "missed.cordonAfter"), drain)
    except DurationError:
        return Rules()


def _again(at: datetime | None, now: datetime) -> Done:
    return Done(again_after=max(0.1, (at - now).total_seconds())) if at is not None else Done()
