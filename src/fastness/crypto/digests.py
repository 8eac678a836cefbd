"""Digests that say how they were made, and comparison that does not leak.

A `Digest` prints as `sha256:<hex>`, the form of image references, audit entries and thumbprints. Only the algorithms of
`Algorithm` exist; a digest of the wrong length for its algorithm cannot be built.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastness.crypto.errors import BadDigest

_HEX: Final = re.compile(r"(?:[0-9a-f]{2})+\Z", re.ASCII)


class Algorithm(StrEnum):
    """The hash algorithms in use."""

    SHA256 = "sha256"
    SHA384 = "sha384"
    SHA512 = "sha512"

    @property
    def size(self) -> int:
        """Length of a digest in bytes."""
        return {"sha256": 32, "sha384": 48, "sha512": 64}[self.value]


@dataclass(frozen=True, slots=True)
class Digest:
    """The value of a hash, together with its algorithm."""

    algorithm: Algorithm
    value: bytes

    def __post_init__(self) -> None:
        # A digest that was cut is compared with a cut one somewhere, and finding a second text for four bytes takes seconds.
        if len(self.value) != self.algorithm.size:
            raise BadDigest(f"a {self.algorithm} digest has {self.algorithm.size} bytes, not {len(self.value)}")

    @property
    def hex(self) -> str:
        """The value in lower-case hexadecimal."""
        return self.value.hex()

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value.hex()}"

    def matches(self, data: bytes) -> bool:
        """Whether `data` hashes to this digest; constant-time."""
        return hmac.compare_digest(digest(data, self.algorithm).value, self.value)


def digest(data: bytes, algorithm: Algorithm = Algorithm.SHA256) -> Digest:
    """The digest of `data`."""
    return Digest(algorithm, hashlib.new(algorithm.value, data).digest())


def sha256(data: bytes) -> Digest:
    """The SHA-256 of `data`."""
    return Digest(Algorithm.SHA256, hashlib.sha256(data).digest())


def fingerprint(data: bytes) -> bytes:
    """The bare SHA-256, as a key of caches that must not hold the secret itself."""
    return hashlib.sha256(data).digest()


def parse_digest(text: str) -> Digest:
    """Read `algorithm:hex`, lower case only; raises BadDigest."""
    name, separator, value = text.partition(":")
    # fromhex alone is too kind: it skips spaces and takes capitals.
    if not separator or name not in set(Algorithm) or _HEX.match(value) is None:
        raise BadDigest("not a digest of the form algorithm:hex")
    return Digest(Algorithm(name), bytes.fromhex(value))


def same(left: bytes | str, right: bytes | str) -> bool:
    """Whether two secrets are equal; the time does not depend on where they differ."""
    if isinstance(left, bytes) and isinstance(right, bytes):
        return hmac.compare_digest(left, right)
    return hmac.compare_digest(_raw(left), _raw(right))


def _raw(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
