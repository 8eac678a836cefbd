"""The chips of the cluster's machines, as the verifier asks about them: who is on one, and whether a newcomer waits.

    wait = chips.why_wait(machine, chip, now)
    await chips.approved_change(machine, chip)      # before the new chip is written on the Machine
    # evidence of another chip than the pinned one does not come here: attestation.verdict.dispute

The decisions are in `attestation.machine.chip`; this reads Machines by chip from the cache, so a verdict costs no request.
"""

from __future__ import annotations

from datetime import datetime

from fastness.attestation.live.distrusts import Distrusts
from fastness.attestation.machine.chip import INDEX, Wait, kept_against, on_chip, standing_against, why_wait
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.informers import Informer, Informers
from fastness.record.entry import Entry, Record


class Chips:
    """Knows which Machines are on which chip."""

    def __init__(self, informers: Informers, distrusts: Distrusts, record: Record) -> None:
        self._machines: Informer = informers.of(MACHINE.resource, indexers={INDEX: on_chip})
        self._distrusts = distrusts
        self._record = record

    def why_wait(self, machine: Machine, chip: str, now: datetime) -> Wait | None:
        """Why a machine whose evidence comes from this chip waits for a person; None when it need not."""
        if not chip or chip == machine.status.chip:
            return None
        peers = [view(peer, Machine) for peer in self._machines.by_index(INDEX, chip)]
        live = [entry for entry in self._distrusts.all if entry.live(now)]
        return why_wait(machine, chip, standing_against(peers, live) or kept_against(chip, live))

    async def approved_change(self, machine: Machine, chip: str) -> None:
        """Put it on the record that a machine changes its chip, by whose approval; raises RecordError."""
        if not chip or machine.status.chip in ("", chip):
            return
        detail = {"from": machine.status.chip, "to": chip, "reason": machine.spec.chip_reason[:256]}
        name = machine.metadata.name
        await self._record.append(
            Entry("chip-changed", machine.status.key_thumbprint, f"machine/{name}", detail=detail)
        )
