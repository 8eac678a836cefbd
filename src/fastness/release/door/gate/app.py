"""`/config/<pool>` for machines that proved themselves; `/config/<pool>?rendered=<name>` and `/trust/<pool>` for those that run.

    token → proof of possession → in touch → Grant (`release.authorise`)
      → the config server, which authorises the token itself, lays overlays over and signs
      → record → in touch, machine and Grant again → bytes

A running machine names the rendered config that it was told to go to. It gets that MachineConfig if the controllers wrote its
name on the Machine (`release.live.releases`), and no other. Where it has overlays, the name has their digest, and what leaves is
merged and signed under both. Whom it shall believe beside that (`protocol.node_trust`) goes the same way.

Codes follow the doors' common table: 401 without a good token and proof (a new one may be got), 403 for what is final, 503
with Retry-After for what will pass. In mode Audit a valid join ticket makes a grant of basis `audit`, recorded and counted;
an enforcing cluster never takes that. Nothing about a pool is told before the caller is known.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.tickets import TicketCache, TicketCheck, TicketProblem, bearer
from fastness.http import Answer, Request
from fastness.http.edge import Door, ErrorTable, Outage, application, healthy, nothing_but
from fastness.http.freshness import Touch
from fastness.http.limits import OVERLOAD, RateLimiter
from fastness.http.refusals import Refusal
from fastness.http.route import OPEN, READING, UNLIMITED, Auth, Limit, Route, Routes
from fastness.keys.errors import RecordError, TicketUnclear
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev.trust_model import Mode
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.protocol.kbs_path import ResourcePath, is_pool_config, pool_config, pool_trust
from fastness.record.entry import Record, RecordEntry
from fastness.release.configs import SIGNATURE, Config
from fastness.release.live.callers import Callers, NeedsNonce, Proven
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import Releases, rendered_in
from fastness.release.live.settings import PolicyDecider, Settings
from fastness.release.live.tokens import GATE, Revocations, TokenVerifier
from fastness.release.source import ResourceSource
from fastness.runtime.clock import Clock, Entropy

OTHER_POOL: Final = {"other-pool": ("wrong-pool", "this machine belongs to another pool")}
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
    **nothing_but("there are /config/<pool> and /trust/<pool>"),
    ApiError: _unavailable,
    RecordError: _unrecorded,
}


class Gate:
    """The gate: `app` is its application."""

    def __init__(
        self,
        configs: ResourceSource[Config],
        record: Record,
        limiter: RateLimiter,
        clock: Clock,
        entropy: Entropy,
        *,
        tokens: TokenVerifier,
        macs: MacKeys,
        revocations: Revocations,
        tickets: TicketCache,
        policies: PolicyDecider,
        settings: Settings,
        touch: Touch,
        events: EventSink | None = None,
    ) -> None:
        self._configs = configs
        self._tickets = tickets
        self._settings = settings
        self._limiter = limiter
        self._clock = clock
        self._events = events or NullSink()
        self._refusals = RefusalLog(record, clock, self._events)
        # An override of two approvers lets a machine boot; it opens no keys (`broker`).
        self._releases = Releases(
            record, revocations, touch, clock, settings=settings, policies=policies, break_glass=True, words=OTHER_POOL
        )
        self._callers = Callers(GATE, tokens, macs, revocations, limiter, clock, entropy)
        caller = Auth("token with a proof of possession; in mode Audit a ticket", self._recognise)
        routes: Routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("config", READING, "/config/<pool>", caller, Limit(self._lane), self._deliver),
            Route("trust", READING, "/trust/<pool>", caller, Limit(self._lane), self._deliver_trust),
        )
        self.app = application(DOOR, routes, ERRORS, entropy)

    def _lane(self, request: Request, proven: Proven) -> AbstractContextManager[None]:
        """The lane of a machine that proved itself; whoever only has a ticket is a stranger."""
        if proven.caller.basis is Basis.AUDIT:
            return self._limiter.stranger(request.address)
        return self._limiter.proven(proven.caller.subject.thumbprint)

    async def _deliver(self, request: Request, proven: Proven) -> Answer:
        """The configuration for somebody who is known; raises Refusal, which is noted."""
        return await self._noted(request, proven, pool_config(request.values[0]))

    async def _deliver_trust(self, request: Request, proven: Proven) -> Answer:
        """What such a machine has beside it; raises Refusal, which is noted."""
        return await self._noted(request, proven, pool_trust(request.values[0]))

    async def _noted(self, request: Request, proven: Proven, path: ResourcePath) -> Answer:
        try:
            return await self._release(request, proven, path)
        except Refusal as refusal:
            await self._refusals.refusal(proven.caller, str(path)[:256], refusal)
            raise

    async def _release(self, request: Request, proven: Proven, path: ResourcePath) -> Answer:
        """The one way out: on the record first, then only if it may still happen. The config server signed what leaves."""
        self._releases.demand()
        # Taken before the first decision: whatever changes from here on has everything decided again.
        changes = self._releases.changes
        if self._settings.current.delivery.via == "Broker":
            raise Refusal(
                503, "delivered-by-broker", "configurations are handed out by the broker: enrol again to learn where"
            )
        rendered = rendered_in(request) if is_pool_config(path) else ""
        grant = await self._releases.grant(proven.caller, path)
        # Three things and no more of what a machine sent; the nonce is that of its proof, so the answer names this very request.
        query = {"accept": request.header(b"accept"), "rendered": rendered, "nonce": proven.nonce}
        config = await self._configs.read(grant, path, query)
        await self._releases.settle(grant, path, _entry(grant, config), changes, rendered=rendered)
        metrics.RELEASES.inc(str(grant.basis))
        if not rendered and is_pool_config(
            path
        ):  # on day two the rollout tells of every node where it goes, and the record has the rest
            self._events.released(grant.subject, grant.resource)
        headers = ((b"etag", config.etag), (SIGNATURE, config.signature.encode()))
        return Answer(200, config.body, headers=headers)

    async def _recognise(self, request: Request) -> Proven:
        """Who asks; raises Refusal, which is told unless it only asks for a nonce."""
        try:
            return await self._proven(request, request.values[0])
        except NeedsNonce:
            raise
        except Refusal as refusal:
            self._events.stranger_refused(refusal)
            raise

    async def _proven(self, request: Request, pool: str) -> Proven:
        scheme, _, token = request.header(b"authorization").partition(" ")
        if scheme.lower() == "dpop" and token.strip():
            return self._callers.proved(request, token.strip())
        ticket = bearer(request.header(b"authorization"))
        # Only where attestation is watched and not enforced; `authorise` refuses this basis once more where the cluster enforces.
        if ticket and self._settings.current.mode is Mode.AUDIT:
            return await self._audited(request, ticket, pool)
        missing = Refusal(401, "token-required", "attest first: show a token with a proof of possession")
        raise self._callers.unknown(request, missing)

    async def _audited(self, request: Request, text: str, pool: str) -> Proven:
        """A caller with a ticket, where attestation is only watched; raises Refusal."""
        now = self._clock.now()
        ticket = self._tickets.cached(text, pool)
        if ticket.problem is TicketProblem.UNKNOWN:
            # Before the API is asked: a stranger with made-up tickets must not have us read objects for each of them.
            self._limiter.doubt(request.address)
            ticket = await self._look_up(text, pool)
        if ticket.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if not ticket.good:
            wrong = Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
            raise self._callers.unknown(request, wrong)
        subject = Subject("", f"ticket:{ticket.name}", f"ticket:{ticket.name}", pool)
        until = now + self._settings.current.token_lifetime
        caller = ProvenCaller(subject, "", {}, until, Basis.AUDIT, credential=f"Bearer {text}")
        # Without a proof there is no number of one: what the machine chose itself is signed, so that it knows its own answer.
        return Proven(caller, request.header(b"fastness-nonce")[:128])

    async def _look_up(self, text: str, pool: str) -> TicketCheck:
        try:
            return await self._tickets.look_up(text, pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear


def _entry(grant: Grant, config: Config) -> RecordEntry:
    """What the record says of a release before it happens."""
    facts = {**grant.described(), **config.described()}
    return RecordEntry("release", grant.subject.thumbprint, grant.resource, grant.verdict, grant.id, detail=facts)
