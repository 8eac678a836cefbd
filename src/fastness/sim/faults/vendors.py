"""A vendor whose service does not answer: the documents about its processors cannot be had, and without them nobody can judge.

Trust domains need Intel's documents for every appraisal. Whoever proves itself meanwhile is asked to come again and does not
count as attested until the service answers; nothing that was released before is taken back. A cluster that keeps documents, as
real ones do, would get along until they run out.
"""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.page.simulator import FaultKind
from fastness.sim.announce import VendorDocuments
from fastness.sim.faults.fault import FaultContext, Outcome
from fastness.sim.machines import VirtualMachine


class StoppedVendor:
    """The service of the simulated vendor is down, and nothing of it was kept."""

    kind: FaultKind = FaultKind(
        "vendor-stopped", "Vendor's service stopped",
        "The vendor's documents about its processors cannot be had. Machines with tdx are asked to come again until they can.",
        "cluster",
    )  # fmt: skip
    repeatable = False

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """It is there for the whole cluster."""
        return None

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Withdraw the documents, and let those who need them feel it."""
        await _desk(context).withdraw()
        _prove(context)
        return Outcome("the vendor's service does not answer any more", {})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Publish them again, and let machines prove themselves at once."""
        await _desk(context).publish()
        _prove(context)
        return "the vendor's service answers again"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """It is still down."""
        _desk(context).closed = True


def _desk(context: FaultContext) -> VendorDocuments:
    assert context.documents is not None  # noqa: S101  # a cluster whose machines attest has a vendor
    return context.documents


def _prove(context: FaultContext) -> None:
    for machine in context.machines:
        if machine.spec.tee == "tdx":
            machine.prove_now()
