"""What a fault is: done to a machine or to the cluster, remembered, undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Conflict
from fastness.page.simulator import FaultKind
from fastness.sim.announce import VendorDocuments
from fastness.sim.clock import LeapingClock
from fastness.sim.fleet import RunningMachines
from fastness.sim.machines import VirtualMachine
from fastness.sim.tee.vendor import SimVendor


@dataclass(frozen=True, slots=True)
class FaultContext:
    """What faults act on. `documents` is where the vendor publishes, `forger` a maker of chips that nobody knows."""

    machines: RunningMachines
    clock: LeapingClock
    documents: VendorDocuments | None = None
    forger: SimVendor | None = None


class Outcome(NamedTuple):
    """A sentence for the person who asked, and what undoing needs."""

    said: str
    memory: JsonObject


class Fault(Protocol):
    """One thing that can go wrong. `machine` is there for faults of machines, None for those of the cluster."""

    @property
    def kind(self) -> FaultKind:
        """Its name, and what to expect of it."""

    @property
    def repeatable(self) -> bool:
        """Whether it can be done again before it was undone."""

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """Why it cannot be done to this machine; None when it can."""

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Let it happen; raises ApiError."""

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Put it right; what happened, in a sentence; raises ApiError."""

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """It was done in an earlier run: be as it was, before the machine is switched on."""


def needed(machine: VirtualMachine | None) -> VirtualMachine:
    """The machine of a fault that needs one; raises Conflict when it was thrown away meanwhile."""
    if machine is None:
        raise Conflict("the machine is gone")
    return machine
