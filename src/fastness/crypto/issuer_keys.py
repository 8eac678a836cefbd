"""Tokens of somebody else's issuer: compact JWS by the keys that it publishes, for the login of people.

`jws` is for our own tokens: one algorithm, ids that follow from keys. An identity provider chooses both itself, so here:

* Two algorithms, RS256, which every provider has (OpenID Connect Core §15.1), and ES256. **The key decides which**: a header that
  names another than the one of its key is refused, so neither `none` nor HS256 with a public key as its secret is ever computed.
* Keys come from the published set alone, by `kid`. `jwk`, `jku`, `x5u`, `x5c` and `crit` in a header are refused, never followed.
* A set is bounded, and so is a token; keys for encryption and of other kinds are passed over, weak ones are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from fastness.crypto.errors import BadKey, BadSignature
from fastness.crypto.jwk import PublicJwk, decoded, public_key
from fastness.crypto.jws import MAX_TOKEN_CHARS

RS256: Final = "RS256"
ES256: Final = "ES256"
MOST_KEYS: Final = 64
# Providers add thumbprints of certificates (`x5t`) that nobody has to look at; everything else is refused.
_HEADER_FIELDS: Final = frozenset({"alg", "kid", "typ", "x5t", "x5t#S256"})
_TYPES: Final = frozenset({None, "JWT", "jwt"})


class UnknownKey(BadSignature):
    """The token names a key that is not in the set; the issuer may have a new one."""


class IssuerKeys:
    """The keys of an issuer."""

    def __init__(self, keys: Mapping[str, PublicJwk]) -> None:
        self._keys = dict(keys)

    @classmethod
    def from_jwks(cls, document: Any) -> IssuerKeys:
        """The signing keys of a JWKS document that we can use; raises BadKey when there is none."""
        entries = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(entries, list) or len(entries) > MOST_KEYS:
            raise BadKey(f"the issuer's document is no set of at most {MOST_KEYS} keys")
        keys: dict[str, PublicJwk] = {}
        for entry in entries:
            if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
                continue
            try:
                key = public_key(entry)
            except BadKey:
                continue  # of a kind or strength that is not for us
            kid = entry.get("kid", "")
            if not isinstance(kid, str) or kid in keys or entry.get("alg", _algorithm(key)) != _algorithm(key):
                continue
            if _algorithm(key):
                keys[kid] = key
        if not keys:
            raise BadKey("the issuer publishes no key for RS256 or ES256")
        return cls(keys)

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that one of the keys signed; raises UnknownKey, BadSignature."""
        algorithm, kid = _header(token)
        key = self._keys.get(kid)
        if key is None:
            raise UnknownKey("the token names a key that its issuer does not publish")
        if algorithm != _algorithm(key):
            raise BadSignature("the token is not signed with the algorithm of its key")
        signing, _, signature = token.rpartition(".")
        try:
            payload = orjson.loads(decoded(signing.partition(".")[2]))
            good = _signed(key, decoded(signature), signing.encode("ascii"))
        except (BadKey, orjson.JSONDecodeError) as error:
            raise BadSignature("the token cannot be read") from error
        if not good:
            raise BadSignature("the signature of the token does not verify")
        if not isinstance(payload, dict):
            raise BadSignature("the payload of the token is not an object")
        return payload


def _algorithm(key: PublicJwk) -> str:
    """The one algorithm of a key; empty for a key that signs nothing for us."""
    if isinstance(key.handle, rsa.RSAPublicKey):
        return RS256
    return ES256 if key.curve == "P-256" else ""


def _signed(key: PublicJwk, signature: bytes, message: bytes) -> bool:
    if not isinstance(key.handle, rsa.RSAPublicKey):
        return key.signed(signature, message)
    try:
        key.handle.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _header(token: str) -> tuple[str, str]:
    """Algorithm and key id of an acceptable header; raises BadSignature."""
    if len(token) > MAX_TOKEN_CHARS or token.count(".") != 2 or not token.isascii():
        raise BadSignature("not a compact token")
    try:
        header = orjson.loads(decoded(token.partition(".")[0]))
    except (BadKey, orjson.JSONDecodeError) as error:
        raise BadSignature("the header of the token cannot be read") from error
    if not isinstance(header, dict) or not header.keys() <= _HEADER_FIELDS or header.get("typ") not in _TYPES:
        raise BadSignature("only tokens with a plain header are accepted")
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if algorithm not in (RS256, ES256) or not isinstance(kid, str):
        raise BadSignature(f"only {RS256} and {ES256} are accepted")
    return str(algorithm), kid
