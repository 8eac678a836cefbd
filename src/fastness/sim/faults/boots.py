"""Faults of a boot: somebody changed what the machine starts with, or how, and it boots again.

The machine proves what it booted, so the doors see it at once and refuse it. Undone, it boots again as it should, and nobody has
to touch it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.page.simulator import FaultKind
from fastness.sim.faults.fault import FaultContext, Outcome, needed
from fastness.sim.hardware import TEES
from fastness.sim.machines import VirtualMachine


@dataclass(frozen=True, slots=True)
class BootFault:
    """A condition that a machine boots under; `tees` are those that tell of it."""

    kind: FaultKind
    condition: str
    tees: tuple[str, ...] = TEES
    repeatable: bool = False

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """A TEE that does not have it says nothing about it."""
        tee = needed(machine).spec.tee
        if tee in self.tees:
            return None
        return f"evidence of a {tee} says nothing about it; choose a machine with {' or '.join(self.tees)}"

    def _set(self, holds: bool) -> dict[str, Any]:
        return {self.condition: holds}

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Change what is booted, and boot."""
        target = needed(machine)
        target.conditions = replace(target.conditions, **self._set(True))
        target.switch()
        return Outcome(f"{target.name} boots again: {self.kind.title.lower()}", {})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Change it back, and boot."""
        target = needed(machine)
        target.conditions = replace(target.conditions, **self._set(False))
        target.switch()
        return f"{target.name} boots again, without the fault: {self.kind.title.lower()}"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """What was changed on the machine is still changed."""
        target = needed(machine)
        target.conditions = replace(target.conditions, **self._set(True))


BOOTS: Final = (
    BootFault(
        FaultKind(
            "changed-boot-loader", "Changed boot loader",
            "Somebody replaces the boot loader and reboots the machine. What it measures is no longer what was approved.",
            "machine",
        ),
        "boot_loader",
    ),
    BootFault(
        FaultKind(
            "old-firmware", "Old firmware",
            "The host goes back to firmware with known holes and restarts the machine. Its vendor says that it is out of date.",
            "machine",
        ),
        "old_firmware", ("snp", "tdx"),
    ),
    BootFault(
        FaultKind(
            "debug-mode", "Debug mode",
            "The host starts the machine so that it can look into its memory. The processor says so in the evidence.",
            "machine",
        ),
        "debug", ("snp", "tdx"),
    ),
    BootFault(
        FaultKind(
            "replayed-evidence", "Replayed evidence",
            "The machine answers every challenge with evidence that was recorded before. It does not fit the challenge.",
            "machine",
        ),
        "replay",
    ),
)  # fmt: skip
