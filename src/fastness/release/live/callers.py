"""Who asks with a token: the same at the gate and the broker.

    known token? → who pays for a wrong one → signature, issuer, audience, time → proof of possession → ProvenCaller

What costs nothing comes first. A token that was verified here before costs no signature; one that was not is looked at under the
limits for wrong credentials (`limits.RateLimiter.doubt`), so a flood of made-up tokens ends in refusals that compute nothing.
What a token claims before it is verified decides which budget it is looked at under, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from fastness.http import Answer, Request
from fastness.http.limits import RateLimiter
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken, NoTokenKeys
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import ProvenCaller
from fastness.protocol import dpop
from fastness.release.ear import proven_caller
from fastness.release.live.tokens import MOST_SIGNED, Revocations, TokenVerifier, claimed_subject
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock, Entropy

NONCE: Final = b"dpop-nonce"
CHALLENGE: Final = b'DPoP error="use_dpop_nonce", algs="ES256"'


class Proven(NamedTuple):
    """A caller who holds the key of its token, and the number of its proof, which names the request."""

    caller: ProvenCaller
    nonce: str


class _Bearer(NamedTuple):
    """What follows from a token that verified: its claims, whom they name, and the key that proofs must be of."""

    claims: JsonObject
    caller: ProvenCaller
    holder: dpop.Holder


class NeedsNonce(Refusal):
    """A proof with the nonce of this answer may count."""

    def __init__(self, code: str, detail: str, nonce: str) -> None:
        super().__init__(401, code, detail)
        self.nonce = nonce

    def answer(self) -> Answer:
        """The refusal, with the nonce that a proof must have."""
        plain = super().answer()
        headers = ((NONCE, self.nonce.encode()), (b"www-authenticate", CHALLENGE))
        return Answer(plain.code, plain.body, headers=(*plain.headers, *headers))


@dataclass(frozen=True, slots=True)
class Callers:
    """Recognises callers by token and proof, for one audience."""

    audience: str
    tokens: TokenVerifier
    macs: dpop.Macs
    revocations: Revocations
    turnstile: RateLimiter
    clock: Clock
    entropy: Entropy
    _bearers: BoundedCache[str, _Bearer] = field(default_factory=lambda: BoundedCache(MOST_SIGNED))

    def proved(self, request: Request, token: str) -> Proven:
        """The caller of a request that shows a token; raises Refusal."""
        bearer = self._bearer(request.address, token)
        proofs, now = request.headers(dpop.HEADER), self.clock.now()
        # The host that the client dialled: behind a balancer a door does not know its own name, and `htu` was made with that one.
        demand = dpop.Demand(request.method, f"https://{request.header(b'host')}{request.path}", token)
        try:
            # Exactly one proof (RFC 9449 §4.3, check 1): of two headers a proxy might look at one and we at the other.
            number = bearer.holder.check(proofs[0] if len(proofs) == 1 else "", demand, self.macs, now)
        except dpop.BadProof as error:
            # A nonce of the server's (RFC 9449 §9): without one a proof could be made in advance, for a time at which its key is
            # gone.
            if error.needs_nonce:
                nonce = dpop.new_nonce(self.macs, now, self.entropy)
                raise NeedsNonce(error.code, error.detail, nonce) from error
            raise Refusal(401, error.code, error.detail) from error
        request.recognised()
        return Proven(bearer.caller, number)

    def unknown(self, request: Request, refusal: Refusal) -> Refusal:
        """The refusal of somebody whose credential was missing or wrong, or that of one who was wrong too often."""
        address = request.address
        try:
            self.turnstile.doubt(address)
        except Refusal as tired:
            return tired
        # Counted where nothing was shown too: the limit is on addresses that fail, whatever they fail with.
        self.turnstile.wrong(address)
        return refusal

    def _bearer(self, address: str, token: str) -> _Bearer:
        payer = None
        if not self.tokens.is_verified(token):
            payer = self._payer(token)
            # A token that claims to be of an enrolled machine is looked at under that machine's budget: flooding one name starves
            # that one.
            self.turnstile.doubt(address, payer)
        try:
            claims = self.tokens.verify(token, self.audience)
        except NoTokenKeys as error:
            # No keys published yet is a broker that has not started: the token may be good, so the machine must not give up.
            raise Refusal(503, error.code, error.message) from error
        except BadToken as error:
            if payer is not None:
                self.turnstile.wrong(address, payer)
            raise Refusal(401, error.code, error.message) from error
        bearer = self._bearers.get(token)
        # The issuer gives the same object for as long as it remembers the signature, and checks its time every time.
        return bearer if bearer is not None and bearer.claims is claims else self._keep(token, claims)

    def _keep(self, token: str, claims: JsonObject) -> _Bearer:
        caller = proven_caller(claims)
        if caller is None:
            raise Refusal(401, "bad-token", "the token does not say who its bearer is")
        # Kept to be forwarded: the config server verifies what the machine showed and does not take our word (decision 27).
        caller = replace(caller, credential=f"DPoP {token}")
        bearer = _Bearer(claims, caller, dpop.Holder(caller.recipient, token))
        self._bearers.put(token, bearer)
        return bearer

    def _payer(self, token: str) -> str:
        """The enrolled machine that a token claims to be of; empty for strangers."""
        subject = claimed_subject(token)
        return subject if subject and self.revocations.enrolled(subject) else ""
