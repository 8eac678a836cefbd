"""TPMT_SIGNATURE: the scheme, the hash and the numbers of a signature.

RSA schemes carry one number, ECDSA carries two (TPM 2.0 Library, part 2, §11.3). Which of them are acceptable for which key is
decided where the signature is checked.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.tpm.algorithms import HASHES, Hash, Scheme

_SCHEMES: Final = {int(scheme): scheme for scheme in Scheme}
_HEAD: Final = Struct(">HH")
_MAX_RSA: Final = 512
_MAX_EC: Final = 66


class Signature(msgspec.Struct, frozen=True):
    """A parsed signature: one number for RSA, two for ECDSA, big-endian as the TPM wrote them."""

    scheme: Scheme
    hash: Hash
    numbers: tuple[bytes, ...]


def parse_signature(data: bytes) -> Signature:
    """Read TPMT_SIGNATURE; raises EvidenceError."""
    cursor = Cursor(data, "the TPM signature", "big")
    number, hash_number = cursor.fields(_HEAD, "sigAlg and hash")
    scheme = _SCHEMES.get(number)
    if scheme is None:
        raise EvidenceError("unknown-scheme", f"the signature has the unknown scheme {number:#06x}")
    algorithm = HASHES.get(hash_number)
    if algorithm is None:
        raise EvidenceError("unknown-hash", "the signature names an unknown hash algorithm")
    numbers: tuple[bytes, ...]
    if scheme is Scheme.ECDSA:
        numbers = (cursor.sized("signatureR", _MAX_EC), cursor.sized("signatureS", _MAX_EC))
    else:
        numbers = (cursor.sized("sig", _MAX_RSA),)
    cursor.finish()
    return Signature(scheme, algorithm, numbers)
