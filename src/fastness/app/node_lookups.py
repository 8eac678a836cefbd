"""What the embedded API must know of nodes and does not decide itself: which are trusted, and what they may read."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.apiserver import Key, StoreLookups
from fastness.attestation.machine.proof_age import proof_of
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.verdict import approvers
from fastness.kinds import machineconfiguration
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.trust_model import Mode, enforces, mode_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.pools.membership import PoolSelectors, SeveralPools
from fastness.protocol.machine_names import machine_of_node

_CONFIG_ANNOTATIONS: Final = tuple(
    f"{machineconfiguration.GROUP}/{name}" for name in ("currentConfig", "desiredConfig")
)


class NodeLookups(StoreLookups):
    """Answers out of the store, with those about nodes."""

    def appointments(self) -> JsonObject | None:
        """The ConfigMap that says who counts as an approver of overrides."""
        return self.find("configmaps", approvers.NAMESPACE, approvers.CONFIG_MAP)

    def rendered_configs(self, node: str) -> frozenset[str]:
        """The rendered MachineConfigs that a node may read: what it has and what it shall have.

        None in a pool that enforces attestation: there configurations leave by the doors, to machines that prove themselves.
        """
        stored = self.find("nodes", "", node)
        if self._enforced(node, stored):
            return frozenset()
        notes = annotations_of(stored or {})
        return frozenset(notes[name] for name in _CONFIG_ANNOTATIONS if notes.get(name))

    def reads_trust(self, node: str) -> bool:
        """Whether a node reads here what it has beside its config: not in a pool that enforces attestation, as with configs."""
        return not self._enforced(node, self.find("nodes", "", node))

    def _machine_of(self, node: str) -> Machine | None:
        """The Machine that is a node, by what enrolment wrote on it."""
        name = machine_of_node(node)
        stored = self.get(Key(MACHINE.group, MACHINE.plural, NAMESPACE, name)) if name else None
        machine = view(stored, Machine) if stored is not None else None
        return machine if machine is not None and machine.status.node_name == node else None

    def barred(self, node: str) -> str | None:
        """Why the machine that is a node is no longer trusted; None for others, and for nodes without a Machine."""
        machine = self._machine_of(node)
        if machine is None:
            return None
        match membership_of(machine):
            case Membership.QUARANTINED:
                return "its machine is in quarantine"
            case Membership.REVOKED:
                return "its machine is revoked"
            case _:
                return None

    def unproved(self, node: str) -> str | None:
        """Why the machine that is a node has no live proof, where its pool enforces them; None for nodes without a Machine."""
        machine, cluster = self._machine_of(node), self.confidential_cluster()
        if machine is None or not enforces(cluster, machine.status.pool):
            return None
        now = self.clock.now()
        overridden = machine.status.overridden_until
        if overridden and now < datetime.fromisoformat(overridden):
            return None
        proof = proof_of(machine, now, interval_of(cluster))
        return None if proof.good else f"its machine has no live proof ({proof.reason})"

    def _enforced(self, name: str, node: JsonObject | None) -> bool:
        """Whether a node is in a pool that enforces attestation; one in no pool is where those are that nobody listed.

        A label does not take the node of a Machine out of such a pool.
        """
        cluster = self.confidential_cluster()
        if mode_of(cluster) is not Mode.ENFORCE:
            return False
        try:
            pools = PoolSelectors(self.pools()).of(node or {}).pools
        except SeveralPools as error:
            pools = error.pools
        machine = self._machine_of(name)
        pools = (*pools, *((machine.status.pool,) if machine is not None and machine.status.pool else ()))
        return any(enforces(cluster, pool) for pool in pools or ("",))
