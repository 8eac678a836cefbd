"""A simulator for tests of the page: real enough to be asked everything, and it does nothing but remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from fastness.kube.errors import BadRequest, Conflict, NotFound
from fastness.page.simulator import ActiveFault, FaultKind, VirtualRow

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = (
    FaultKind(
        "loader",
        "Change the boot loader",
        "The machine boots another loader and cannot prove the approved one.",
        "machine",
    ),
    FaultKind("file", "Edit a file", "Somebody edits a file of the configuration on the machine.", "machine"),
    FaultKind("cut", "Cut the network", "The machine reaches nobody.", "machine"),
    FaultKind("vendor", "Stop the vendor's service", "Documents of the vendor cannot be fetched.", "cluster"),
)


@dataclass
class MemorySimulator:
    """Keeps machines and faults in memory."""

    rows: list[VirtualRow] = field(default_factory=list)
    faults: list[ActiveFault] = field(default_factory=list)
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def machines(self) -> Sequence[VirtualRow]:
        """Every machine with its faults."""
        return [
            replace(row, faults=tuple(fault for fault in self.faults if fault.machine == row.name)) for row in self.rows
        ]

    def kinds(self) -> Sequence[FaultKind]:
        """What can be done."""
        return KINDS

    def fleet_faults(self) -> Sequence[ActiveFault]:
        """What was done to the cluster."""
        return [fault for fault in self.faults if not fault.machine]

    async def do(self, kind: str, machine: str = "") -> str:
        """Remember a fault."""
        self.calls.append(("do", kind, machine))
        if kind not in {entry.id for entry in KINDS}:
            raise BadRequest(f"there is no fault {kind}")
        if machine:
            self._known(machine)
        if any((entry.kind, entry.machine) == (kind, machine) for entry in self.faults):
            raise Conflict(f"{kind} is done already")
        self.faults.append(ActiveFault(f"fault-{len(self.calls)}", kind, machine, SINCE))
        return f"{kind} done to {machine or 'the cluster'}"

    async def undo(self, fault: str) -> str:
        """Forget a fault."""
        self.calls.append(("undo", fault))
        matches = [entry for entry in self.faults if entry.id == fault]
        if not matches:
            raise NotFound(f"there is no fault {fault}")
        self.faults.remove(matches[0])
        return f"{matches[0].kind} undone"

    async def add(self, count: int, tee: str = "", pool: str = "") -> str:
        """More machines."""
        self.calls.append(("add", str(count), tee))
        start = len(self.rows)
        self.rows += [VirtualRow(f"worker-{start + at}", "", tee or "tpm", True, True) for at in range(count)]
        return f"{count} machines start"

    async def remove(self, machine: str) -> str:
        """One machine less."""
        self.calls.append(("remove", machine))
        self.rows.remove(self._known(machine))
        return f"{machine} is gone"

    async def reboot(self, machine: str) -> str:
        """Nothing but a sentence."""
        self.calls.append(("reboot", machine))
        return f"{self._known(machine).name} boots again"

    def _known(self, machine: str) -> VirtualRow:
        for row in self.rows:
            if row.name == machine:
                return row
        raise NotFound(f"there is no virtual machine {machine}")
