"""TPMT_SIGNATURE: the scheme, the hash and the numbers of a signature.

RSA schemes carry one number, ECDSA carries two (TPM 2.0 Library, part 2, §11.3). Which of them are acceptable for which key is
decided where the signature is checked.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception is named like one
from typing import Final

import msgspec

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.algorithms import HASHES, Hash, Scheme

_ECDSA: Final = Scheme.ECDSA  # looked up in its class each time, slowly
_SCHEMES: Final = {int(scheme): scheme for scheme in Scheme}
_HEAD: Final = Struct(">HHH")
_SIZE: Final = Struct(">H")
_MAX_RSA: Final = 512
_MAX_EC: Final = 66


class Signature(msgspec.Struct, frozen=True, gc=False):
    """A parsed signature: one number for RSA, two for ECDSA, big-endian as the TPM wrote them."""

    scheme: Scheme
    hash: Hash
    numbers: tuple[bytes, ...]


def parse_signature(data: bytes) -> Signature:
    """Read TPMT_SIGNATURE; raises EvidenceError."""
    try:
        number, hash_number, size = _HEAD.unpack_from(data)
        scheme, algorithm = _SCHEMES.get(number), HASHES.get(hash_number)
        if scheme is None:
            raise EvidenceError("unknown-scheme", f"the signature has the unknown scheme {number:#06x}")
        if algorithm is None:
            raise EvidenceError("unknown-hash", "the signature names an unknown hash algorithm")
        end = _HEAD.size + size
        numbers: tuple[bytes, ...] = (data[_HEAD.size : end],)
        most = _MAX_RSA
        if scheme is _ECDSA:
            (second,) = _SIZE.unpack_from(data, end)
            end, most, size = end + 2 + second, _MAX_EC, max(size, second)
            numbers = (numbers[0], data[end - second : end])
    except StructError as error:
        raise EvidenceError("cut-off", "the TPM signature ends in the middle of a field") from error
    if size > most:
        raise EvidenceError(
            "too-long", f"a number of the TPM signature claims {size} bytes; at most {most} are possible"
        )
    # Nothing signs what follows a signature: it would make two texts of one quote.
    if end != len(data):
        wrong = ("cut-off", "ends too early") if end > len(data) else ("trailing-bytes", "has bytes behind its end")
        raise EvidenceError(wrong[0], f"the TPM signature {wrong[1]}")
    return Signature(scheme, algorithm, numbers)
