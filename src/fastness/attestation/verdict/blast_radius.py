"""What a Distrust would hit, before anybody writes it: machines, their pools and nodes, and what is left of each pool.

The same functions decide afterwards (`distrust.hits`), so the plan is what will happen to the machines as they stand now. A
machine that proves something distrusted only tomorrow is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastness.attestation.verdict.distrust import Distrusted, about_machine
from fastness.attestation.verdict.machine_standing import MachineStanding
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, view
from fastness.kinds.trusted_execution.machine import Machine

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """A machine that would be refused."""

    machine: str
    pool: str
    node: str
    attested: bool
    last_attested: str = ""


@dataclass(frozen=True, slots=True)
class Radius:
    """Whom a Distrust hits; `pools` has how many attested machines each affected pool has now, and would have."""

    target: str
    revokes: bool
    hits: tuple[Hit, ...]
    pools: Mapping[str, tuple[int, int]]

    @property
    def emptied(self) -> tuple[str, ...]:
        """The pools that would be left without an attested machine."""
        return tuple(sorted(pool for pool, (before, after) in self.pools.items() if before and not after))

    def to_json(self) -> JsonObject:
        """What would be hit, as JSON."""
        return {
            "target": self.target,
            "effect": "revoked" if self.revokes else "refused until it proves better",
            "machines": [
                {"name": hit.machine, "pool": hit.pool, "node": hit.node, "attested": hit.attested,
                 "lastAttested": hit.last_attested}
                for hit in self.hits
            ],
            "pools": [{"name": pool, "attested": a, "left": b} for pool, (a, b) in sorted(self.pools.items())],
            "emptied": list(self.emptied),
        }  # fmt: skip


def blast_radius(
    distrust: Distrusted, machines: Iterable[Object], standing: Callable[[Machine], MachineStanding]
) -> Radius:
    """Whom a Distrust hits among these machines; `standing` says how each stands."""
    hits: list[Hit] = []
    totals: dict[str, int] = {}
    lost: dict[str, int] = {}
    for machine in machines:
        machine_view = view(machine, Machine)
        # Machines that never enrolled a key hold nothing that could be taken from them.
        if is_being_deleted(machine) or not machine_view.status.key_thumbprint:
            continue
        pool = machine_view.status.pool
        good = standing(machine_view).proved
        totals[pool] = totals.get(pool, 0) + good
        if distrust.hits(about_machine(machine_view)):
            lost[pool] = lost.get(pool, 0) + good
            hits.append(
                Hit(
                    machine_view.metadata.name,
                    pool,
                    machine_view.status.node_name,
                    good,
                    machine_view.status.last_attested or "",
                )
            )
    hits.sort(key=lambda hit: (hit.pool, hit.node, hit.machine))
    pools = {pool: (totals[pool], totals[pool] - count) for pool, count in lost.items()}
    return Radius(distrust.line, distrust.revokes, tuple(hits), pools)
