"""What can go wrong in a simulated cluster, and be put right again: one table, used by the page, the command line and the tests.

Each fault acts on the world and on nothing else: it changes what a machine boots, what lies on its disk, what its cable carries,
what the vendor answers, what the clock says. The doors and the loops then do what they would do to a real machine.

    fault.py       what a fault is, and the ground that it acts on
    boots.py       changed boot loader, old firmware, debug mode, replayed evidence: another boot
    disks.py       an edited file
    networks.py    a cable that is pulled
    tickets.py     a stranger with a copy of the ticket
    vendors.py     a vendor whose service does not answer
    clocks.py      a clock that leaps
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.sim.faults.boots import BOOTS
from fastness.sim.faults.clocks import ClockLeap
from fastness.sim.faults.disks import EditedFile
from fastness.sim.faults.fault import Fault, Ground
from fastness.sim.faults.networks import CutNetwork
from fastness.sim.faults.tickets import StolenTicket
from fastness.sim.faults.vendors import StoppedVendor

FAULTS: Final[Mapping[str, Fault]] = {
    fault.kind.id: fault for fault in (*BOOTS, StolenTicket(), EditedFile(), CutNetwork(), StoppedVendor(), ClockLeap())
}
CONTAINERS: Final = frozenset({"edited-file", "network-cut", "clock-jump"})
"""Those that mean something where machines attest nothing."""

__all__ = ["CONTAINERS", "FAULTS", "Fault", "Ground"]
