"""Lines in the audit log about what is done beside the API: decisions on the page, and all that is asked of the simulator.

A decision leaves the line that the same write over the API would leave. A request to the simulator is no write of an object, so
its line names what there is instead: the machine, the fault or the number, as `virtualmachines` of `simulator.fastness.dev`.
Refused ones have their line too; looking leaves none.
"""

from __future__ import annotations

from typing import Final

from fastness.apiserver import ApiServer, AuditEntry, Target
from fastness.http import Request
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access import User
from fastness.observe import logs
from fastness.page.acts import MAX_NAME, Act, AuditAct
from fastness.page.simulator import aimed_at
from fastness.runtime.clock import Entropy
from fastness.sim.control_client import AuditHook

SIMULATOR: Final = "simulator.fastness.dev"
VIRTUAL_MACHINES: Final = "virtualmachines"
HATCH: Final = "fastness sim"


def audit_of_page(server: ApiServer) -> AuditAct:
    """What the page reports."""

    def audit(request: Request, user: User, act: Act, code: int) -> None:
        machine = Target(MACHINE.group, MACHINE.version, MACHINE.plural, NAMESPACE, act.name)
        target = _virtual(act.name) if act.simulator else machine
        server.audit.write(AuditEntry.of(request, user, "", logs.current_correlation(), act.verb, target, code))

    return audit


def audit_of_control_socket(server: ApiServer, entropy: Entropy) -> AuditHook:
    """What comes through the socket of the simulator; its users are those of this machine."""

    def audit(user: int, request: JsonObject, code: int) -> None:
        target = _virtual(aimed_at(request)[:MAX_NAME])
        server.audit.write(
            AuditEntry(
                entropy.uid(), f"system:local:{user}", "", str(request["verb"]), target, HATCH, dry_run=False, code=code
            )
        )

    return audit


def _virtual(name: str) -> Target:
    return Target(SIMULATOR, "v1", VIRTUAL_MACHINES, "", name)
