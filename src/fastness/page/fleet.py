"""Machines as a fleet: one row each, filters, and who needs a decision.

A row is read off the Machine and its Node and kept while neither changes, so that a page of five thousand machines costs a
lookup each. How the machine stands is `attestation.verdict.machine_standing`; a machine that proved what it booted is told
apart by its node as well. That makes nine states:

    proved       proved what it booted, and has what it should have
    working      proved, and on its way to another configuration
    degraded     proved, and its agent says that something is wrong      needs a decision
    waiting      has not proved anything yet, or not joined yet
    pending      waits for somebody to approve it                        needs a decision
    refused      its last proof was refused                              needs a decision
    stale        its last proof counts no more                           needs a decision
    overridden   let in by an override, without proof                    needs a decision
    revoked      revoked or in quarantine
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, assert_never

from fastness.attestation.status.cluster import StandingRules
from fastness.attestation.verdict.machine_standing import NEVER, MachineStanding, State
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine
from fastness.machineconfig.rollout.nodes import facts

PAGE_ROWS: Final = 50
STATES: Final = (
    "pending", "refused", "overridden", "stale", "degraded", "waiting", "working", "revoked", "proved",
)  # fmt: skip
NEEDS: Final = frozenset({"pending", "refused", "overridden", "stale", "degraded"})
_ORDER: Final = {state: number for number, state in enumerate(STATES)}
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One machine."""

    name: str
    node: str
    pool: str
    tee: str
    state: str
    standing: MachineStanding
    image: str
    last_proof: str
    waits: str

    def over(self, now: datetime) -> bool:
        """Whether the standing has ended by itself: a proof grows old without any object changing."""
        return self.standing.until is not None and now >= self.standing.until

    @property
    def needs_decision(self) -> bool:
        """Whether a person should look at it."""
        return self.state in NEEDS

    def says(self, text: str) -> bool:
        """Whether a text is in what identifies the machine."""
        return any(text in part.lower() for part in (self.name, self.node, self.image, self.waits, self.tee))


@dataclass(frozen=True, slots=True)
class Filter:
    """What somebody asked to see."""

    state: str = ""
    pool: str = ""
    words: str = ""
    page: int = 1
    tee: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """The filter of an address; what is not understood is left out."""
        state, page = query.get("state", ""), query.get("page", "")
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1
        valid = state if state in _ORDER or state == "inbox" else ""
        return cls(
            valid, query.get("pool", "")[:253], query.get("q", "").strip().lower()[:100], max(1, number),
            query.get("tee", "")[:32],
        )  # fmt: skip

    @property
    def narrows(self) -> bool:
        """Whether anything is left out."""
        return bool(self.state or self.pool or self.words or self.tee)

    def fits(self, row: Row) -> bool:
        """Whether a machine is asked for."""
        if self.state and row.state != self.state and not (self.state == "inbox" and row.needs_decision):
            return False
        if (self.pool and row.pool != self.pool) or (self.tee and row.tee != self.tee):
            return False
        return not self.words or row.says(self.words)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What one page shows of all machines."""

    rows: Sequence[Row]
    matching: int
    total: int
    page: int
    pages: int
    counts: Mapping[str, int]
    pools: Sequence[str]
    tees: Sequence[str]
    inbox: Sequence[Row]
    needing: int
    proved: int


@dataclass(slots=True)
class Rows:
    """Rows of machines, made again only when the machine, its node or what decides its standing changed."""

    _made: dict[str, tuple[str, str, StandingRules, Row]] = field(default_factory=dict)

    def of(
        self, machines: Iterable[JsonObject], nodes: Iterable[JsonObject], rules: StandingRules, now: datetime
    ) -> list[Row]:
        """A row for each machine, those that need somebody first."""
        by_name = {node["metadata"]["name"]: node for node in nodes}
        fresh: dict[str, tuple[str, str, StandingRules, Row]] = {}
        for machine in machines:
            node = by_name.get((machine.get("status") or {}).get("nodeName") or "")
            uid, mine, its = machine["metadata"]["uid"], _version(machine), _version(node)
            made = self._made.get(uid)
            if made is None or made[:3] != (mine, its, rules) or made[3].over(now):
                row = row_of(machine, node, rules.standing(view(machine, Machine), now))
                made = (mine, its, rules, row)
            fresh[uid] = made
        self._made = fresh
        rows = (made[3] for made in fresh.values())
        return sorted(rows, key=lambda row: (_ORDER[row.state], row.node or row.name))


def survey(rows: Sequence[Row], chosen: Filter, inbox_rows: int = 10) -> Fleet:
    """The part of the fleet that a filter asks for, and what stands beside it."""
    matches = [row for row in rows if chosen.fits(row)]
    pages = max(1, -(-len(matches) // PAGE_ROWS))
    page = min(chosen.page, pages)
    counts = dict.fromkeys(STATES, 0)
    for row in rows:
        counts[row.state] += 1
    needing = [row for row in rows if row.needs_decision]
    return Fleet(
        matches[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], len(matches), len(rows), page, pages, counts,
        sorted({row.pool for row in rows if row.pool}), sorted({row.tee for row in rows if row.tee}),
        needing[:inbox_rows], len(needing), sum(row.standing.proved for row in rows),
    )  # fmt: skip


def row_of(machine: Object, node: Object | None, standing: MachineStanding) -> Row:
    """One machine, with its node where it has one."""
    typed = view(machine, Machine)
    state, waits = state_of(standing, node)
    return Row(
        name=typed.metadata.name, node=typed.status.node_name, pool=typed.status.pool, tee=typed.status.tee, state=state,
        standing=standing, image=typed.status.properties.get("image", ""), last_proof=typed.status.last_attested or "",
        waits=waits,
    )  # fmt: skip


def state_of(standing: MachineStanding, node: Object | None) -> tuple[str, str]:
    """The state of a machine on the page, and what it waits for in a sentence: its standing, and its node once it proved."""
    match standing.state:
        case State.PROVED:
            return _node_state(node)
        case State.WAITING if standing.asks:
            return "pending", standing.message if standing.reason == CHIP_BARRED else "somebody to approve it"
        case State.WAITING:
            return "waiting", "its first proof" if standing.reason == NEVER else standing.message
        case State.REFUSED | State.STALE | State.OVERRIDDEN | State.REVOKED:
            return str(standing.state).lower(), standing.message
    assert_never(standing.state)


def _node_state(node: Object | None) -> tuple[str, str]:
    if node is None:
        return "waiting", "joining the cluster"
    node_facts = facts(node)
    if node_facts.degraded:
        return "degraded", node_facts.reason or "its agent reports a problem"
    if node_facts.managed and not node_facts.done:
        return "working", f"reaching {node_facts.desired}"
    return ("proved", "") if node_facts.ready else ("working", "its node to be ready")


def _version(obj: Object | None) -> str:
    return str(obj["metadata"]["resourceVersion"]) if obj is not None else ""
