"""Proof of possession on every request: DPoP (RFC 9449), with nonces of the server.

A token says which key it belongs to (`cnf`); a proof is a small JWS by that key over this request. A door accepts a token only
together with a proof:

* signed with ES256 by the key in the token. The key in the proof's header must be that key; it is compared, never used.
* for this method and this URL (`htm`, `htu`, without query and fragment) and this token (`ath`).
* with a nonce that a door of this cluster made at most a minute ago. Replicas keep nothing: a nonce is text of ours that expires.
  Requests that change nothing are all that proofs are accepted for, so a proof seen twice within its minute does no harm.

`check_proof` is pure. When it asks for a nonce, the door answers 401 with a fresh one in `DPoP-Nonce`, and the client repeats.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from fastness.crypto.digests import same
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import PublicJwk, decoded, encoded, public_key
from fastness.crypto.jws import signed_by
from fastness.crypto.keys import PrivateKey
from fastness.formats import json
from fastness.formats.errors import JsonError

HEADER: Final = b"dpop"
TYPE: Final = "dpop+jwt"
ALGORITHM: Final = "ES256"
# Bounds how long a proof that somebody recorded can be shown again (RFC 9449 §11.1); a machine uses its nonce at once.
NONCE_LIFETIME: Final = timedelta(seconds=60)
SKEW: Final = timedelta(seconds=60)
_MOST_APART: Final = (NONCE_LIFETIME + SKEW).total_seconds()
MAX_PROOF: Final = 4096
# A proof that is shown twice within its minute must do no harm; what changes something would need a memory of proofs.
METHODS: Final = ("GET", "HEAD")
_PURPOSE: Final = "dpop-nonce"
# Before anything is decoded: two dots and base64url alone, so that the text that is hashed is the text that was signed.
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_PROOF, max_depth=4)


class Macs(Protocol):
    """Writes and reads texts of ours; `crypto.mac.MacRing` is one."""

    def write(self, purpose: str, payload: bytes) -> str:
        """A text of ours."""

    def read(self, purpose: str, text: str) -> bytes | None:
        """Its payload, or None when we did not write it for that purpose."""


class BadProof(Exception):
    """A proof that does not count; `needs_nonce` says that the same with a fresh nonce may."""

    def __init__(self, code: str, detail: str, *, needs_nonce: bool = False) -> None:
        super().__init__(detail)
        self.code, self.detail, self.needs_nonce = code, detail, needs_nonce


@dataclass(frozen=True, slots=True)
class Demand:
    """What a proof must be about."""

    method: str
    url: str
    token: str


def new_nonce(macs: Macs, now: datetime, entropy: RandomBytes) -> str:
    """A nonce that is good for a minute, at every replica."""
    expires = int((now + NONCE_LIFETIME).timestamp())
    # The random part keeps two nonces of one second apart, so that a proof names one answer of a door.
    return macs.write(_PURPOSE, expires.to_bytes(8, "big") + entropy.token(8))


def check_proof(proof: str, demand: Demand, confirmation: Mapping[str, Any], macs: Macs, now: datetime) -> str:
    """Check that the holder of the key in `confirmation` (a JWK) made this proof for this request; raises BadProof.

    The result is the proof's own number, `jti`, which names the request.
    """
    return Holder(confirmation, demand.token).check(proof, demand, macs, now)


class Holder:
    """Whoever has the key of a token, ready to be asked for proofs.

    What follows from token and key alone is worked out once: the hash of the token, the key, and that the header of the last
    proof names that key. Everything about one proof is checked for every proof.
    """

    __slots__ = ("_confirmation", "_head", "_key", "_token")

    def __init__(self, confirmation: Mapping[str, Any], token: str) -> None:
        self._confirmation = confirmation
        self._token = token_hash(token)
        self._key: PublicJwk | None = None
        self._head = ""

    def check(self, proof: str, demand: Demand, macs: Macs, now: datetime) -> str:
        """The number of a proof that counts for this request, which must show the same token; raises BadProof."""
        if demand.method not in METHODS:
            raise BadProof("proof-method", f"proofs are accepted for {' and '.join(METHODS)} only")
        head, claims, signature = _parts(proof)
        # What costs nothing first: only the holder of the token, with a fresh nonce of ours, makes us compute a signature.
        key = self._named(head)
        _check_request(claims, demand, self._token)
        _check_time(claims, macs, now)
        if not key.signed(signature, proof.rpartition(".")[0].encode()):
            raise BadProof("proof-signature", "the signature of the proof does not verify")
        return str(claims["jti"])

    def _named(self, head: str) -> PublicJwk:
        """The key, when the header of a proof names it."""
        if self._key is None or head != self._head:
            header = _object(head)
            try:
                key, embedded = public_key(self._confirmation), public_key(header.get("jwk") or {})
            except BadKey as error:
                raise BadProof("proof-key", "the key of the proof cannot be used") from error
            _check_header(header, key, embedded)
            self._key, self._head = key, head
        return self._key


def make_proof(key: PrivateKey, jwk: Mapping[str, Any], demand: Demand, nonce: str, now: datetime, jti: str) -> str:
    """The proof that a machine sends with a request."""
    header = {"typ": TYPE, "alg": ALGORITHM, "jwk": {name: jwk[name] for name in ("crv", "kty", "x", "y")}}
    claims = {
        "jti": jti, "htm": demand.method, "htu": demand.url, "iat": int(now.timestamp()), "nonce": nonce,
        "ath": token_hash(demand.token),
    }  # fmt: skip
    return signed_by(key, header, json.encode(claims))


def token_hash(token: str) -> str:
    """What `ath` says of a token."""
    return encoded(hashlib.sha256(token.encode()).digest())


def _parts(proof: str) -> tuple[str, dict[str, Any], bytes]:
    """Header as text, claims and signature of a proof."""
    if not proof or len(proof) > MAX_PROOF or _COMPACT.match(proof) is None:
        raise BadProof("no-proof", "send one DPoP proof with the token", needs_nonce=not proof)
    head, body, tail = proof.split(".")
    try:
        signature = decoded(tail)
    except BadKey as error:
        raise BadProof("bad-proof", "the DPoP proof cannot be read") from error
    return head, _object(body), signature


def _object(part: str) -> dict[str, Any]:
    try:
        value = json.decode(decoded(part), _LIMITS)
    except (JsonError, BadKey) as error:
        raise BadProof("bad-proof", "the DPoP proof cannot be read") from error
    if not isinstance(value, dict):
        raise BadProof("bad-proof", "the DPoP proof cannot be read")
    return value


def _check_header(header: Mapping[str, Any], key: PublicJwk, embedded: PublicJwk) -> None:
    # Checks 4 and 5 of RFC 9449 §4.3. Members that we do not know are refused: `crit` is one, and would have to be obeyed.
    if header.get("typ") != TYPE or header.get("alg") != ALGORITHM or header.keys() != {"typ", "alg", "jwk"}:
        raise BadProof("bad-proof", f"the header of a proof says typ {TYPE}, alg {ALGORITHM} and jwk, and nothing else")
    # A private key in the header was published to everybody on the way (RFC 9449 §4.3, check 7).
    if "d" in header["jwk"] or not same(embedded.thumbprint, key.thumbprint):
        raise BadProof("proof-key", "the proof is of another key than the token")


def _check_request(claims: Mapping[str, Any], demand: Demand, token: str) -> None:
    named = claims.get("htu")
    # Method and address (RFC 9449 §4.3, checks 8 and 9): a proof for one door opens nothing at another.
    if claims.get("htm") != demand.method or (named != demand.url and _address(named) != _address(demand.url)):
        raise BadProof("proof-request", "the proof is for another request")
    # The hash of this token (check 12): otherwise a proof beside an old token of the same key would serve a newer one.
    if not same(str(claims.get("ath") or ""), token):
        raise BadProof("proof-token", "the proof is for another token")
    # Asked for although nobody remembers it: it names the request in the record.
    if not isinstance(claims.get("jti"), str) or not claims["jti"]:
        raise BadProof("bad-proof", "the proof has no jti")


def _check_time(claims: Mapping[str, Any], macs: Macs, now: datetime) -> None:
    issued, nonce = claims.get("iat"), claims.get("nonce")
    moment = now.timestamp()
    # Loose on purpose: clocks of machines are wrong, and what proves freshness is the nonce of ours that follows.
    if type(issued) is not int or abs(moment - issued) > _MOST_APART:
        raise BadProof("proof-time", "the proof was not made now: check the clock", needs_nonce=True)
    # Read by its tag: a nonce that some other door of the cluster wrote counts, one that a stranger made up does not.
    payload = macs.read(_PURPOSE, nonce) if isinstance(nonce, str) else None
    if payload is None or moment >= int.from_bytes(payload[:8], "big"):
        raise BadProof("use-dpop-nonce", "use the nonce of this answer", needs_nonce=True)


def _address(url: Any) -> tuple[str, str, str]:
    """Scheme, authority and path of a URL, in lower case where case does not count; empty parts for what is none."""
    if not isinstance(url, str):
        return "", "", ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", ""
    # Scheme and host in any case, the default port or none: RFC 3986 §6.2.2 and §6.2.3 call those the same address.
    host = parts.netloc.lower()
    return parts.scheme.lower(), host.removesuffix(":443") if parts.scheme.lower() == "https" else host, parts.path
