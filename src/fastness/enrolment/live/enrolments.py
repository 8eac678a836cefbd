"""Enrolment over the cluster: ticket, proof, count, record, Machine; in this order.

    found = await enrolments.admit(ticket)               # before anything else is read or computed
    answer = await enrolments.begin(found, request)
    enrolled = await enrolments.complete(completion)

Rules:

* Nothing is created, and nothing durable is written, before the ticket was good and the key was proved.
* A use of the ticket is counted after the proof and before the Machine where the key was proved to live in a TPM; a guest is
  counted when its evidence is affirmed (`guest_tickets.py`). A machine that is known costs nothing.
* The record has the decision before the Machine exists. Refusals of holders of a ticket are recorded too; strangers without one
  are only counted, or they could fill the record.
* Repeating any step gives the same Machine.
* How many machines of a pool may wait for their first attestation is bounded, so that a leaked ticket cannot fill the cluster.
  At the bound the oldest that proved nothing gives way (`enrolment.unproved`); `enrolment.loops.machines` sweeps
  those that never come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from fastness.attestation.evidence.roots import SimulatedMaker, not_simulated
from fastness.attestation.live.caches import Distrusts
from fastness.attestation.live.machines import OTHER_TYPE, IdentityConflict, MachineWriter, find_machine, known_machine
from fastness.attestation.machine.machine import Newcomer
from fastness.attestation.verdict.distrust import About, Distrusted
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.enrolment import (
    SECRET_BYTES,
    Enrolment,
    EnrolmentRefused,
    Invitation,
    Terms,
    begin,
    prove,
    thumbprint_of,
)
from fastness.enrolment.live.tickets import TicketCache, TicketCheck, TicketProblem, TicketSpent, TicketUses, limit_of
from fastness.enrolment.live.tpm_makers import CONFIG_MAPS, TpmMakers
from fastness.enrolment.unproved import MOST_UNPROVED, bound, counted_at_enrolment, giving_way
from fastness.keys.authorities import HERE
from fastness.kinds.fastness_dev.cluster import CLEVIS_PIN, CONFIDENTIAL_CLUSTER, ConfidentialCluster, Delivery
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind, key_kind
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.protocol.enrolment import Completion, Request
from fastness.protocol.machine_names import machine_name
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock, Entropy

__all__ = ["DoorUrls", "Enrolled", "Enrolments", "Sealer", "Sources", "find_machine", "known_machine"]

# The seal names what it is for: a text that another protocol sealed with the same keys is not an enrolment.
PURPOSE: Final = "enrol"
# Of those that could give way: each costs a write, and a request must end.
YIELDING: Final = 8
WAITING: Final = "waiting-for-attestation"
BY_ID: Final = "id-that-a-machine-was-told"
_TICKET_REFUSALS: Final = {
    TicketProblem.UNKNOWN: ("ticket-required", "show a join ticket"),
    TicketProblem.EXPIRED: ("ticket-expired", "this join ticket has expired"),
    TicketProblem.USED_UP: ("ticket-used-up", "this join ticket was used as often as it may be"),
    TicketProblem.WRONG_POOL: ("wrong-pool", "this ticket is for another pool"),
}


class Sealer(Protocol):
    """The door MAC keys (`keys.mac_keys`): text that travels with a machine and comes back unchanged."""

    def write(self, purpose: str, payload: bytes) -> str:
        """The payload with a MAC, as text."""

    def read(self, purpose: str, text: str) -> bytes | None:
        """The payload, or None when no door of this cluster wrote the text for this purpose lately."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What enrolment reads from caches."""

    tickets: Informer
    confidential: Informer
    machines: Informer
    maps: Informer
    distrusts: Distrusts

    @classmethod
    async def of(cls, informers: Informers) -> Sources:
        """The caches, filled."""
        sources = cls(
            informers.of(JOIN_TICKET.resource),
            informers.of(CONFIDENTIAL_CLUSTER.resource),
            informers.of(MACHINE.resource, indexers={WAITING: _waiting, BY_ID: _identity}),
            informers.of(CONFIG_MAPS, HERE),
            Distrusts(informers),
        )
        await sources.distrusts.synced()
        for informer in (sources.tickets, sources.confidential, sources.machines, sources.maps):
            await informer.synced()
        return sources


@dataclass(frozen=True, slots=True)
class DoorUrls:
    """Where a machine goes next: to the broker to attest, and to it or the gate for its configuration."""

    broker: str = ""
    gate: str = ""
    # Where this door is for machines, where somebody said so.
    enrolment: str = ""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A machine that is known from now on; `created` says whether it was not before."""

    machine: JsonObject
    created: bool

    def answer(self) -> JsonObject:
        """What the machine is told about itself."""
        typed = view(self.machine, Machine)
        return {
            "machine": typed.metadata.uid, "name": typed.metadata.name, "nodeName": typed.status.node_name,
            "pool": typed.status.pool, "state": str(membership_of(typed)),
        }  # fmt: skip


class Enrolments:
    """Takes machines in."""

    def __init__(
        self,
        cluster: Cluster,
        sources: Sources,
        sealer: Sealer,
        record: Record,
        clock: Clock,
        entropy: Entropy,
        *,
        simulated: Callable[[], SimulatedMaker] = not_simulated,
        most_waiting: int = MOST_UNPROVED,
        urls: Callable[[], DoorUrls] = DoorUrls,
    ) -> None:
        self.sources = sources
        self.sealer = sealer
        self._record = record
        self._clock = clock
        self._entropy = entropy
        self._simulated = simulated
        self._makers = TpmMakers(sources.maps)
        self._most_waiting = most_waiting
        self.urls = urls
        self._writer = MachineWriter(cluster, clock, entropy)
        self.uses = TicketUses(cluster, clock)
        self._tickets = TicketCache(cluster, sources.tickets, clock)

    def doors(self) -> JsonObject:
        """Where an enrolled machine goes next, as its answer says it; empty where this door was not told."""
        urls = self.urls()
        if not urls.broker:
            return {}
        cluster = self.sources.confidential.get("", "cluster")
        delivery = view(cluster, ConfidentialCluster).spec.delivery if cluster else Delivery()
        return {"doors": {"broker": urls.broker, "gate": urls.gate, "via": delivery.via}}

    async def admit(self, text: str) -> TicketCheck:
        """The ticket that was shown; one that is used up may still be a retry of its user.

        Raises EnrolmentRefused, and TicketUnclear when a machine must not be turned away for good.
        """
        # For any pool: which one the ticket is for, the ticket says, and not the machine.
        checked = await self._tickets.look_up(text, None)
        if checked.problem not in (None, TicketProblem.USED_UP):
            refused = EnrolmentRefused(*_TICKET_REFUSALS[checked.problem])
            refused.ticket = (checked.name, checked.uid)
            raise refused
        return checked

    async def begin(self, ticket: TicketCheck, request: Request) -> JsonObject:
        """The answer to the first message; raises EnrolmentRefused, RecordError."""
        invitation = Invitation(ticket.name, ticket.uid, ticket.pool)
        who = f"ticket:{ticket.name}"
        try:
            who = thumbprint_of(request)
            # The machine whose answer was lost comes again with the ticket that it used up itself.
            if ticket.problem is TicketProblem.USED_UP and not ticket.used_by(machine_name(key_kind(request.tee), who)):
                raise used_up()
            secret = SecretBytes(self._entropy.token(SECRET_BYTES))
            begun = begin(request, invitation, self.terms(ticket.pool), self._clock.now(), secret, self._entropy)
        except EnrolmentRefused as refused:
            await self.note_refusal(refused, invitation, who, request.tee)
            raise
        return {"enrolment": self.sealer.write(PURPOSE, begun.enrolment.encode()), **begun.question}

    async def complete(self, completion: Completion) -> Enrolled:
        """The machine that the second message proves; raises EnrolmentRefused, RecordError, ApiError."""
        sealed = self.sealer.read(PURPOSE, completion.enrolment)
        if sealed is None:
            raise EnrolmentRefused("enrolment-invalid", "this door did not make that enrolment: begin again")
        state = Enrolment.decode(sealed)
        try:
            newcomer = prove(state, completion, self.terms(state.pool), self._clock.now())
            return await self.take_in(newcomer)
        except EnrolmentRefused as refused:
            invitation = Invitation(state.ticket, state.ticket_uid, state.pool)
            await self.note_refusal(refused, invitation, state.thumbprint, state.tee)
            raise

    async def take_in(self, newcomer: Newcomer) -> Enrolled:
        """The Machine of a newcomer, made if there is none; raises EnrolmentRefused, RecordError, ApiError."""
        try:
            # Fresh from the API: a door that answers from its cache would make a second use of the ticket out of a repeated
            # message.
            machine_object = await self._writer.existing(newcomer)
            if machine_object is not None and (machine := view(machine_object, Machine)).status.key_thumbprint:
                return await self._again(newcomer, machine)
            # One key, one type (decision 22): a software key that enrolled as a guest must not come again as a TPM's.
            self._check_type(newcomer)
            # Before the ticket is counted: a machine that is refused for its TPM costs its ticket nothing.
            newcomer = await self._writer.placed(newcomer, self._distrusts(newcomer))
            use = self.uses.spend if counted_at_enrolment(newcomer.tee) else self.uses.check
            # After the proof, or a stranger could use tickets up; before the Machine, or one ticket could make many at once.
            await use(newcomer.ticket, newcomer.ticket_uid, newcomer.machine_name)
            await self._make_room(newcomer)
            # Before the Machine: what is there without an entry would be a machine that nobody let in.
            await self._record.append(_enrolled("enrol", newcomer))
            written = await self._writer.write(newcomer)
        except TicketSpent as spent:
            raise EnrolmentRefused(*_TICKET_REFUSALS[spent.problem]) from spent
        except IdentityConflict as conflict:
            raise EnrolmentRefused("identity-conflict", str(conflict)) from conflict
        return Enrolled(written.machine, written.created)

    async def _again(self, newcomer: Newcomer, machine: Machine) -> Enrolled:
        """A machine that is known: the same answer, at no cost."""
        standing = membership_of(machine)
        if standing in (Membership.QUARANTINED, Membership.REVOKED):
            raise EnrolmentRefused(str(standing).lower(), f"this machine is {str(standing).lower()}")
        # Its first ticket may have been used up by others meanwhile; as long as it proved nothing it may show another.
        unproved = not machine.status.last_attested and not counted_at_enrolment(newcomer.tee)
        if unproved and machine.status.ticket_uid != newcomer.ticket_uid:
            await self.uses.check(newcomer.ticket, newcomer.ticket_uid, newcomer.machine_name)
            await self._writer.take_ticket(machine, newcomer)
        await self._record.append(_enrolled("enrol-repeated", newcomer))
        return Enrolled((await self._writer.write(newcomer)).machine, created=False)

    def _distrusts(self, newcomer: Newcomer) -> list[Distrusted]:
        """What is distrusted now; raises EnrolmentRefused when it names a key of the newcomer."""
        now, distrusts = self._clock.now(), self.sources.distrusts
        about = About(
            keys=frozenset({newcomer.thumbprint, newcomer.endorsement} - {""}), endorsement=newcomer.endorsement
        )
        # By the attestation key and the endorsement key: a TPM makes as many of the first as somebody likes, the second is burnt
        # in.
        if distrusts.against(about, now):
            raise EnrolmentRefused("distrusted", "a key of this machine is distrusted")
        return [entry for entry in distrusts.all if entry.live(now)]

    def terms(self, pool: str) -> Terms:
        """What the cluster asks of machines of a pool now."""
        cluster, simulated = self.sources.confidential.get("", "cluster"), self._simulated()
        return Terms.of(cluster, pool, simulated.pins, (*self._makers.certificates(), *simulated.certificates))

    def _check_type(self, newcomer: Newcomer) -> None:
        """Refuse a key that is enrolled as the other kind of key.

        The cache may not know yet of one that enrolled a moment ago. Then there are two Machines that share nothing: names, nodes
        and look-ups differ by the kind of key.
        """
        for kind in KeyKind:
            machine = known_machine(self.sources.machines, kind, newcomer.thumbprint)
            if machine is not None and machine.status.tee != newcomer.tee:
                raise IdentityConflict(OTHER_TYPE.format(machine.status.tee))

    async def _make_room(self, newcomer: Newcomer) -> None:
        """At the bound, let the oldest machine that proved nothing give way; raises EnrolmentRefused where none does."""
        waiting = self.sources.machines.by_index(WAITING, newcomer.pool)
        ticket = self.sources.tickets.get("", newcomer.ticket)
        if len(waiting) < bound(self._most_waiting, limit_of(ticket) if ticket else 0):
            return
        for machine in giving_way(waiting)[:YIELDING]:
            name = machine["metadata"]["name"]
            detail = {"pool": newcomer.pool, "to": newcomer.thumbprint}
            who = (machine.get("status") or {}).get("keyThumbprint") or name
            # Recorded before it goes: an object that is deleted leaves no other trace of whose place was taken.
            await self._record.append(RecordEntry("machine-gave-way", who, resource=f"machine/{name}", detail=detail))
            if await self._writer.give_way(machine):
                return
        raise EnrolmentRefused("too-many-waiting", "too many machines of this pool have enrolled and never attested")

    def check_identity(self, newcomer: Newcomer) -> None:
        """Refuse a second key for the id that one machine was told; raises EnrolmentRefused.

        A cache may not know yet of the first. Then there are two Machines of one id, and each has a disk key of its own.
        """
        names = {object_name(machine).name for machine in self.sources.machines.by_index(BY_ID, newcomer.identity)}
        if names - {newcomer.machine_name}:
            raise EnrolmentRefused("identity-conflict", "another key was registered for this machine")

    async def note_refusal(self, refused: EnrolmentRefused, invitation: Invitation, who: str, tee: str) -> None:
        """Put the refusal of a holder of a ticket on the record; raises RecordError."""
        refused.ticket = (invitation.ticket, invitation.uid)
        # Codes and no values: what a machine sent is not ours to publish, and a record is read by many.
        failed = ",".join(entry.code for entry in refused.checks if entry.refuses)
        detail = {
            "code": refused.code,
            "ticket": invitation.ticket,
            "pool": invitation.pool,
            "tee": tee,
            **({"checks": failed} if failed else {}),
        }
        await self._record.append(RecordEntry("enrol-refused", who, resource=f"pool/{invitation.pool}", detail=detail))


def used_up() -> EnrolmentRefused:
    """The refusal of a ticket that has no use left."""
    return EnrolmentRefused(*_TICKET_REFUSALS[TicketProblem.USED_UP])


def _identity(machine: JsonObject) -> Iterable[str]:
    """The id of a machine that the Clevis pin enrolled."""
    pinned = (machine.get("status") or {}).get("pin") == CLEVIS_PIN
    return (str(machine["spec"]["id"]),) if pinned else ()


def _waiting(machine: JsonObject) -> Iterable[str]:
    """The pool of a machine that has never attested."""
    status = machine.get("status") or {}
    return (status["pool"],) if status.get("pool") and not status.get("lastAttested") else ()


def _enrolled(what: str, newcomer: Newcomer) -> RecordEntry:
    facts = {
        "pool": newcomer.pool, "tee": newcomer.tee, "ticket": newcomer.ticket, "endorsement": newcomer.endorsement,
        "endorsedBy": str(newcomer.endorsed_by), "root": newcomer.root, "supersedes": newcomer.supersedes,
        "approval": "Automatic" if newcomer.approved else "Manual", "waits": newcomer.waits,
        "simulated": "true" if newcomer.simulated else "", "pin": newcomer.pin,
    }  # fmt: skip
    detail = {name: value for name, value in facts.items() if value}
    return RecordEntry(what, newcomer.thumbprint, resource=f"machine/{newcomer.machine_name}", detail=detail)
