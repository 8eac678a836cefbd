"""Credentials of the broker's administrators: short-lived, scoped, minted by whoever may read their key in Kubernetes.

The right to administer the broker is the right to read one Secret (`broker-admin-keys`); role-based access of Kubernetes decides
about it. What is handed on is a token made with that key: for an hour at most, with the calls that it allows written out.

    POST resource/default/*/*          a scope: method, then segments; * is any one segment, ** the rest
    * **                               everything

* Tokens of machines are signed with other keys and are of another type: neither passes for the other.
* The method is part of every scope: who may write need not be able to delete.
* Role names are sets of scopes, spelled out when a token is minted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.errors import BadSignature
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.keys.errors import BadToken
from fastness.keys.keyrings import KeySecret, LiveKeys, Ring
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.release.live.tokens import check_claims
from fastness.runtime.clock import Clock, Entropy

ISSUER: Final = "https://fastness.dev/broker/admin"
AUDIENCE: Final = "broker-admin"
TYPE: Final = "fastness-admin+jwt"
LIFETIME: Final = timedelta(days=30)
# A credential cannot be taken back one by one, only with its key: so it is short.
MAX_LIFETIME: Final = timedelta(hours=1)
MAX_SCOPES: Final = 64
ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": ("* **",),
    "resources": ("GET resource", "POST resource/**", "DELETE resource/**"),
    "policies": ("GET resource-policy", "POST resource-policy", "GET attestation-policy", "POST attestation-policy"),
    # Each task has its own words: who registers values need not be able to write the policy that asks for them.
    "values": ("POST reference-value", "GET reference-value/**"),
}
_SCOPE: Final = re.compile(
    r"(GET|POST|DELETE|\*) ([a-z0-9._-]{1,128}|\*)((/([a-z0-9._:-]{1,128}|\*))*(/\*\*)?)\Z|\* \*\*\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Admin:
    """Somebody who may administer the broker, within scopes."""

    name: str
    scopes: tuple[str, ...]

    def may(self, method: str, segments: Sequence[str]) -> bool:
        """Whether a call is within the scopes."""
        return any(_covers(scope, method, segments) for scope in self.scopes)


def _covers(scope: str, method: str, segments: Sequence[str]) -> bool:
    verb, _, path = scope.partition(" ")
    if verb not in ("*", method):
        return False
    parts = path.split("/")
    if parts[-1] == "**":
        parts.pop()
        segments = segments[: len(parts)]
    return len(parts) == len(segments) and all(
        part in ("*", segment) for part, segment in zip(parts, segments, strict=True)
    )


def is_scope(text: str) -> bool:
    """Whether a text is a scope."""
    return _SCOPE.match(text) is not None


def _made(entropy: Entropy) -> SecretBytes:
    return SigningKey.generate(entropy).private.to_pem()


def _built(ring: Ring) -> TokenKeys:
    return TokenKeys([SigningKey.from_pem(key.material) for key in ring])


ADMIN_KEYS: Final = KeySecret("broker-admin-keys", LIFETIME, _made)


async def mint(
    cluster: Cluster, entropy: Entropy, now: datetime, name: str, scopes: Sequence[str], lifetime: timedelta
) -> SecretText:
    """A credential for somebody; raises BadToken for scopes or a lifetime that are none, Forbidden, ApiError."""
    if not scopes or len(scopes) > MAX_SCOPES or not all(map(is_scope, scopes)):
        raise BadToken("a scope is a method and a path, such as `POST resource/default/*/*`", "Correct the scope.")
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        raise BadToken("a credential lives for an hour at most", "Ask for a shorter one, and again when it ends.")
    # Whoever runs this reads the Secret with the rights that it has itself: Kubernetes decides here, and writes it into its audit
    # log.
    ring = await ADMIN_KEYS.open(cluster, entropy, now)
    claims = {
        "iss": ISSUER, "aud": [AUDIENCE], "sub": name, "jti": entropy.uid(), "scope": list(scopes),
        "iat": int(now.timestamp()), "exp": int((now + lifetime).timestamp()),
    }  # fmt: skip
    return _built(ring).signer.sign(claims, TYPE)


class Admins:
    """Recognises administrators by their credentials."""

    def __init__(self, keys: LiveKeys[TokenKeys], clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> Admins:
        """The administrators of this cluster's broker; raises DamagedKeys, ApiError."""
        return cls(await LiveKeys.open(ADMIN_KEYS, cluster, informers, clock, entropy, _built), clock)

    def recognise(self, token: str) -> Admin:
        """Whose credential this is; raises BadToken."""
        try:
            claims = self._keys.current.verify(token, TYPE)
        except BadSignature as error:
            raise BadToken(error.message, "Mint a new credential.") from error
        # The lifetime is asked here too: whoever may read the key could mint one for years with another tool.
        check_claims(claims, ISSUER, AUDIENCE, self._clock.now(), MAX_LIFETIME)
        scopes = claims.get("scope")
        if not isinstance(scopes, list) or not all(isinstance(scope, str) and is_scope(scope) for scope in scopes):
            raise BadToken("the credential has no scopes", "Mint a new credential.")
        return Admin(str(claims["sub"]), tuple(scopes))

    async def renew(self, cluster: Cluster, entropy: Entropy) -> None:
        """Begin a new key if one is due; raises DamagedKeys, ApiError."""
        await self._keys.renew(cluster, entropy)
