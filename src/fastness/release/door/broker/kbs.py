"""The three steps of a machine: ask for a challenge, answer it, take what is its own.

    auth      → challenge, and a cookie that holds it
    attest    → the verifier judges → a token, and a cookie that holds what was proved
    resource  → in touch → path → may_read → policy → Grant → record → in touch, machine and Grant again → bytes, sealed to
                the key of this boot

* Nothing is kept between the steps, and nothing is written for a caller whose evidence did not verify.
* A refusal that will pass is 503; 401 means that a new handshake may help, and only that; everything else is final.
* The bytes are looked for after the grant, and leave after the record has it (`release.live.releases`).
* A door that has lost touch with the API judges nothing and releases nothing: 503 until it is back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from fastness.attestation.live.attempt import Attempt, Judgement, Verifier
from fastness.attestation.policy.resource_policy import Access
from fastness.attestation.verdict import breakglass
from fastness.crypto import jwe
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import public_key
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.live.bootstrap_tokens import is_bootstrap_token
from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.guest_tickets import TICKET_CODES
from fastness.http import Answer, Request
from fastness.http.freshness import Touch
from fastness.http.limits import RateLimiter
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken, ReplayedChallenge
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.informers import Informer
from fastness.observe import metrics
from fastness.protocol import kbs
from fastness.protocol.kbs_path import ResourcePath, split_path
from fastness.record.entry import Record, RecordEntry
from fastness.release.authorise import Denied, ProvenCaller, granted
from fastness.release.door.broker.joins import BootstrapTokenSource
from fastness.release.ear import Proved, standing
from fastness.release.handshake import Handshake, HandshakeError, Macs, cookie_in, set_cookie
from fastness.release.live.copies import PoolConfigs, is_config
from fastness.release.live.overlays import recipient
from fastness.release.live.policies import demand_access
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import Releases, in_time
from fastness.release.live.settings import Settings
from fastness.release.live.tokens import Revocations, TokenIssuer
from fastness.release.resources import may_read
from fastness.runtime.clock import Clock, Entropy

AUDIENCE = "kbs"
PLUGIN = "resource"


class ResourcePolicy(Protocol):
    """What the policies say about a release; they can only take away."""

    async def access(
        self, claims: Mapping[str, Any], path: tuple[str, ...], query: Mapping[str, str] | None = None
    ) -> Access:
        """Whether claims of a token may have a resource."""


class Readable(Protocol):
    """Where resources lie; `release.live.resources.Resources` is one."""

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """The resource, None when there is none."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Who stands behind the broker."""

    verifier: Verifier
    record: Record
    resources: Readable
    policy: ResourcePolicy
    revocations: Revocations
    touch: Touch
    tokens: TokenIssuer
    macs: Macs
    bindings: Informer
    configs: PoolConfigs | None = None
    joins: BootstrapTokenSource | None = None


class _Release(NamedTuple):
    """A release that is under way: for whom, what was known of the rules when it began, how it is decided again, its name."""

    caller: ProvenCaller
    seen: int
    again: Callable[[], Awaitable[Grant]]
    rendered: str


class Steps:
    """The handlers of machines."""

    def __init__(
        self,
        behind: Behind,
        settings: Settings,
        turnstile: RateLimiter,
        clock: Clock,
        entropy: Entropy,
        telling: EventSink | None = None,
    ) -> None:
        self._behind = behind
        self._telling = telling or NullSink()
        self._noted = RefusalLog(behind.record, clock, self._telling)
        self._releases = Releases(behind.record, behind.revocations, behind.touch, clock)
        self._settings = settings
        self._turnstile = turnstile
        self._clock = clock
        self._entropy = entropy

    async def auth(self, body: bytes) -> Answer:
        """A challenge; raises Refusal, KbsError."""
        now = self._clock.now()
        try:
            challenge, cookie = self._handshake().begin(kbs.parse_request(body), now, self._entropy)
        except HandshakeError as error:
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
        with self._turnstile.appraising():
            try:
                judgement = await self._behind.verifier.appraise(attempt)
            except ReplayedChallenge as error:
                raise Refusal(401, error.code, "this challenge was answered before: ask for a new one") from error
        if not judgement.accepted or judgement.subject is None:
            raise self._refused(judgement)
        if judgement.code == breakglass.CODE and judgement.expires is not None:
            self._telling.overridden(judgement.subject, f"until {rfc3339(judgement.expires)}")
        if judgement.alarm:
            self._telling.alarmed(judgement.subject, judgement.alarm)
        try:
            token, claims = self._behind.tokens.issue(self._proved(judgement, attempt), self._lifetime(judgement))
            found = standing(claims)
            if found is None:
                raise BadToken("the verdict does not make a token", "See the log of the broker.")
            cookie = handshake.opened(claims, found.expires)
        except (BadToken, HandshakeError) as error:
            raise Refusal(400, error.code, str(error)) from error
        header = set_cookie(cookie, found.expires, self._clock.now())
        return Answer(200, kbs.token_message(token.reveal()), headers=((b"set-cookie", header.encode()),))

    def session(self, request: Request) -> ProvenCaller | None:
        """What the session cookie of a request proves; None without one; raises Refusal."""
        cookie = session_cookie(request)
        if not cookie:
            return None
        try:
            found = standing(self._handshake().session(cookie, self._clock.now()).claims)
        except HandshakeError as error:
            raise Refusal(401, error.code, error.detail) from error
        if found is None:
            raise Refusal(401, "no-session", "attest first")
        return found

    async def resource(self, caller: ProvenCaller, segments: tuple[str, ...], query: Mapping[str, str]) -> Answer:
        """What the caller may have, sealed to it; raises Refusal, ApiError, RecordError."""
        path = split_path(segments)
        if path is None:
            raise Refusal(400, "bad-path", "a resource is repository/type/tag, of [a-z0-9._-], without dot segments")
        try:
            return await self._delivered(caller, path, query)
        except Refusal as refusal:
            await self._noted.refusal(caller, str(path), refusal)
            raise

    async def _delivered(self, caller: ProvenCaller, path: ResourcePath, query: Mapping[str, str]) -> Answer:
        self._releases.demand()
        config = self._behind.configs is not None and is_config(path)
        rendered = query.get("rendered", "") if config else ""
        release = _Release(caller, self._releases.changes, lambda: self._granted(caller, path, query), rendered)
        grant = await release.again()
        async with in_time():
            value, detail = await self._found(caller, grant, path, query)
        answer = await self._release(release, grant, value, detail)
        if config:
            metrics.RELEASES.inc(str(grant.basis))
        return answer

    async def _found(
        self, caller: ProvenCaller, grant: Grant, path: ResourcePath, query: Mapping[str, str]
    ) -> tuple[SecretBytes, Mapping[str, str]]:
        """What is to be released, and what the record says of it; raises Refusal, ApiError."""
        if self._behind.configs is not None and is_config(path):
            sealed, config = await self._behind.configs.deliver(
                grant, recipient(caller.claims), path.segments[1], query, lambda: self._token(caller)
            )
            return sealed, config.described()
        if self._behind.joins is not None and is_bootstrap_token(path):
            return await self._behind.joins.deliver(grant, query)
        value = await self._behind.resources.read(path)
        if value is None:
            raise Refusal(404, "no-such-resource", "there is no such resource", grant.verdict)
        return value, {}

    def _token(self, caller: ProvenCaller) -> str:
        """A token for what the session proved: whoever comes with a cookie shows none, and the config server wants one."""
        try:
            return self._behind.tokens.sign(dict(caller.claims)).reveal()
        except BadToken as error:
            raise Refusal(400, error.code, error.message) from error

    async def _granted(self, caller: ProvenCaller, path: ResourcePath, query: Mapping[str, str]) -> Grant:
        if self._behind.revocations.revoked(caller.claims):
            raise Refusal(403, "revoked", "this machine is no longer trusted", caller.verdict)
        denial = may_read(path, caller.subject, self._behind.bindings.list())
        if denial is not None:
            raise Refusal(403, denial.code, denial.detail, caller.verdict)
        demand_access(await self._behind.policy.access(caller.claims, path.segments, query), caller.verdict)
        try:
            return granted(caller, str(path), self._settings.current.house, self._clock.now())
        except Denied as error:
            status = 401 if error.code == "verdict-expired" else 403
            raise Refusal(status, error.code, error.detail, caller.verdict) from error

    async def _release(self, release: _Release, grant: Grant, value: SecretBytes, detail: Mapping[str, str]) -> Answer:
        """The one way out: on the record first, then, if it may still happen, sealed to the key that the grant names."""
        rests = {**grant.described(), **detail}
        entry = RecordEntry("release", grant.subject.thumbprint, grant.resource, grant.verdict, grant.id, detail=rests)
        await self._releases.settle(release.caller, grant, entry, release.seen, release.again, release.rendered)
        if not release.rendered:  # as at the gate: on day two the rollout tells
            self._telling.released(grant.subject, grant.resource)
        return Answer(200, jwe.sealed(value, public_key(grant.recipient), self._entropy))

    def _refused(self, judgement: Judgement) -> Refusal:
        """What a judgement that refuses is answered with, told of the machine or of nobody in particular."""
        refusal = _refused(judgement)
        if judgement.subject is not None:
            self._telling.refused(judgement.subject, refusal)
        else:
            self._telling.stranger_refused(refusal)
        return refusal

    def _handshake(self) -> Handshake:
        demands = self._settings.current
        return Handshake(self._behind.macs, AUDIENCE, demands.challenge_lifetime, demands.accepted)

    def _proved(self, judgement: Judgement, attempt: Attempt) -> Proved:
        return replace(_proved(judgement, attempt), reattest=int(self._settings.current.reattest.total_seconds()))

    def _lifetime(self, judgement: Judgement) -> Any:
        """As long as the cluster says, and never longer than the verdict counts."""
        lifetime = self._settings.current.token_lifetime
        return min(lifetime, judgement.expires - self._clock.now()) if judgement.expires else lifetime


def session_cookie(request: Request) -> str:
    """The cookie of the protocol; empty without one; raises Refusal for two."""
    try:
        return cookie_in(request.headers(b"cookie"))
    except HandshakeError as error:
        raise Refusal(400, error.code, error.detail) from error


def _refused(judgement: Judgement) -> Refusal:
    verdict = judgement.verdict_name
    if judgement.retry:
        return Refusal(503, judgement.code, judgement.detail, verdict)
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
