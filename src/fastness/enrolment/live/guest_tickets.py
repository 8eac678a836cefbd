"""The ticket of a guest is counted when the guest has proved something: at its first affirmed verdict.

    conclusion = await admissions.counted(machine, conclusion)      # refused when the ticket has no use left

A guest key is software until evidence shows hardware behind it. Counted at enrolment, ten keys that somebody made up used up the
ticket of a pool. Machines with a TPM are counted there: they opened a credential.

* Once per Machine: one that attested before is not asked again, and a Machine that was counted costs nothing when it repeats.
* A ticket that expired since the machine enrolled still counts: it was good when it was shown, and people take days to approve.
* A ticket that was deleted ends what it began. The machine enrols again with another one, and takes that one's place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastness.attestation.evidence.checks import Check, Result
from fastness.attestation.verdict.conclude import Conclusion
from fastness.enrolment.live.tickets import TicketProblem, TicketSpent, TicketUses
from fastness.enrolment.unproved import counted_at_enrolment
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock

USED_UP: Final = "ticket-used-up"
GONE: Final = "ticket-required"
# Answered with 401: another ticket helps.
TICKET_CODES: Final = frozenset({USED_UP, GONE})


class Admissions:
    """Counts tickets at first verdicts."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.uses = TicketUses(cluster, clock)

    async def counted(self, machine: Machine, conclusion: Conclusion) -> Conclusion:
        """The same conclusion, or a refusal when the ticket of a machine that is affirmed first has no use left.

        Raises ApiError.
        """
        status = machine.status
        # Only what is affirmed counts: evidence that is refused must not use up a ticket either.
        if not conclusion.accepted or status.last_attested or counted_at_enrolment(status.tee):
            return conclusion
        try:
            await self.uses.spend(status.ticket, status.ticket_uid, machine.metadata.name, expired=True)
        except TicketSpent as spent:
            return _refused(conclusion, spent.problem, status.ticket)
        return conclusion


def _refused(conclusion: Conclusion, problem: TicketProblem, ticket: str) -> Conclusion:
    used_up = problem is TicketProblem.USED_UP
    hint = f"Other machines were faster: JoinTicket {ticket} names them." if used_up else "It was deleted."
    check = Check(
        "ticket", Result.FAIL, USED_UP if used_up else GONE, ticket, "a join ticket with a use left", f"JoinTicket {ticket}",
        f"{hint} Let the machine enrol again with another ticket.",
    )  # fmt: skip
    return replace(
        conclusion, checks=(*conclusion.checks, check), result="Refused", reason=check.code, accepted=False, retry=False
    )
