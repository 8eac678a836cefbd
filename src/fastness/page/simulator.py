"""What the page asks of a simulator, where the machines of a cluster are virtual ones.

The page shows what there is and hands on what somebody asks for; who can do it stands behind a Protocol, because services never
know the simulator. Rules:

* A fault is one thing that was done and can be undone: it has an id of its own, and stays listed until it is undone or ends by
  itself (a ticket is stolen once).
* `do`, `undo`, `add`, `remove` and `reboot` answer with one sentence about what happened, for the person who asked.
* What cannot be done is an ApiError with a message and a hint: NotFound for a machine or fault that is not there, BadRequest for
  a kind that does not fit, Conflict for what is done already.
* A machine is named as its directory is, everywhere: in rows, in faults, in what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

Scope = Literal["machine", "cluster"]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One thing that can go wrong; `title` stands on a button, `explanation` says what is done and what to expect."""

    id: str
    title: str
    explanation: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class ActiveFault:
    """Something that was done and not undone; `machine` is empty for the whole cluster."""

    id: str
    kind: str
    machine: str
    since: datetime


@dataclass(frozen=True, slots=True)
class VirtualRow:
    """One virtual machine; `node` is empty until it joined."""

    name: str
    node: str
    tee: str
    running: bool
    network: bool
    faults: tuple[ActiveFault, ...] = ()


class Simulator(Protocol):
    """Who holds the virtual machines."""

    def machines(self) -> Sequence[VirtualRow]:
        """Every virtual machine, by name."""
        ...

    def kinds(self) -> Sequence[FaultKind]:
        """What can be done, in the order in which it is offered."""
        ...

    def fleet_faults(self) -> Sequence[ActiveFault]:
        """What was done to the whole cluster and not undone."""
        ...

    async def do(self, kind: str, machine: str = "") -> str:
        """Let something go wrong, with one machine or, without a name, with the cluster; raises ApiError."""
        ...

    async def undo(self, fault: str) -> str:
        """Put a fault right again; raises ApiError."""
        ...

    async def add(self, count: int, tee: str = "", pool: str = "") -> str:
        """Start further machines of a pool (worker if none is named), of one kind or mixed; raises ApiError."""
        ...

    async def remove(self, machine: str) -> str:
        """Stop a machine and throw it away; raises ApiError."""
        ...

    async def reboot(self, machine: str) -> str:
        """Boot a machine again: it has to prove itself anew; raises ApiError."""
        ...


def aimed_at(words: Mapping[str, Any]) -> str:
    """What a request to the simulator is about, as a name: a fault that is done or undone, a machine, or how many."""
    machine, kind = str(words.get("machine") or ""), str(words.get("kind") or "")
    named = ".".join(part for part in (machine, kind) if part)
    return str(words.get("fault") or "") or named or str(words.get("count") or "")
