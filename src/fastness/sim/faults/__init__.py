"""What can go wrong in a simulated cluster, and be put right again: one table, used by the page, the command line and the tests.

    boots.py     Faults of a boot: somebody changed what the machine starts with, or how, and it boots again
    clocks.py    A clock that leaps: proofs, tickets and documents grow old at once, for the whole cluster
    disks.py     An edited file: somebody writes into a file that the configuration of the machine holds. The agent sees drift
    fault.py     What a fault is: done to a machine or to the cluster, remembered, undone
    networks.py  A network that is cut: the machine goes on running and nobody hears of it
    tickets.py   A stolen ticket: somebody copied the user-data of a machine and tries to join with it
    vendors.py   A vendor whose service does not answer
    volumes.py   What a host does to an encrypted volume while its machine is off

Each fault acts on the world and on nothing else: it changes what a machine boots, what lies on its disk, what its cable carries,
what the vendor answers, what the clock says. The doors and the loops then do what they would do to a real machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.sim.faults.boots import BOOTS
from fastness.sim.faults.clocks import ClockLeap
from fastness.sim.faults.disks import EditedFile
from fastness.sim.faults.fault import Fault, FaultContext
from fastness.sim.faults.networks import CutNetwork
from fastness.sim.faults.tickets import StolenTicket
from fastness.sim.faults.vendors import StoppedVendor
from fastness.sim.faults.volumes import VOLUMES

FAULTS: Final[Mapping[str, Fault]] = {
    fault.kind.id: fault
    for fault in (*BOOTS, *VOLUMES, StolenTicket(), EditedFile(), CutNetwork(), StoppedVendor(), ClockLeap())
}
CONTAINERS: Final = frozenset({"edited-file", "network-cut", "clock-jump"})
"""Those that mean something where machines attest nothing."""

__all__ = ["CONTAINERS", "FAULTS", "Fault", "FaultContext"]
