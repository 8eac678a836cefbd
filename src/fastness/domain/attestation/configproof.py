"""A served configuration carries a signature: these bytes, for this machine of this pool, in answer to this request.

    Fastness-Signature: <base64url header>..<base64url signature>          a detached JWS (EdDSA)

The header says algorithm, key and expiry; the payload is left out, because both sides know it: hash of the body, pool,
machine, nonce of the request, expiry; for a rendered config that was asked for by its name (day two) that name too. A machine
checks it with the key out of its measured image, so whoever sits between it and the gate, and whoever holds the gate's TLS
certificate, can neither change a configuration nor hand it another machine's or an older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.crypto.eddsa import Ed25519Signer, Ed25519Verifier
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import decoded, encoded
from fastness.formats import json
from fastness.formats.errors import JsonError

HEADER: Final = "Fastness-Signature"
TYPE: Final = "fastness-config"
ALGORITHM: Final = "EdDSA"
MOST_REMEMBERED: Final = 1024 * 1024
MAX_SIGNATURE: Final = 1024
_LIMITS: Final = json.JsonLimits(max_bytes=512, max_depth=2)


@dataclass(frozen=True, slots=True)
class Served:
    """What a signature is about; `rendered` is the name that a running machine asked for, empty for one that boots."""

    body: bytes
    pool: str
    machine: str
    nonce: str
    rendered: str = ""


class BadConfigProof(Exception):
    """The configuration is not what the cluster signed for this machine and this request."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


def signed(served: Served, key: Ed25519Signer, expires: datetime) -> str:
    """The header's value."""
    until = int(expires.timestamp())
    shown = _shown(key.verifier.id, until)
    return f"{shown}..{encoded(key.sign(_message(shown, served, until)))}"


@lru_cache(maxsize=4)
def _shown(kid: str, until: int) -> str:
    """The header as it goes out: the same for all answers of one second."""
    return encoded(json.canonical({"alg": ALGORITHM, "kid": kid, "typ": TYPE, "exp": until}))


def check(text: str, served: Served, keys: Mapping[str, Ed25519Verifier], now: datetime) -> None:
    """Check a signature against the keys of the image, by id; raises BadConfigProof."""
    shown, _, signature = text.partition("..")
    try:
        header = json.decode(decoded(shown), _LIMITS) if len(text) <= MAX_SIGNATURE else None
        proof = decoded(signature)
    except (JsonError, BadKey) as error:
        raise BadConfigProof("signature-unreadable", "the signature of the configuration cannot be read") from error
    until, key = _header(header, keys)
    if not key.signed(proof, _message(shown, served, until)):
        raise BadConfigProof("signature-invalid", "the configuration is not what the cluster signed for this request")
    if now.timestamp() >= until:
        raise BadConfigProof("signature-expired", "the signature has expired: check the clock")


def _header(header: Any, keys: Mapping[str, Ed25519Verifier]) -> tuple[int, Ed25519Verifier]:
    if not isinstance(header, dict) or header.keys() != {"alg", "kid", "typ", "exp"}:
        raise BadConfigProof("signature-unreadable", "the signature of the configuration cannot be read")
    if header["alg"] != ALGORITHM or header["typ"] != TYPE or type(header["exp"]) is not int:
        raise BadConfigProof("signature-unreadable", "the signature is of another kind")
    key = keys.get(str(header["kid"]))
    if key is None:
        raise BadConfigProof("signature-key", "the signature is of a key that this image does not know")
    return header["exp"], key


def _message(shown: str, served: Served, until: int) -> bytes:
    payload = {
        "sha256": _digest(served.body), "pool": served.pool, "machine": served.machine, "nonce": served.nonce,
        "exp": until, **({"rendered": served.rendered} if served.rendered else {}),
    }  # fmt: skip
    return f"{shown}.{encoded(json.canonical(payload))}".encode()


def _digest(body: bytes) -> str:
    """SHA-256 of a body. A pool's config goes out as the same bytes to all its machines: it is digested once."""
    return _remembered(body) if len(body) <= MOST_REMEMBERED else sha256(body).hex


@lru_cache(maxsize=8)
def _remembered(body: bytes) -> str:
    return sha256(body).hex
