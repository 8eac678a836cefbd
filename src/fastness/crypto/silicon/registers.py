"""Measurement registers: values that can only be extended.

A PCR or RTMR holds H(old ‖ digest). The banks are those that hashing exists for here; SM3 is known by name and cannot be
replayed where the platform's library lacks it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from typing import Final, Protocol


class Hashed(Protocol):
    """A hash over everything it was given."""

    def digest(self) -> bytes:
        """Its value."""


# The TCG and OpenSSL write this one hash differently.
_NAMES: Final = {"sm3_256": "sm3"}
_COMMON: Final[dict[str, Callable[[bytes], Hashed]]] = {
    # Only to follow logs that have the bank: what it ends in is never enough to believe a machine (`evidence.tpm`).
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
}


def replayable(bank: str) -> bool:
    """Whether values of the bank can be computed here."""
    return _NAMES.get(bank, bank) in hashlib.algorithms_available


def extend(bank: str, value: bytes, digest: bytes) -> bytes:
    """The value of a register after one more measurement."""
    return hashed(bank, value + digest)


def hashed(bank: str, data: bytes) -> bytes:
    """The digest of some data in a bank's algorithm."""
    return hash_of(bank)(data).digest()


@cache
def hash_of(bank: str) -> Callable[[bytes], Hashed]:
    """What makes the hash of some bytes, for those who hash much: hashlib looks algorithms up by name each time."""
    return _COMMON.get(bank) or partial(hashlib.new, _NAMES.get(bank, bank))
