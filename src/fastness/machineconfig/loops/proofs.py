"""No node of an enforcing pool is sent to another config unless its machine proves itself; and what a machine is sent to is
written on the Machine first, where the doors read it.

    proofs.unproved(pool, node)         why the rollout leaves a node where it is; empty when it may go
    proofs.assigned(node, ...)          what the Machine of a node must say before the Node does

A proof is looked at once per version of the Machine and holds until it grows old, so that asking for every node of a pool costs
next to nothing. Pools that do not enforce hold nobody; but whoever has a Machine fetches its configs from the doors, so it is
told what a Machine may have there too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from fastness.attestation.machine.proof_age import Proof, proof_of
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.verdict.breakglass import ANNOTATION, listed_approvers, live_override
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import enforces
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import annotations_of, is_being_deleted, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.informers import Informers
from fastness.machineconfig.rollout.assigned import assignment
from fastness.runtime.clock import Clock

NO_MACHINE: Final = "it belongs to no Machine that attested"
_BY_NODE: Final = "rollout-node"


class _Looked(NamedTuple):
    """A proof, the Machine that it is of and what the cluster asked for then."""

    machine: JsonObject
    asks: object
    proof: Proof


class Proofs:
    """Knows the Machine of every node, and how its proof stands."""

    reads: Sequence[Resource] = (MACHINE.resource, CONFIDENTIAL_CLUSTER.resource)

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._clock = clock
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._machines = informers.of(MACHINE.resource)
        self._machines.add_index(_BY_NODE, _node_of)
        self._looked: dict[str, _Looked] = {}

    def machine(self, node: str) -> JsonObject | None:
        """The Machine that is this node."""
        return next((one for one in self._machines.by_index(_BY_NODE, node) if not is_being_deleted(one)), None)

    def pool(self, node: str) -> str:
        """The pool of the Machine that is this node; empty where there is none."""
        return str(((self.machine(node) or {}).get("status") or {}).get("pool") or "")

    def asks(self) -> object:
        """What the cluster asks for; its status changes all the time and says nothing new."""
        confidential = self._clusters.get("", NAME) or {}
        return (confidential.get("metadata") or {}).get("generation"), annotations_of(confidential).get(ANNOTATION)

    def enforces(self, pool: str) -> bool:
        """Whether nodes of a pool go nowhere without a proof."""
        return enforces(self._clusters.get("", NAME), pool)

    def unproved(self, node: str) -> str:
        """Why a node of an enforcing pool must stay where it is; empty when its machine's proof is good."""
        machine = self.machine(node)
        if machine is None:
            return NO_MACHINE
        now, asks = self._clock.now(), self.asks()
        known = self._looked.get(node)
        if known is None or known.machine is not machine or known.asks != asks or _over(known.proof, now):
            known = self._looked[node] = _Looked(machine, asks, self._proof(machine, now))
        return "" if known.proof.good else known.proof.message or f"its machine is not attested: {known.proof.reason}"

    def _proof(self, machine: JsonObject, now: datetime) -> Proof:
        confidential = self._clusters.get("", NAME)
        override = live_override(confidential, now, listed_approvers(confidential))
        return proof_of(view(machine, Machine), now, interval_of(confidential), override)

    def assigned(
        self, node: str, claimed: str, goal: str, served: Collection[str]
    ) -> tuple[JsonObject, JsonObject] | None:
        """The Machine of a node and what must be written on it before the node is told; None where nothing must."""
        machine = self.machine(node)
        if machine is None:
            return None
        change = assignment(view(machine, Machine), claimed, goal, served)
        return (machine, {"status": dict(change)}) if change else None

    def is_assigned(self, node: str, config: str) -> bool:
        """Whether the Machine of a node says that this is its desired config; true for nodes without one."""
        machine = self.machine(node)
        return machine is None or (machine.get("status") or {}).get("desiredConfig") == config

    def forget(self, node: str) -> None:
        """A node is gone."""
        self._looked.pop(node, None)


def node_name_of(machine: JsonObject) -> str:
    """The node that a Machine may become."""
    return str((machine.get("status") or {}).get("nodeName") or "")


def _node_of(machine: JsonObject) -> Iterable[str]:
    name = node_name_of(machine)
    return (name,) if name else ()


def _over(proof: Proof, now: datetime) -> bool:
    return proof.until is not None and now >= proof.until
