"""Measurement registers: values that can only be extended.

A PCR or RTMR holds H(old ‖ digest). The banks are those that hashing exists for here; SM3 is known by name and cannot be
replayed where the platform's library lacks it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from typing import Final

_NAMES: Final = {"sm3_256": "sm3"}
_COMMON: Final = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


def replayable(bank: str) -> bool:
    """Whether values of the bank can be computed here."""
    return _NAMES.get(bank, bank) in hashlib.algorithms_available


def extend(bank: str, value: bytes, digest: bytes) -> bytes:
    """The value of a register after one more measurement."""
    return hashed(bank, value + digest)


def hashed(bank: str, data: bytes) -> bytes:
    """The digest of some data in a bank's algorithm."""
    return hasher(bank)(data)


@cache
def hasher(bank: str) -> Callable[[bytes], bytes]:
    """The hash function of a bank, for those who hash much."""
    make = _COMMON.get(bank)
    if make is None:
        make = partial(hashlib.new, _NAMES.get(bank, bank))
    return lambda data: make(data).digest()
