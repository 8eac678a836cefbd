"""The TCG's numbers for algorithms, as far as evidence uses them.

One table for quotes and event logs: the number on the wire, the name that people and `hashlib` use, and the length.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Hash(NamedTuple):
    """A hash algorithm: its TCG number, name and digest length."""

    number: int
    name: str
    size: int


class Scheme(IntEnum):
    """Signature schemes of attestation keys."""

    RSASSA = 0x0014
    RSAPSS = 0x0016
    ECDSA = 0x0018


HASHES: Final = {
    entry.number: entry
    for entry in (
        Hash(0x0004, "sha1", 20),
        Hash(0x000B, "sha256", 32),
        Hash(0x000C, "sha384", 48),
        Hash(0x000D, "sha512", 64),
        Hash(0x0012, "sm3_256", 32),
        Hash(0x0027, "sha3_256", 32),
        Hash(0x0028, "sha3_384", 48),
        Hash(0x0029, "sha3_512", 64),
    )
}
