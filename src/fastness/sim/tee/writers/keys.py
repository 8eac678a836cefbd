"""The keys of simulated chips and authorities, each with the one signature that its format fixes.

This is the only module of the simulator that touches primitives. P-256 and P-384 keys are drawn from a seed by rejection, and
sign deterministically (RFC 6979), so that evidence repeats byte for byte.

What they are drawn from is a tree of repeatable entropy (`Seed`): the same path under the same seed gives the same bytes. Chips
are asked for by many tasks at once, so what a chip is must not depend on who came first. Each draws from a branch of its own,
named by what it is: `seed.branch("snp", "chip", 7)`.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Final, Protocol

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from fastness.crypto.entropy import RandomBytes
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.rsa import EXPONENT, RsaKey

_CURVES: Final[dict[int, ec.EllipticCurve]] = {32: ec.SECP256R1(), 48: ec.SECP384R1()}
_ORDERS: Final = {
    32: 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    48: 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
}
_SCHEMES: Final = {
    32: ec.ECDSA(hashes.SHA256(), deterministic_signing=True),
    48: ec.ECDSA(hashes.SHA384(), deterministic_signing=True),
}
_ECDSA_SHA256: Final = asn1.sequence(asn1.oid("1.2.840.10045.4.3.2"))
_SHA384: Final = asn1.sequence(asn1.oid("2.16.840.1.101.3.4.2.2"), asn1.null())
_PSS_SHA384: Final = asn1.sequence(
    asn1.oid("1.2.840.113549.1.1.10"),
    asn1.sequence(
        asn1.tagged(0, _SHA384),
        asn1.tagged(1, asn1.sequence(asn1.oid("1.2.840.113549.1.1.8"), _SHA384)),
        asn1.tagged(2, asn1.integer(48)),
    ),
)


class Signer(Protocol):
    """A key that issues certificates: an algorithm, and signatures over bytes."""

    @property
    def algorithm(self) -> bytes:
        """AlgorithmIdentifier of its signatures."""

    def public_der(self) -> bytes:
        """SubjectPublicKeyInfo."""

    def sign(self, message: bytes) -> bytes:
        """The signature as X.509 carries it."""


class EcKey:
    """A P-256 (32 bytes) or P-384 (48 bytes) key, signing with SHA-256 or SHA-384."""

    __slots__ = ("_der", "handle", "size")

    def __init__(self, entropy: RandomBytes, size: int = 32) -> None:
        self.size = size
        scalar = 0
        while not 0 < scalar < _ORDERS[size]:
            scalar = int.from_bytes(entropy.token(size), "big")
        self.handle = ec.derive_private_key(scalar, _CURVES[size])
        self._der = self.handle.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def algorithm(self) -> bytes:
        """AlgorithmIdentifier of ECDSA with SHA-256, which is what authorities sign with."""
        return _ECDSA_SHA256

    @property
    def point(self) -> tuple[bytes, bytes]:
        """The public coordinates."""
        return self._der[-2 * self.size : -self.size], self._der[-self.size :]

    def public_der(self) -> bytes:
        """SubjectPublicKeyInfo."""
        return self._der

    def sign(self, message: bytes) -> bytes:
        """The signature in DER."""
        return self.handle.sign(message, _SCHEMES[self.size])

    def numbers(self, message: bytes) -> tuple[int, int]:
        """The signature as r and s."""
        return decode_dss_signature(self.sign(message))

    def raw(self, message: bytes) -> bytes:
        """The signature as r‖s, big-endian."""
        r, s = self.numbers(message)
        return r.to_bytes(self.size, "big") + s.to_bytes(self.size, "big")


class RsaAuthority:
    """An RSA-4096 key that issues as AMD's authorities do: PSS with SHA-384."""

    __slots__ = ("key",)

    def __init__(self, key: RsaKey) -> None:
        self.key = key

    @property
    def algorithm(self) -> bytes:
        """AlgorithmIdentifier of PSS with SHA-384 and a salt of 48 bytes."""
        return _PSS_SHA384

    def public_der(self) -> bytes:
        """SubjectPublicKeyInfo."""
        return rsa_public_der(self.key)

    def sign(self, message: bytes) -> bytes:
        """The signature as X.509 carries it."""
        return self.key.sign_pss(message)


def rsa_public_der(key: RsaKey) -> bytes:
    """SubjectPublicKeyInfo of an RSA key."""
    numbers = asn1.sequence(asn1.integer(key.modulus), asn1.integer(EXPONENT))
    return asn1.sequence(asn1.sequence(asn1.oid("1.2.840.113549.1.1.1"), asn1.null()), asn1.bits(numbers))


def rsa_handle(key: RsaKey) -> rsa.RSAPrivateKey:
    """An RSA key as the library holds one: two factors, each the product of half of the primes."""
    halves = key.primes[0::2], key.primes[1::2]
    p, q = (math.prod(half) for half in halves)
    exponent_p, exponent_q = (pow(EXPONENT, -1, math.lcm(*(prime - 1 for prime in half))) for half in halves)
    whole = pow(EXPONENT, -1, math.lcm(*(prime - 1 for prime in key.primes)))
    public = rsa.RSAPublicNumbers(EXPONENT, key.modulus)
    numbers = rsa.RSAPrivateNumbers(p, q, whole, exponent_p, exponent_q, pow(q, -1, p), public)
    # The check would ask whether the factors are prime. Arithmetic with remainders only needs them to be coprime.
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


class Seed:
    """A branch of the tree; as a source of bytes it is what keys are drawn from."""

    __slots__ = ("_drawn", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._drawn = 0

    def branch(self, *path: str | int) -> Seed:
        """The branch of that name; a fresh one, however often it is asked for."""
        name = "\0".join(map(str, path)).encode()
        return Seed(hashlib.sha256(b"branch\0" + self._key + name).digest())

    def token(self, length: int) -> bytes:
        """The next bytes of this branch."""
        self._drawn += 1
        return hashlib.shake_256(b"token\0" + self._key + self._drawn.to_bytes(8, "big")).digest(length)

    def rsa(self, bits: int) -> RsaKey:
        """The RSA key that a fresh branch of this name gives."""
        return _rsa_key(self._key, bits)


# Every vendor of one seed has the same authorities, and finding the primes of one takes ten milliseconds.
@lru_cache(maxsize=64)
def _rsa_key(key: bytes, bits: int) -> RsaKey:
    return RsaKey.draw(bits, Seed(key))
