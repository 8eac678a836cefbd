"""`/config/<pool>` for machines that proved themselves, and `/config/<pool>?rendered=<name>` for those that run already.

    token → proof of possession → in touch → revocation → pool is the machine's own → Grant
      → the config server, which verifies the token itself, lays overlays over and signs
      → record → in touch, machine and Grant again → bytes

A running machine names the rendered config that it was told to go to. It gets that MachineConfig if the controllers wrote its
name on the Machine (`release.live.assignments`), and no other; its agent lays its overlays over it by itself.

Codes follow the doors' common table: 401 without a good token and proof (a new one may be got), 403 for what is final, 503
with Retry-After for what will pass. In mode Audit a valid join ticket makes a grant of basis `audit`, recorded and counted;
an enforcing cluster never takes that. Nothing about a pool is told before the caller is known.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from fastness.attestation.policy.resource_policy import BUILT_IN_POLICY, denied_by
from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.ticket_cache import TicketCache
from fastness.enrolment.live.tickets import TicketCheck, TicketProblem, bearer
from fastness.http import Answer, Request
from fastness.http.edge import Door, ErrorTable, Outage, application, healthy, nothing_but
from fastness.http.freshness import Touch
from fastness.http.limits import OVERLOAD, RateLimiter
from fastness.http.refusals import Refusal
from fastness.http.route import OPEN, READING, UNLIMITED, Auth, Limit, Route, Routes
from fastness.keys.errors import RecordError, TicketUnclear
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import Basis, Grant, Subject
from fastness.kube.errors import ApiError
from fastness.kube.informers import Informer
from fastness.observe import logs, metrics
from fastness.protocol.config_proof import HEADER
from fastness.record.entry import Record, RecordEntry
from fastness.release.authorise import Denied, ProvenCaller, granted
from fastness.release.configs import Config, ConfigRequest, ConfigSource, Delivery, delivery_of
from fastness.release.live.assignments import Assignments, rendered_in
from fastness.release.live.callers import Callers, NeedsNonce, Proven
from fastness.release.live.policies import ActivePolicies, demand_access
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import Releases
from fastness.release.live.settings import Settings
from fastness.release.live.tokens import GATE, Revocations, TokenVerifier
from fastness.runtime.clock import Clock, Entropy

_log = logs.logger("gate")


def _count(_route: str, code: int) -> None:
    metrics.GATE_ANSWERS.inc(str(code))


def _note(_route: str, refusal: Refusal) -> None:
    metrics.REFUSALS.inc("gate", refusal.code)
    if refusal.code != OVERLOAD:  # which is counted, and must cost less than what it keeps away
        _log.info("gate.refused", status=refusal.status, code=refusal.code, verdict=refusal.verdict)


def _unavailable(error: ApiError, _route: str) -> Refusal:
    _log.warning("gate.unavailable", code=error.reason, error=error)
    return Outage(503, "api-unavailable", "the cluster cannot be asked now")


def _unrecorded(error: RecordError, _route: str) -> Refusal:
    _log.error("gate.unavailable", code=error.code, error=error, hint=error.hint)
    return Outage(503, error.code, "the record cannot be written now")


DOOR: Final = Door("gate", _count, _note)
ERRORS: Final[ErrorTable] = {
    **nothing_but("there is /config/<pool>"),
    ApiError: _unavailable,
    RecordError: _unrecorded,
}


@dataclass(frozen=True, slots=True)
class Behind:
    """Who stands behind the gate."""

    tokens: TokenVerifier
    macs: MacKeys
    revocations: Revocations
    touch: Touch
    record: Record
    configs: ConfigSource
    settings: Settings
    confidential: Informer
    tickets: TicketCache
    policies: ActivePolicies
    assignments: Assignments


class Gate:
    """The gate: `app` is its application."""

    def __init__(
        self,
        behind: Behind,
        turnstile: RateLimiter,
        clock: Clock,
        entropy: Entropy,
        telling: EventSink | None = None,
    ) -> None:
        self._behind = behind
        self._telling = telling or NullSink()
        self._noted = RefusalLog(behind.record, clock, self._telling)
        self._releases = Releases(behind.record, behind.revocations, behind.touch, clock)
        self._turnstile = turnstile
        self._callers = Callers(GATE, behind.tokens, behind.macs, behind.revocations, turnstile, clock, entropy)
        self._clock = clock
        self._read: tuple[JsonObject | None, Delivery] | None = None
        known = Auth("token with a proof of possession; in mode Audit a ticket", self._caller)
        routes: Routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("config", READING, "/config/<pool>", known, Limit(self._lane), self._deliver),
        )
        self.app = application(DOOR, routes, ERRORS, entropy)

    def _lane(self, request: Request, caller: Proven) -> AbstractContextManager[None]:
        """The lane of a machine that proved itself; whoever only has a ticket is a stranger."""
        if caller.standing.basis is Basis.AUDIT:
            return self._turnstile.stranger(request.address)
        return self._turnstile.known(caller.standing.subject.thumbprint)

    async def _deliver(self, request: Request, caller: Proven) -> Answer:
        """The configuration for somebody who is known; raises Refusal, which is noted."""
        pool = request.values[0]
        try:
            return await self._delivered(request, caller, pool)
        except Refusal as refusal:
            await self._noted.refusal(caller.standing, f"pool/{pool}/config"[:256], refusal)
            raise

    async def _delivered(self, request: Request, caller: Proven, pool: str) -> Answer:
        self._releases.demand()
        seen = self._releases.changes
        if self._delivery().via == "Broker":
            raise Refusal(
                503, "delivered-by-broker", "configurations are handed out by the broker: enrol again to learn where"
            )
        rendered = rendered_in(request)
        grant = await self._granted(caller, pool)
        if rendered:
            await self._assigned(caller, rendered)
        accept = "" if rendered else request.header(b"accept")
        scheme = "DPoP" if caller.standing.basis is Basis.VERDICT else "Bearer"
        wanted = ConfigRequest(pool, accept, f"{scheme} {caller.token}", caller.nonce, rendered)
        return await self._release(caller, grant, wanted, await self._behind.configs.fetch(wanted), seen)

    async def _assigned(self, caller: Proven, rendered: str) -> None:
        """A running machine may have the rendered config that it was told to go to; raises Refusal, ApiError."""
        found = caller.standing
        if found.basis is not Basis.VERDICT:
            raise Refusal(403, "attestation-required", "a ticket is for machines that boot: attest", found.verdict)
        await self._behind.assignments.check(found.subject, rendered, found.verdict)

    def _delivery(self) -> Delivery:
        """How configurations reach machines now; read again only when the cluster's object is another."""
        found = self._behind.confidential.get("", "cluster")
        if self._read is None or self._read[0] is not found:
            self._read = (found, delivery_of(found))
        return self._read[1]

    async def _caller(self, request: Request) -> Proven:
        """Who asks; raises Refusal, which is told unless it only asks for a nonce."""
        try:
            return await self._recognised(request, request.values[0])
        except NeedsNonce:
            raise
        except Refusal as refusal:
            self._telling.stranger_refused(refusal)
            raise

    async def _recognised(self, request: Request, pool: str) -> Proven:
        scheme, _, shown = request.header(b"authorization").partition(" ")
        if scheme.lower() == "dpop" and shown.strip():
            return self._callers.proved(request, shown.strip())
        ticket = bearer(request.header(b"authorization"))
        if ticket and mode_of(self._behind.confidential.get("", "cluster")) is Mode.AUDIT:
            return await self._audited(request, ticket, pool)
        missing = Refusal(401, "token-required", "attest first: show a token with a proof of possession")
        raise self._callers.unknown(request, missing)

    async def _audited(self, request: Request, ticket: str, pool: str) -> Proven:
        """A caller with a ticket, where attestation is only watched; raises Refusal."""
        now = self._clock.now()
        found = self._behind.tickets.known(ticket, pool)
        if found.problem is TicketProblem.UNKNOWN:
            self._turnstile.doubt(request.address)
            found = await self._asked(ticket, pool)
        if found.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if not found.good:
            wrong = Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
            raise self._callers.unknown(request, wrong)
        subject = Subject("", f"ticket:{found.name}", f"ticket:{found.name}", pool)
        until = now + self._behind.settings.current.token_lifetime
        return Proven(
            ProvenCaller(subject, "", {}, until, Basis.AUDIT), ticket, request.header(b"fastness-nonce")[:128]
        )

    async def _asked(self, ticket: str, pool: str) -> TicketCheck:
        try:
            return await self._behind.tickets.asked(ticket, pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear

    async def _granted(self, caller: Proven, pool: str) -> Grant:
        found, behind = caller.standing, self._behind
        if found.basis is Basis.VERDICT and behind.revocations.revoked(found.claims):
            raise Refusal(403, "revoked", "this machine is no longer trusted", found.verdict)
        if found.subject.pool != pool:
            raise Refusal(403, "wrong-pool", "this machine belongs to another pool", found.verdict)
        if found.basis is Basis.VERDICT:
            access = await behind.policies.access(found.claims, ("pool", pool, "config"))
            # Where no policy of a user refuses, the verdict itself decides: an override of two approvers counts at the gate.
            if access != denied_by(BUILT_IN_POLICY):
                demand_access(access, found.verdict)
        try:
            return granted(found, f"pool/{pool}/config", behind.settings.current.house, self._clock.now())
        except Denied as error:
            status = 401 if error.code == "verdict-expired" else 403
            raise Refusal(status, error.code, error.detail, found.verdict) from error

    async def _release(self, caller: Proven, grant: Grant, wanted: ConfigRequest, found: Config, seen: int) -> Answer:
        """The one way out: on the record first, then only if it may still happen. The config server signed what leaves."""
        detail = {**grant.described(), **found.described()}
        entry = RecordEntry("release", grant.subject.thumbprint, grant.resource, grant.verdict, grant.id, detail=detail)
        await self._releases.settle(
            caller.standing, grant, entry, seen, lambda: self._granted(caller, wanted.pool), wanted.rendered
        )
        metrics.RELEASES.inc(str(grant.basis))
        if not wanted.rendered:  # on day two the rollout tells of every node where it goes, and the record has the rest
            self._telling.released(grant.subject, grant.resource)
        headers = ((b"etag", found.etag), (HEADER.lower().encode(), found.signature.encode()))
        return Answer(200, found.body, headers=headers)
