"""Measurement registers: values that can only be extended.

A PCR or RTMR holds H(old ‖ digest). The banks are those that hashing exists for here; SM3 is known by name and cannot be
replayed where the platform's library lacks it.
"""

from __future__ import annotations

import hashlib
from typing import Final

_NAMES: Final = {"sm3_256": "sm3"}


def replayable(bank: str) -> bool:
    """Whether values of the bank can be computed here."""
    return _NAMES.get(bank, bank) in hashlib.algorithms_available


def extend(bank: str, value: bytes, digest: bytes) -> bytes:
    """The value of a register after one more measurement."""
    return hashed(bank, value + digest)


def hashed(bank: str, data: bytes) -> bytes:
    """The digest of some data in a bank's algorithm."""
    return hashlib.new(_NAMES.get(bank, bank), data).digest()
