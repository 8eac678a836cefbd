"""A network that is cut: the machine goes on running and nobody hears of it. Its proof grows old, its node stops being ready."""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.page.simulator import FaultKind
from fastness.sim.faults.fault import FaultContext, Outcome, needed
from fastness.sim.machines import VirtualMachine


class CutNetwork:
    """A cable that is pulled."""

    kind: FaultKind = FaultKind(
        "network-cut", "Cut network",
        "The network cable is pulled. The node stops being ready; after two missed rounds it no longer counts as attested.",
        "machine",
    )  # fmt: skip
    repeatable = False

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """Every machine has a cable."""
        return None

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Pull it."""
        target = needed(machine)
        await target.cut()
        return Outcome(f"{target.name} is cut off", {})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Put it in again."""
        target = needed(machine)
        await target.connect()
        return f"{target.name} is connected again"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """The cable still lies on the floor."""
        needed(machine).cable.pull()
