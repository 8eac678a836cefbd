"""Tokens that say what a machine proved: EAR, ES256, under keys of this cluster.

    token, claims = issuer.issue(proved, lifetime)        # TokenIssuer: the broker, which judges evidence
    claims = verifier.verify(token, audience)             # TokenVerifier: gate, config server, whoever else believes tokens

The private keys live in a Secret of the issuer alone, the JWKS in a ConfigMap that it publishes; each signs for 30 days, two are
live, and replicas share them. A gate that was taken over can show tokens that machines gave it, and make none.

* Verification is as strict as `crypto.jws` (one algorithm, keys by `kid` out of our own ring) and then asks for the type, issuer,
  audience, expiry and age. A token without one of them does not count.
* A token says nothing about revocation after it was issued: doors ask `Revocations` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from fastness.crypto.errors import BadKey, BadSignature
from fastness.crypto.jwk import decoded
from fastness.crypto.jws import MAX_TOKEN_CHARS, SigningKey, TokenKeys, VerifyingKeys
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.errors import BadToken, NoTokenKeys
from fastness.keys.keyrings import KeySecret, LiveKeys, Publication, PublishedKeys, RingKey
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.release.ear import Proved, ear_claims
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock, Entropy

ISSUER: Final = "https://fastness.dev/attestation"
BROKER: Final = "broker"
GATE: Final = "gate"
AUDIENCES: Final = (BROKER, GATE)
TYPE: Final = "JWT"
LIFETIME: Final = timedelta(days=30)
SKEW: Final = timedelta(seconds=30)
MAX_AGE: Final = timedelta(hours=24)
MOST_SIGNED: Final = 4096
_HINT: Final = "Attest again."


def unseen(_machine: Machine) -> None:
    """Ask nothing more of a machine than that it is trusted."""


class Revocations(Protocol):
    """Knows what is no longer trusted."""

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine, key, image or anything else that these claims name was revoked since, as the caches know it."""

    async def ended(self, claims: Mapping[str, Any], look: Callable[[Machine], None] = unseen) -> bool:
        """Whether the machine of these claims was revoked since, as the API says now; raises CannotKnow.

        `look` is shown the machine that the API told of if it was not, and may raise.
        """

    def enrolled(self, thumbprint: str) -> bool:
        """Whether a machine with this key is known."""


def _made(entropy: Entropy) -> SecretBytes:
    return SigningKey.generate(entropy).private.to_pem()


def _keys(ring: Sequence[RingKey]) -> TokenKeys:
    return TokenKeys([SigningKey.from_pem(key.material) for key in ring])


def _jwks(ring: Sequence[RingKey]) -> JsonObject:
    return _keys(ring).jwks()


TOKEN_JWKS: Final = Publication("token-public-keys", _jwks)
TOKEN_KEYS: Final = KeySecret("token-keys", LIFETIME, _made, TOKEN_JWKS)


class TokenVerifier:
    """Verifies tokens with the public keys of now; it has no key that could sign one."""

    def __init__(self, keys: PublishedKeys[VerifyingKeys] | LiveKeys[TokenKeys], clock: Clock) -> None:
        self._public = keys
        self._clock = clock
        # Signatures that were found good under the keys of now; everything else about a token is asked every time.
        self._trusted: VerifyingKeys | None = None
        self._signed = BoundedCache[str, JsonObject](MOST_SIGNED)

    @classmethod
    async def following(cls, informers: Informers, clock: Clock) -> TokenVerifier:
        """A verifier that follows what the issuer of this cluster published; it may have published nothing yet."""
        return cls(await PublishedKeys.open(TOKEN_JWKS, informers, VerifyingKeys.from_jwks), clock)

    def is_verified(self, token: str) -> bool:
        """Whether the signature of this very token was found good here before."""
        return token in self._signed

    def verify(self, token: str, audience: str) -> JsonObject:
        """The claims of a token that counts now, for this audience; raises BadToken, NoTokenKeys."""
        keys = self._now()
        if keys is not self._trusted:
            self._trusted = keys
            # A key that was taken back must end its tokens at once, also those whose signature was found good before.
            self._signed.clear()
        claims = self._signed.get(token)
        if claims is None:
            try:
                claims = keys.verify(token, TYPE)
            except BadSignature as error:
                raise BadToken(error.message, _HINT) from error
            # Only after the signature was good, so no stranger can fill the cache, and keyed by the whole text: one character
            # more is another token.
            self._signed.put(token, claims)
        check_claims(claims, ISSUER, audience, self._clock.now())
        return claims

    def jwks(self) -> JsonObject:
        """The public halves of the keys that count; raises NoTokenKeys."""
        return self._now().jwks()

    def _now(self) -> VerifyingKeys:
        keys = self._public.current
        if keys is None:
            raise NoTokenKeys("no keys of tokens are published yet", "Start the broker: it makes and publishes them.")
        return keys


class TokenIssuer(TokenVerifier):
    """Issues tokens, and verifies them, with the private keys of now. The broker has one and nobody else."""

    def __init__(self, keys: LiveKeys[TokenKeys], clock: Clock, entropy: Entropy) -> None:
        super().__init__(keys, clock)
        self._keys = keys
        self._entropy = entropy

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> TokenIssuer:
        """The issuer of this cluster, its keys made and published if there are none; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(TOKEN_KEYS, cluster, informers, clock, entropy, _keys), clock, entropy)

    def issue(
        self, proved: Proved, lifetime: timedelta, audiences: Sequence[str] = AUDIENCES
    ) -> tuple[SecretText, JsonObject]:
        """A token and its claims; raises BadToken when the claims do not fit into one."""
        now = self._clock.now()
        claims = ear_claims(
            proved, issuer=ISSUER, audiences=audiences, jti=self._entropy.uid(), issued=now,
            expires=now + min(lifetime, MAX_AGE),
        )  # fmt: skip
        return self.sign(claims), claims

    def sign(self, claims: JsonObject) -> SecretText:
        """A token of claims that were issued here, for a caller who came with a session; raises BadToken."""
        token = self._keys.current.signer.sign(claims, TYPE)
        # What does not fit into a header of our own listener would be refused there, where nothing explains why.
        if len(token.reveal()) > MAX_TOKEN_CHARS:
            raise BadToken("the claims are too long for a token", "Send less init-data.")
        return token

    async def renew(self, cluster: Cluster) -> None:
        """Begin a new key if one is due, and see that all are published; raises DamagedKeys, ApiError."""
        await self._keys.renew(cluster, self._entropy)


def claimed_subject(token: str) -> str:
    """Whose token this claims to be, before anybody verified it: fit to decide who pays for the look, and nothing else."""
    # Nothing here is verified, so nothing here may cost: size and form before any decoding.
    if len(token) > MAX_TOKEN_CHARS or token.count(".") != 2:
        return ""
    try:
        claims = json.decode(decoded(token.split(".")[1]))
    except (JsonError, BadKey):
        return ""
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else ""


def check_claims(
    claims: Mapping[str, Any], issuer: str, audience: str, now: datetime, most: timedelta = MAX_AGE
) -> None:
    """Check who issued claims, for whom and when; raises BadToken. Every one of them must be there."""
    audiences, issued, expires = claims.get("aud"), claims.get("iat"), claims.get("exp")
    # Another ring signs tokens of administrators; were the two keys ever mixed up, issuer, type and audience still tell them
    # apart (pitfall 16).
    if claims.get("iss") != issuer:
        raise BadToken("the token is of another issuer", _HINT)
    # A list, as we write it: in a text `in` would look for a part of a word.
    if not isinstance(audiences, list) or audience not in audiences:
        raise BadToken("the token is for somebody else", _HINT)
    # `type`, because `true` is an int to Python and would pass for a time.
    if type(issued) is not int or type(expires) is not int or not claims.get("jti") or not claims.get("sub"):
        raise BadToken("the token does not say when it was issued, until when, or for whom", _HINT)
    moment = now.timestamp()
    if moment >= expires:
        raise BadToken("the token has expired", _HINT)
    # Only replicas of our own broker issue tokens: farther ahead is a clock that is wrong, and its tokens would live too long.
    if issued > moment + SKEW.total_seconds():
        raise BadToken("the token was issued in the future", "Check the clocks of the replicas.")
    # Asked of every token, not only when one is made: no defect of an issuer makes one that counts for years.
    if expires - issued > most.total_seconds():
        raise BadToken("the token lives longer than tokens may", _HINT)
