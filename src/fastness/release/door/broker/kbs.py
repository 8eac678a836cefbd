"""The three steps of a machine: ask for a challenge, answer it, take what is its own.

    auth      → challenge, and a cookie that holds it
    attest    → the verifier judges → a token, and a cookie that holds what was proved
    resource  → in touch → path → Grant (`release.authorise`) → ResourceSource → record → in touch, machine and Grant again
                → bytes, sealed to the key of this boot

* Nothing is kept between the steps, and nothing is written for a caller whose evidence did not verify.
* A refusal that will pass is 503; 401 means that a new handshake may help, and only that; everything else is final.
* The bytes are looked for after the grant, and leave after the record has it (`release.live.releases`).
* A door that has lost touch with the API judges nothing and releases nothing: 503 until it is back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from fastness.attestation.live.attempt import Attempt, Judgement, Verifier
from fastness.attestation.verdict import breakglass
from fastness.crypto import jwe
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import public_key
from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.guest_tickets import TICKET_CODES
from fastness.http import Answer, Request
from fastness.http.limits import RateLimiter
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken, ReplayedChallenge
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.subject import Grant, ProvenCaller
from fastness.observe import metrics
from fastness.protocol import kbs
from fastness.protocol.kbs_path import ResourcePath, is_pool_trust, split_path
from fastness.record.entry import RecordEntry
from fastness.release.ear import Proved, proven_caller
from fastness.release.handshake import Handshake, HandshakeError, Macs, cookie_in, set_cookie
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import Releases, in_time
from fastness.release.live.settings import Settings
from fastness.release.live.tokens import AUDIENCES, BROKER, TokenIssuer
from fastness.release.source import BrokerSource, Content, read_resource
from fastness.runtime.clock import Clock, Entropy

AUDIENCE = "kbs"
PLUGIN = "resource"


class Steps:
    """The handlers of machines."""

    def __init__(
        self,
        sources: Sequence[BrokerSource],
        releases: Releases,
        limiter: RateLimiter,
        clock: Clock,
        entropy: Entropy,
        *,
        verifier: Verifier,
        tokens: TokenIssuer,
        macs: Macs,
        settings: Settings,
        refusals: RefusalLog,
        events: EventSink | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._releases = releases
        self._limiter = limiter
        self._clock = clock
        self._entropy = entropy
        self._verifier = verifier
        self._tokens = tokens
        self._macs = macs
        self._settings = settings
        self._refusals = refusals
        self._events = events or NullSink()

    async def auth(self, body: bytes) -> Answer:
        """A challenge; raises Refusal, KbsError."""
        now = self._clock.now()
        try:
            challenge, cookie = self._handshake().begin(kbs.parse_request(body), now, self._entropy)
        except HandshakeError as error:
            # Neither is 401, at which a guest would begin the same handshake again and again.
            raise Refusal(400 if error.code == "unsupported-version" else 403, error.code, error.detail) from error
        header = set_cookie(cookie, challenge.expires, now)
        return Answer(200, kbs.challenge_message(challenge.nonce), headers=((b"set-cookie", header.encode()),))

    def challenged(self, request: Request) -> str:
        """The cookie of a challenge that is still good; raises Refusal. A body is read only for its holder."""
        cookie = session_cookie(request)
        try:
            self._handshake().challenged(cookie, self._clock.now())
        except HandshakeError as error:
            raise Refusal(401, error.code, error.detail) from error
        return cookie

    async def attest(self, cookie: str, body: bytes) -> Answer:
        """A token for evidence that is accepted; raises Refusal, KbsError, ApiError."""
        handshake = self._handshake()
        attestation = kbs.parse_attestation(body)
        try:
            # Before the verifier works: a key that nothing can be sealed to would make a good verdict useless.
            public_key(attestation.tee_pubkey)
            challenge = handshake.answered(cookie, attestation, self._clock.now())
        except BadKey as error:
            raise Refusal(400, error.code, f"tee-pubkey: {error.message}") from error
        except HandshakeError as error:
            raise Refusal(401, error.code, error.detail) from error
        attempt = Attempt(
            tee=challenge.tee, evidence=attestation.evidence, runtime=attestation.runtime(), nonce=attestation.nonce,
            tee_pubkey=attestation.tee_pubkey, challenge_expires=challenge.expires, init_data=attestation.init_data,
            additional=attestation.additional,
        )  # fmt: skip
        return await self._admit(handshake, attempt)

    async def _admit(self, handshake: Handshake, attempt: Attempt) -> Answer:
        self._releases.demand()
        # Appraisals are what costs here: a bound on how many run at once keeps sessions that exist answered during a boot storm.
        with self._limiter.appraising():
            try:
                judgement = await self._verifier.appraise(attempt)
            except ReplayedChallenge as error:
                raise Refusal(401, error.code, "this challenge was answered before: ask for a new one") from error
        # Both: an acceptance of nobody in particular would make a token that every door must guess about.
        if not judgement.accepted or judgement.subject is None:
            raise self._refused(judgement)
        if judgement.code == breakglass.CODE and judgement.expires is not None:
            self._events.overridden(judgement.subject, f"until {rfc3339(judgement.expires)}")
        if judgement.alarm:
            self._events.alarmed(judgement.subject, judgement.alarm)
        try:
            # A gate has no disk keys: it refuses such a token by its audience, before it decides anything.
            audiences = (BROKER,) if judgement.subject.is_unlock else AUDIENCES
            token, claims = self._tokens.issue(self._proved(judgement, attempt), self._lifetime(judgement), audiences)
            caller = proven_caller(claims)
            if caller is None:
                raise BadToken("the verdict does not make a token", "See the log of the broker.")
            cookie = handshake.opened(claims, caller.expires)
        except (BadToken, HandshakeError) as error:
            raise Refusal(400, error.code, str(error)) from error
        header = set_cookie(cookie, caller.expires, self._clock.now())
        return Answer(200, kbs.token_message(token.reveal()), headers=((b"set-cookie", header.encode()),))

    def session(self, request: Request) -> ProvenCaller | None:
        """What the session cookie of a request proves; None without one; raises Refusal."""
        cookie = session_cookie(request)
        if not cookie:
            return None
        try:
            caller = proven_caller(self._handshake().session(cookie, self._clock.now()).claims)
        except HandshakeError as error:
            raise Refusal(401, error.code, error.detail) from error
        if caller is None:
            raise Refusal(401, "no-session", "attest first")
        return caller

    async def resource(self, caller: ProvenCaller, segments: tuple[str, ...], query: Mapping[str, str]) -> Answer:
        """What the caller may have, sealed to it; raises Refusal, ApiError, RecordError."""
        # One grammar for owner check, policy and store (pitfall 17): two readers of one path are two answers about who owns it.
        path = split_path(segments)
        if path is None:
            raise Refusal(400, "bad-path", "a resource is repository/type/tag, of [a-z0-9._-], without dot segments")
        try:
            return await self._release(caller, path, query)
        except Refusal as refusal:
            await self._refusals.refusal(caller, str(path), refusal)
            raise

    async def _release(self, caller: ProvenCaller, path: ResourcePath, query: Mapping[str, str]) -> Answer:
        """The one way out: on the record first, then, if it may still happen, sealed to the key that the grant names."""
        self._releases.demand()
        changes = self._releases.changes
        grant = await self._releases.grant(caller, path, query)
        async with in_time():
            content = await read_resource(self._sources, grant, path, query)
        # After the grant: whether a resource exists is told only to whoever may have it.
        if content is None:
            raise Refusal(404, "no-such-resource", "there is no such resource", grant.verdict)
        entry = _entry(grant, content)
        await self._releases.settle(grant, path, entry, changes, query=query, rendered=content.rendered)
        if content.note is not None:
            await content.note()
        if content.is_config:
            metrics.RELEASES.inc(str(grant.basis))
        if not content.rendered and not is_pool_trust(path):  # as at the gate: on day two the rollout tells
            self._events.released(grant.subject, grant.resource)
        # To the key of the grant, which came out of the evidence: whoever holds a stolen cookie gets text that it cannot open.
        return Answer(200, jwe.sealed(content.value, public_key(grant.recipient), self._entropy))

    def _refused(self, judgement: Judgement) -> Refusal:
        """What a judgement that refuses is answered with, told of the machine or of nobody in particular."""
        refusal = _refused(judgement)
        if judgement.subject is not None:
            self._events.refused(judgement.subject, refusal)
        else:
            self._events.stranger_refused(refusal)
        return refusal

    def _handshake(self) -> Handshake:
        demands = self._settings.current
        return Handshake(self._macs, AUDIENCE, demands.challenge_lifetime, demands.accepted)

    def _proved(self, judgement: Judgement, attempt: Attempt) -> Proved:
        proved = _proved(judgement, attempt)
        # Whoever unlocks a disk proves itself for good once it is open, and is told then how often.
        again = 0 if proved.subject.is_unlock else int(self._settings.current.reattest.total_seconds())
        return replace(proved, reattest=again)

    def _lifetime(self, judgement: Judgement) -> timedelta:
        """As long as the cluster says, and never longer than the verdict counts."""
        lifetime = self._settings.current.token_lifetime
        # An override of two approvers, or a value that ends, may count for less than a token usually lives.
        return min(lifetime, judgement.expires - self._clock.now()) if judgement.expires else lifetime


def session_cookie(request: Request) -> str:
    """The cookie of the protocol; empty without one; raises Refusal for two."""
    try:
        return cookie_in(request.headers(b"cookie"))
    except HandshakeError as error:
        raise Refusal(400, error.code, error.detail) from error


def _entry(grant: Grant, content: Content) -> RecordEntry:
    """What the record says of a release before it happens."""
    facts = {**grant.described(), **content.facts}
    return RecordEntry(content.what, grant.subject.thumbprint, grant.resource, grant.verdict, grant.id, detail=facts)


def _refused(judgement: Judgement) -> Refusal:
    verdict = judgement.verdict_name
    if judgement.retry:
        return Refusal(503, judgement.code, judgement.detail, verdict)
    # 401: another ticket helps, and a machine comes again with one; 403 would have it give up.
    if judgement.code in TICKET_CODES:
        return Refusal(401, judgement.code, judgement.detail, verdict)
    return Refusal(403, judgement.code or "refused", judgement.detail or "the evidence is refused", verdict)


def _proved(judgement: Judgement, attempt: Attempt) -> Proved:
    assert judgement.subject is not None  # noqa: S101  # the caller looked
    spec = (judgement.verdict or {}).get("spec") or {}
    return Proved(
        judgement.subject, judgement.verdict_name, attempt.tee_pubkey, attempt.nonce,
        str(spec.get("policyVersion") or ""), judgement.vector, judgement.claims, judgement.properties,
    )  # fmt: skip
