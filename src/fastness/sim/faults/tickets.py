"""A stolen ticket: somebody copied the user-data of a machine and tries to join with it, from hardware that nobody vouches for.

The stranger does what the machine did: it shows the ticket at enrolment, and it asks the config server outright. Both say no, the
refusal is on the record with the name of the ticket, and the machine that was robbed does not notice. Undoing withdraws the
ticket: the pool gets a new one, and the copy opens nothing, not even a conversation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

import httpx

from fastness.agent.boot.boot import BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import DoorUnreachable, RetryBudget
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import ticket_hash
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import NotFound, Unavailable
from fastness.page.simulator import FaultKind
from fastness.protocol.pointer import SERVER_HEADER
from fastness.sim.faults.fault import FaultContext, Outcome, needed
from fastness.sim.first_boot import ACCEPT
from fastness.sim.machines import VirtualMachine
from fastness.sim.platform import Fleet, Proofs
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor

PATIENCE: Final = 15.0


class Stolen(NamedTuple):
    """What a copy of user-data tells: the ticket, and where it is shown."""

    ticket: SecretText
    server: str


class StolenTicket:
    """A stranger with a copy."""

    kind: FaultKind = FaultKind(
        "stolen-ticket", "Stolen ticket",
        "A stranger copies the ticket of the machine and tries to join with it. It gets nothing; the attempt is on the record.",
        "machine",
    )  # fmt: skip
    repeatable = False

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """Every machine has user-data."""
        return None

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Try to get in; raises Unavailable when no door answers."""
        target = needed(machine)
        fleet = target.fleet
        assert fleet.proofs is not None  # noqa: S101  # offered only where machines attest
        assert context.forger is not None  # noqa: S101  # likewise
        stolen = stolen_from(await target.user_data())
        reason = await _enrol(fleet, fleet.proofs, context.forger, stolen, target.spec.pool)
        status = await _fetch(fleet, fleet.proofs, stolen, target.spec.pool)
        message = f"a stranger showed the ticket of {target.name}: enrolment said {reason}, the config server {status}"
        return Outcome(message, {"ticket": str(ticket_hash(stolen.ticket)), "reason": reason, "status": status})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Withdraw the ticket; the control plane mints a new one."""
        cluster = context.machines.fleet.cluster
        for ticket in (await cluster.list(JOIN_TICKET.resource)).items:
            # By its hash: the memory of a fault lies in a file, and must hold no ticket.
            if ticket["spec"].get("secretHash") == memory["ticket"]:
                with suppress(NotFound):
                    await cluster.delete(JOIN_TICKET.resource, ticket["metadata"]["name"])
        return "the ticket was withdrawn; new machines of the pool get another one"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """The stranger has tried already."""


def stolen_from(user_data: bytes) -> Stolen:
    """What a thief finds in user-data; raises Unavailable when there is nothing."""
    try:
        entry = json.decode(user_data)["ignition"]["config"]["merge"][0]
        headers = {str(header["name"]): str(header["value"]) for header in entry["httpHeaders"]}
        return Stolen(SecretText(headers["Authorization"].removeprefix("Bearer ")), headers[SERVER_HEADER])
    except (JsonError, KeyError, IndexError, TypeError) as error:
        raise Unavailable("the user-data of the pool holds no ticket yet") from error


async def _enrol(fleet: Fleet, proofs: Proofs, forger: SimVendor, stolen: Stolen, pool: str) -> str:
    """The code that the stranger is refused with; `let-in` would be a defect."""
    stranger = SimAttester(forger.chip("tpm").boot())
    patience = RetryBudget(fleet.clock, fleet.entropy, PATIENCE, pause=0.2)
    try:
        await boot_once(stranger, BootRequest(pool, stolen.ticket, stolen.server, ACCEPT), proofs.trust(), patience)
    except BootRefused as refused:
        return refused.reason
    except DoorUnreachable as error:
        raise Unavailable(error.message) from error
    return "let-in"


async def _fetch(fleet: Fleet, proofs: Proofs, stolen: Stolen, pool: str) -> int:
    """What the config server answers to the ticket alone."""
    headers = {"authorization": f"Bearer {stolen.ticket.reveal()}", "accept": ACCEPT}
    try:
        async with httpx.AsyncClient(verify=proofs.trust().tls, trust_env=False, timeout=PATIENCE) as http:
            answer = await http.get(f"{fleet.doors[-1]}/config/{pool}", headers=headers)
            return answer.status_code
    except httpx.HTTPError as error:
        raise Unavailable(f"the config server cannot be reached: {type(error).__name__}") from error
