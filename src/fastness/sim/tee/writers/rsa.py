"""RSA keys that follow from a seed, quickly: multi-prime RSA (RFC 8017 §3) with signatures that repeat.

AMD's authorities have RSA-4096, and the verifier takes nothing shorter. Two large primes take seconds to find and a random salt
would make every certificate different; thirty-two small ones are found in milliseconds, make signing five times as fast, and a
verifier cannot tell the difference. A modulus of small factors is weak. It hides nothing here: whoever runs a simulation has
the seed, and no real cluster takes the root.

* PSS salts are hashed out of key and message, so that the same certificate has the same bytes in every run.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fastness.crypto.entropy import RandomBytes

EXPONENT: Final = 65537
FACTOR_BITS: Final = 128
_SMALL: Final = math.prod(p for p in range(3, 1000, 2) if all(p % q for q in range(3, math.isqrt(p) + 1, 2)))
# A random number of 128 bits that is composite and passes for two of them is rarer than a machine that miscalculates.
_WITNESSES: Final = (2, 3, 5)
_SHA256_PREFIX: Final = bytes.fromhex("3031300d060960864801650304020105000420")
Factor = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class RsaKey:
    """A private key as its prime factors."""

    primes: tuple[int, ...]

    @classmethod
    def draw(cls, bits: int, entropy: RandomBytes) -> RsaKey:
        """A key of exactly that many bits."""
        primes: set[int] = set()
        while len(primes) < bits // FACTOR_BITS:
            primes.add(_prime(entropy))
        return cls(tuple(sorted(primes)))

    @cached_property
    def modulus(self) -> int:
        """The public number."""
        return math.prod(self.primes)

    @property
    def size(self) -> int:
        """Length of the modulus in bytes."""
        return (self.modulus.bit_length() + 7) // 8

    @cached_property
    def _factors(self) -> tuple[Factor, ...]:
        """Per prime: the prime, the private exponent, and the number that is 1 there and 0 at all others."""
        whole = self.modulus
        return tuple(
            (prime, pow(EXPONENT, -1, prime - 1), whole // prime * pow(whole // prime, -1, prime))
            for prime in self.primes
        )

    def private(self, number: int) -> int:
        """The private operation, factor by factor (Chinese remainders)."""
        return sum(pow(number % p, d, p) * unit for p, d, unit in self._factors) % self.modulus

    def sign_pss(self, message: bytes, algorithm: str = "sha384") -> bytes:
        """RSASSA-PSS with a salt as long as the hash."""
        digest = hashlib.new(algorithm, message).digest()
        secret = self.primes[0].to_bytes(FACTOR_BITS // 8, "big")
        salt = hashlib.new(algorithm, b"salt\0" + secret + digest).digest()
        inner = hashlib.new(algorithm, bytes(8) + digest + salt).digest()
        block = self.size - len(inner) - 1
        data = (b"\x01" + salt).rjust(block, b"\0")
        masked = bytearray(_xor(data, mgf1(inner, block, algorithm)))
        masked[0] &= 0x7F
        return self._raw(bytes(masked) + inner + b"\xbc")

    def sign_pkcs1(self, message: bytes) -> bytes:
        """RSASSA-PKCS1-v1_5 with SHA-256."""
        tail = b"\0" + _SHA256_PREFIX + hashlib.sha256(message).digest()
        return self._raw(b"\0\x01" + b"\xff" * (self.size - 2 - len(tail)) + tail)

    def _raw(self, block: bytes) -> bytes:
        return self.private(int.from_bytes(block, "big")).to_bytes(self.size, "big")


def mgf1(seed: bytes, length: int, algorithm: str) -> bytes:
    """The mask of PSS."""
    out = b""
    while len(out) < length:
        counter = len(out) // hashlib.new(algorithm).digest_size
        out += hashlib.new(algorithm, seed + counter.to_bytes(4, "big")).digest()
    return out[:length]


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def _prime(entropy: RandomBytes) -> int:
    # Seven leading ones: the product of all factors then has every bit that it should have.
    top, odd = 0x7F << (FACTOR_BITS - 7), 1
    while True:
        candidate = int.from_bytes(entropy.token(FACTOR_BITS // 8), "big") | top | odd
        if (
            math.gcd(candidate, _SMALL) == 1  # no small factor: most candidates end here, in one step
            and (candidate - 1) % EXPONENT
            and all(_passes(candidate, witness) for witness in _WITNESSES)
        ):
            return candidate


def _passes(candidate: int, witness: int) -> bool:
    """One round of Miller and Rabin."""
    twos = ((candidate - 1) & (1 - candidate)).bit_length() - 1
    value = pow(witness, (candidate - 1) >> twos, candidate)
    if value in (1, candidate - 1):
        return True
    for _ in range(twos - 1):
        value = value * value % candidate
        if value == candidate - 1:
            return True
    return False
