"""What holds a node back although the rollout would choose it: an image that nobody could prove, or a machine that is not proved.

**Its image** (`ImageGate`). No node of a confidential pool is sent to an image before its reference values count. A machine that
boots an image that the verifier does not know is refused, and an update that everybody asked for would take the cluster down
node by node. A config that leaves the image as it is passes; what a node has already is no change.

**Its proof** (`Proofs`). No node of an enforcing pool is sent to another config unless its machine proves itself; and what a
machine is sent to is written on the Machine first, where the doors read it.

    proofs.unproved(node)               why the rollout leaves a node where it is; None when it may go
    proofs.assigned(node, ...)          what the Machine of a node must say before the Node does

A proof is looked at once per version of the Machine and holds until it grows old, so that asking for every node of a pool costs
next to nothing. Pools that do not enforce hold nobody; but whoever has a Machine fetches its configs from the doors, so it is
told what a Machine may have there too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from fastness.attestation.evidence.roots import accepted_evidence
from fastness.attestation.machine.proof_age import Proof, proof_of
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.values.image_life import digest_of, values_missing
from fastness.attestation.values.measured import COMPARED
from fastness.attestation.values.values import ReferenceValues, approved_images
from fastness.attestation.verdict.breakglass import ANNOTATION, listed_approvers, live_override
from fastness.attestation.verdict.distrust import read_distrust
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.objects import annotations_of, is_being_deleted, view
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.informers import Informers
from fastness.machineconfig.rollout.assigned import assignment
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts
from fastness.machineconfig.rollout.rollout import HoldReason, free
from fastness.runtime.clock import Clock

NO_MACHINE: Final = "it belongs to no Machine that attested"
_BY_NODE: Final = "rollout-node"


class ImageGate:
    """Knows the image of every config, and whether its values count."""

    reads: Sequence[Resource] = (REFERENCE_VALUE_SET.resource, APPROVED_IMAGE.resource, DISTRUST.resource)

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._clock = clock
        self._configs = informers.of(MACHINE_CONFIG.resource)
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._approvals = informers.of(APPROVED_IMAGE.resource)
        self._distrusts = informers.of(DISTRUST.resource)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._machines = informers.of(MACHINE.resource)

    def hold(self, pool: str, goal: Goal) -> HoldReason:
        """What holds the nodes of a pool back on their way to a goal."""
        if trust_model(self._clusters.get("", NAME), pool) is not TrustModel.CONFIDENTIAL_CLUSTER:
            return free
        new_image = goal.image or self.image(goal.config)
        if not new_image:
            return free
        # The same for every node of the pool, and all sets are read for it: once, for the first node that needs it.
        missing = cache(lambda: self._missing(new_image, pool))

        def held(node: NodeFacts) -> str | None:
            present = node.current_image or self.image(node.current)
            return None if digest_of(present) == digest_of(new_image) else missing()

        return held

    def image(self, config: str) -> str:
        """The operating system image of a rendered config; empty for one that is not known or names none."""
        rendered = self._configs.get("", config) if config else None
        return str(((rendered or {}).get("spec") or {}).get("osImageURL") or "")

    def _missing(self, image: str, pool: str) -> str | None:
        now, sets, approvals = self._clock.now(), self._sets.list(), self._approvals.list()
        distrusts = [distrust for distrust in map(read_distrust, self._distrusts.list()) if distrust is not None]
        distrusted = frozenset(str(each.target) for each in distrusts if each.kind == "image" and each.live(now))
        values = ReferenceValues.of(sets, now, approvals, distrusted, pool)
        return values_missing(
            image, sets, values, now, tees=self._tees(pool), approved=approved_images(approvals), distrusted=distrusted
        )

    def _tees(self, pool: str) -> frozenset[str]:
        """What the machines of a pool prove themselves by."""
        tees = frozenset(
            str((machine.get("status") or {}).get("tee") or "")
            for machine in self._machines.list()
            if (machine.get("status") or {}).get("pool") == pool
        )
        return tees & COMPARED.keys() & frozenset(accepted_evidence(self._clusters.get("", NAME), pool))


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
        return next(
            (candidate for candidate in self._machines.by_index(_BY_NODE, node) if not is_being_deleted(candidate)),
            None,
        )

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

    def unproved(self, node: str) -> str | None:
        """Why a node of an enforcing pool must stay where it is; None when its machine's proof is good."""
        machine = self.machine(node)
        if machine is None:
            return NO_MACHINE
        now, asks = self._clock.now(), self.asks()
        looked = self._looked.get(node)
        if looked is None or looked.machine is not machine or looked.asks != asks or _over(looked.proof, now):
            looked = self._looked[node] = _Looked(machine, asks, self._proof(machine, now))
        proof = looked.proof
        return None if proof.good else proof.message or f"its machine is not attested: {proof.reason}"

    def _proof(self, machine: JsonObject, now: datetime) -> Proof:
        confidential = self._clusters.get("", NAME)
        override = live_override(confidential, now, listed_approvers(confidential))
        return proof_of(view(machine, Machine), now, interval_of(confidential), override)

    def assigned(self, node: NodeFacts, goal: Goal, served: Collection[str]) -> tuple[JsonObject, JsonObject] | None:
        """The Machine of a node and what must be written on it before the node is told; None where nothing must."""
        machine = self.machine(node.name)
        if machine is None:
            return None
        change = assignment(view(machine, Machine), node, goal, served)
        return (machine, {"status": dict(change)}) if change else None

    def is_assigned(self, node: NodeFacts) -> bool:
        """Whether the Machine of a node says that it goes where the node was told to; true for nodes without one."""
        machine = self.machine(node.name)
        if machine is None:
            return True
        status = machine.get("status") or {}
        told = (node.desired, node.desired_overlay)
        return (status.get("desiredConfig"), status.get("desiredOverlay", "")) == told

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
