"""TPMS_ATTEST of type quote: what a TPM signs about its registers.

TPM 2.0 Library, part 2, §10.12. Big-endian, no padding, nothing may follow. A selection is a bitmap per bank; it is turned into
register numbers here, so that nobody above maps values by position.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception is named like one
from typing import Final

import msgspec

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.algorithms import HASHES, Hash

# TPM_GENERATED_VALUE. A restricted key refuses to sign foreign data that begins so (TPM 2.0 Library, part 1, "Restricted"), so
# under such a key these four bytes say that the TPM itself wrote what follows.
MAGIC: Final = 0xFF544347
TYPE_QUOTE: Final = 0x8018
MAX_BANKS: Final = 16
MAX_BITMAP: Final = 32
# A quote over all banks has a few hundred bytes; the bound stands before anything is read.
MAX_MESSAGE: Final = 2048
_HEAD: Final = Struct(">IHH")
_SIZE: Final = Struct(">H")
_SELECTION: Final = Struct(">HB")
_CLOCK: Final = Struct(">QIIBQI")
# The number of an algorithm and the longest digest.
_MAX_NAME: Final = 2 + 64
_MAX_DATA: Final = 2 + 64


class Clock(msgspec.Struct, frozen=True, gc=False):
    """The TPM's own clock: milliseconds, and how often it was reset and resumed."""

    milliseconds: int
    resets: int
    restarts: int
    safe: bool


class Selection(msgspec.Struct, frozen=True, gc=False):
    """Registers of one bank, in ascending order."""

    bank: Hash
    registers: tuple[int, ...]


class Quote(msgspec.Struct, frozen=True, gc=False):
    """A parsed quote; `message` is what the signature covers."""

    message: bytes
    signer: bytes
    extra_data: bytes
    clock: Clock
    firmware: int
    selections: tuple[Selection, ...]
    digest: bytes


def parse_quote(message: bytes) -> Quote:
    """Read TPMS_ATTEST; raises EvidenceError."""
    if len(message) > MAX_MESSAGE:
        raise EvidenceError("too-long", f"a quote has at most {MAX_MESSAGE} bytes, not {len(message)}")
    try:
        return _quote(message)
    except StructError as error:
        raise EvidenceError("cut-off", "the TPM quote ends in the middle of a field") from error


def _quote(message: bytes) -> Quote:
    """Straight through, without a cursor: every handshake comes this way. A field that is not whole raises struct.error."""
    magic, kind, signer_size = _HEAD.unpack_from(message)
    if magic != MAGIC:
        raise EvidenceError("not-a-quote", "the structure was not made by a TPM: its magic number differs")
    # The same key certifies other things (keys, times, sessions), and those structures share their head with a quote.
    if kind != TYPE_QUOTE:
        raise EvidenceError("not-a-quote", f"the TPM attests something else than a quote (type {kind:#06x})")
    signer_end = _HEAD.size + signer_size
    (extra_size,) = _SIZE.unpack_from(message, signer_end)
    # A length that is too long would let the fields after it be read from wherever the sender likes.
    if signer_size > _MAX_NAME or extra_size > _MAX_DATA:
        raise EvidenceError("too-long", "qualifiedSigner or extraData of the TPM quote claims more than is possible")
    extra_end = signer_end + 2 + extra_size
    milliseconds, resets, restarts, safe, firmware, count = _CLOCK.unpack_from(message, extra_end)
    # TPMI_YES_NO has two values; a third would be read as yes by one reader and as neither by another.
    if safe > 1:
        raise EvidenceError("bad-flag", f"the flag `safe` is 0 or 1, not {safe}")
    selections, place = _selections(message, extra_end + _CLOCK.size, count)
    (digest_size,) = _SIZE.unpack_from(message, place)
    digest = message[place + 2 :]
    # Nothing may follow: bytes behind the digest would be signed and read by nobody.
    if len(digest) != digest_size:
        raise _ending(digest_size, len(digest))
    clock = Clock(milliseconds, resets, restarts, safe == 1)
    signer, extra = message[_HEAD.size : signer_end], message[signer_end + 2 : extra_end]
    return Quote(message, signer, extra, clock, firmware, selections, digest)


def _ending(claimed: int, actual: int) -> EvidenceError:
    if actual > claimed:
        return EvidenceError("trailing-bytes", f"{actual - claimed} bytes follow the end of the TPM quote")
    return EvidenceError("cut-off", f"the TPM quote ends inside pcrDigest: {claimed} bytes needed, {actual} left")


def _selections(message: bytes, place: int, count: int) -> tuple[tuple[Selection, ...], int]:
    if count > MAX_BANKS:
        raise EvidenceError("too-many-banks", f"the quote selects from {count} banks; at most {MAX_BANKS} are possible")
    selections = []
    for _ in range(count):
        number, size = _SELECTION.unpack_from(message, place)
        bank = HASHES.get(number)
        if bank is None:
            raise EvidenceError("unknown-hash", f"the quote selects from a bank of unknown algorithm {number:#06x}")
        if size > MAX_BITMAP:
            raise EvidenceError("too-long", f"a bitmap of registers has at most {MAX_BITMAP} bytes, not {size}")
        bitmap = message[place + _SELECTION.size : place + _SELECTION.size + size]
        # What is cut off inside the bitmap lacks the digest as well, and is found there.
        place += _SELECTION.size + size
        selections.append(Selection(bank, _registers(bitmap)))
    # Two selections of one bank hash its values twice, in an order that the register numbers alone do not tell.
    if count > 1 and len({selection.bank for selection in selections}) != count:
        raise EvidenceError("repeated-bank", "the quote selects from the same bank twice")
    return tuple(selections), place


@lru_cache(maxsize=256)
def _registers(bitmap: bytes) -> tuple[int, ...]:
    """The numbers behind a bitmap; a fleet uses a handful of them."""
    # Register 0 is the lowest bit of the first byte (TPMS_PCR_SELECTION).
    bits = int.from_bytes(bitmap, "little")
    return tuple(index for index in range(len(bitmap) * 8) if bits >> index & 1)
