"""Compact JWS with ES256, and nothing else.

Service-account tokens are signed and verified here. The rules that keep the classic attacks out:

* The algorithm is fixed. A header that says `none`, HS256 or anything else is refused before any key is touched.
* Keys come from the verifier's own set, chosen by `kid`; `jwk`, `jku`, `x5u` and `x5c` in a header are refused, never followed.
* A token is bounded in size before it is decoded, and its payload must be a JSON object.

What the claims mean (expiry, audience, subject) is decided by the caller: a signature only says who wrote them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey, BadSignature
from fastness.crypto.jwk import decoded, ec_members, encoded, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.crypto.silicon.verify import p256

ALGORITHM: Final = "ES256"
# Tokens travel in a header; the bound also limits what a stranger makes us decode before any signature is looked at.
MAX_TOKEN_CHARS: Final = 16_384
# A header with more is refused and not read selectively: `crit` (RFC 7515 §4.1.11) would have to be understood, and a verifier
# that used `jwk` or `x5c` believed the key that the token itself brought along (pitfall 1).
_HEADER_FIELDS: Final = frozenset({"alg", "kid", "typ"})


class VerifyingKey:
    """The public half of a P-256 key that signs tokens; its id is the hash of its SubjectPublicKeyInfo."""

    __slots__ = ("_public", "id")

    def __init__(self, handle: ec.EllipticCurvePublicKey) -> None:
        der = handle.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        # Follows from the key: nobody can publish another key under the id of one that is trusted.
        self.id = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        self._public = handle

    @classmethod
    def from_jwk(cls, jwk: Mapping[str, Any]) -> VerifyingKey:
        """A key out of a JWKS document; raises BadKey. Its id is computed, never believed."""
        handle = public_key(jwk).handle
        if not isinstance(handle, ec.EllipticCurvePublicKey) or jwk.get("crv") != "P-256":
            raise BadKey("tokens are signed with keys on P-256 only")
        return cls(handle)

    # The caller has looked at the header; here the signature is over the text as it came, never over what was decoded from it.
    def check(self, token: str) -> bytes:
        """The payload, when this key signed it; raises BadSignature."""
        signing, _, signature = token.rpartition(".")
        try:
            good = p256(self._public, decoded(signature), signing.encode("ascii"))
            payload = decoded(signing.rpartition(".")[2])
        except (BadKey, ValueError) as error:
            raise BadSignature("the token cannot be read") from error
        if not good:
            raise BadSignature("the signature of the token does not verify")
        return payload

    def public_jwk(self) -> dict[str, Any]:
        """The public half, for a JWKS document."""
        return {"use": "sig", "kid": self.id, "alg": ALGORITHM, **ec_members(self._public, "P-256")}


class SigningKey(VerifyingKey):
    """A P-256 key that signs tokens."""

    __slots__ = ("private",)

    def __init__(self, private: PrivateKey) -> None:
        super().__init__(private.handle.public_key())
        self.private = private

    @classmethod
    def generate(cls, entropy: RandomBytes) -> SigningKey:
        """A fresh key."""
        return cls(PrivateKey.generate(entropy))

    @classmethod
    def from_pem(cls, pem: SecretBytes) -> SigningKey:
        """A key that was saved; raises BadKey."""
        return cls(PrivateKey.from_pem(pem))

    def sign(self, claims: Mapping[str, Any], kind: str = "") -> SecretText:
        """A compact token that carries these claims; `kind` is its `typ`."""
        header = {"alg": ALGORITHM, "kid": self.id, **({"typ": kind} if kind else {})}
        return SecretText(signed_by(self.private, header, orjson.dumps(claims)))


class VerifyingKeys:
    """The keys whose tokens are accepted."""

    def __init__(self, keys: Sequence[VerifyingKey]) -> None:
        if not keys:
            raise BadKey("at least one token key is needed")
        self._keys = {key.id: key for key in keys}

    @classmethod
    def from_jwks(cls, document: Any) -> VerifyingKeys:
        """The keys of a JWKS document; raises BadKey."""
        keys = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise BadKey("the document is no JWKS")
        return cls([VerifyingKey.from_jwk(key) for key in keys])

    def verify(self, token: str, kind: str = "") -> dict[str, Any]:
        """The claims of a token that one of the keys signed, of that `typ` if one is named; raises BadSignature."""
        # By id and from our own set alone (RFC 8725 §3.10): the token says which key, and never what the key is.
        key = self._keys.get(_key_id(token, kind))
        if key is None:
            raise BadSignature("the token names a key that is not known here")
        try:
            claims = orjson.loads(key.check(token))
        except orjson.JSONDecodeError as error:
            raise BadSignature("the payload of the token is not JSON") from error
        if not isinstance(claims, dict):
            raise BadSignature("the payload of the token is not an object")
        return claims

    def jwks(self) -> dict[str, Any]:
        """The public halves as a JWKS document."""
        return {"keys": [key.public_jwk() for key in self._keys.values()]}


class TokenKeys(VerifyingKeys):
    """Keys that sign as well; the first one does."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        super().__init__(keys)
        self.signer = keys[0]


def signed_by(key: PrivateKey, header: Mapping[str, Any], payload: bytes) -> str:
    """A compact ES256 JWS with a header of the caller's, for formats that say what the header is."""
    signing = f"{encoded(orjson.dumps(header))}.{encoded(payload)}"
    return f"{signing}.{encoded(key.sign(signing.encode()))}"


def _key_id(token: str, kind: str = "") -> str:
    """The `kid` of an acceptable header; raises BadSignature for every other header."""
    # Two dots: the JSON serialization of RFC 7515 §7.2 allows several signatures and unprotected headers, and is not read at all.
    if len(token) > MAX_TOKEN_CHARS or token.count(".") != 2 or not token.isascii():
        raise BadSignature("not a compact token")
    head = token.partition(".")[0]
    try:
        header = orjson.loads(base64.b64decode(head + "=" * (-len(head) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError) as error:
        raise BadSignature("the header of the token cannot be read") from error
    # `none`, and HS256 keyed with a public key, are the classic forgeries: the algorithm is ours to choose (RFC 8725 §2.1, §3.1;
    # pitfall 16).
    if not isinstance(header, dict) or header.get("alg") != ALGORITHM or not header.keys() <= _HEADER_FIELDS:
        raise BadSignature(f"only {ALGORITHM} tokens with a plain header are accepted")
    # One key signs several kinds of token; without a type one kind could be shown where another is asked for (RFC 8725 §3.11).
    if kind and header.get("typ") != kind:
        raise BadSignature(f"the token is not of type {kind}")
    key_id = header.get("kid")
    return key_id if isinstance(key_id, str) else ""
