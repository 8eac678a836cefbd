"""A served configuration carries a signature: these bytes, for this machine of this pool, in answer to this request.

    Fastness-Signature: <base64url header>..<base64url signature>          a detached JWS (EdDSA)

The header says algorithm, key and expiry; the payload is left out, because both sides know it: hash of the body, pool,
machine and thumbprint of its key, nonce of the request, expiry; for a rendered config that was asked for by its name (day two)
that name too. A machine checks it with the key out of its measured image. Only the config server has the private half, so whoever
sits between it and the machine, a gate or a broker that was taken over included, can neither change a configuration nor hand it
another machine's or an older one.

Where the broker delivers from copies, the statement is about a pool and a rendered config, until an expiry (`Copied`); which
machine it is for, and in answer to which request, is in the broker's seal.

What nodes have beside their configuration (`protocol.node_trust`) is signed in the same way, under types of its own.

A node that never attested has neither a Machine nor an enrolled key: the statement names the node, and the certificate that it
showed (`ServedToNode`). Each kind has a type of its own, so that none passes for another.
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
COPY_TYPE: Final = "fastness-config-copy"
NODE_TYPE: Final = "fastness-config-node"
TRUST_TYPE: Final = "fastness-trust"
NODE_TRUST_TYPE: Final = "fastness-trust-node"
ALGORITHM: Final = "EdDSA"
MOST_REMEMBERED: Final = 1024 * 1024
MAX_SIGNATURE: Final = 1024
_LIMITS: Final = json.JsonLimits(max_bytes=512, max_depth=2)


@dataclass(frozen=True, slots=True)
class Served:
    """A configuration for one machine in answer to one request.

    `rendered` is the name that a running machine asked for, empty for one that boots; `key` the thumbprint of the machine's key.
    `trust`: it is what the machine has beside its configuration.
    """

    body: bytes
    pool: str
    machine: str
    nonce: str
    rendered: str = ""
    key: str = ""
    trust: bool = False

    @property
    def type(self) -> str:
        """What kind of statement it is."""
        return TRUST_TYPE if self.trust else TYPE

    def payload(self, until: int) -> dict[str, Any]:
        """What is signed."""
        return {
            "sha256": _digest(self.body), "pool": self.pool, "machine": self.machine, "key": self.key,
            "nonce": self.nonce, "exp": until, **({"rendered": self.rendered} if self.rendered else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copied:
    """A configuration that the broker keeps: for all machines of a pool. The broker's seal says for which one, and when."""

    body: bytes
    pool: str
    rendered: str

    @property
    def type(self) -> str:
        """What kind of statement it is: neither kind passes for the other."""
        return COPY_TYPE

    def payload(self, until: int) -> dict[str, Any]:
        """What is signed."""
        return {"sha256": _digest(self.body), "pool": self.pool, "rendered": self.rendered, "exp": until}


@dataclass(frozen=True, slots=True)
class ServedToNode:
    """A rendered config for one node that never attested, in answer to one request.

    `certificate` is the digest of the certificate that the node showed.
    """

    body: bytes
    pool: str
    node: str
    certificate: str
    nonce: str
    rendered: str
    trust: bool = False

    @property
    def type(self) -> str:
        """What kind of statement it is: it proves nothing to a machine that attests."""
        return NODE_TRUST_TYPE if self.trust else NODE_TYPE

    def payload(self, until: int) -> dict[str, Any]:
        """What is signed."""
        return {
            "sha256": _digest(self.body), "pool": self.pool, "node": self.node, "certificate": self.certificate,
            "nonce": self.nonce, "rendered": self.rendered, "exp": until,
        }  # fmt: skip


Statement = Served | Copied | ServedToNode


class BadConfigProof(Exception):
    """The configuration is not what the cluster signed for this machine and this request."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


def signed(served: Statement, key: Ed25519Signer, expires: datetime) -> str:
    """The header's value."""
    until = int(expires.timestamp())
    header = _shown(key.verifier.id, until, served.type)
    return f"{header}..{encoded(key.sign(_message(header, served, until)))}"


@lru_cache(maxsize=8)
def _shown(kid: str, until: int, kind: str) -> str:
    """The header as it goes out: the same for all answers of one second."""
    return encoded(json.canonical({"alg": ALGORITHM, "kid": kid, "typ": kind, "exp": until}))


def check(text: str, served: Statement, keys: Mapping[str, Ed25519Verifier], now: datetime) -> None:
    """Check a signature against the keys of the image, by id; raises BadConfigProof."""
    # Two dots: the payload between them is left out (RFC 7515 Appendix F), so nothing that is sent can differ from what is known.
    encoded_header, _, signature = text.partition("..")
    try:
        header = json.decode(decoded(encoded_header), _LIMITS) if len(text) <= MAX_SIGNATURE else None
        proof = decoded(signature)
    except (JsonError, BadKey) as error:
        raise BadConfigProof("signature-unreadable", "the signature of the configuration cannot be read") from error
    # By id out of the keys of the measured image: nothing in the answer says which key to believe.
    until, key = _header(header, keys, served.type)
    if not key.signed(proof, _message(encoded_header, served, until)):
        raise BadConfigProof("signature-invalid", "the configuration is not what the cluster signed for this request")
    # After the signature: until then the expiry is whatever the sender wrote. The machine's clock is its host's, so freshness
    # rests on the nonce; the expiry bounds what an honest clock would still take.
    if now.timestamp() >= until:
        raise BadConfigProof("signature-expired", "the signature has expired: check the clock")


def _header(header: Any, keys: Mapping[str, Ed25519Verifier], kind: str) -> tuple[int, Ed25519Verifier]:
    if not isinstance(header, dict) or header.keys() != {"alg", "kid", "typ", "exp"}:
        raise BadConfigProof("signature-unreadable", "the signature of the configuration cannot be read")
    # `type`, because True is an int to isinstance; the kind of statement is compared so that a copy never passes for an answer.
    if header["alg"] != ALGORITHM or header["typ"] != kind or type(header["exp"]) is not int:
        raise BadConfigProof("signature-unreadable", "the signature is of another kind")
    key = keys.get(str(header["kid"]))
    if key is None:
        raise BadConfigProof("signature-key", "the signature is of a key that this image does not know")
    return header["exp"], key


def _message(header: str, served: Statement, until: int) -> bytes:
    # What the receiver itself knows is signed: an answer for another pool, machine or nonce does not verify.
    return f"{header}.{encoded(json.canonical(served.payload(until)))}".encode()


def _digest(body: bytes) -> str:
    """SHA-256 of a body. A pool's config goes out as the same bytes to all its machines: it is digested once."""
    return _remembered(body) if len(body) <= MOST_REMEMBERED else sha256(body).hex


@lru_cache(maxsize=8)
def _remembered(body: bytes) -> str:
    return sha256(body).hex
