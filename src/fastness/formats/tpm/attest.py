"""TPMS_ATTEST of type quote: what a TPM signs about its registers.

TPM 2.0 Library, part 2, §10.12. Big-endian, no padding, nothing may follow. A selection is a bitmap per bank; it is turned into
register numbers here, so that nobody above maps values by position.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

import msgspec

from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.tpm.algorithms import HASHES, Hash

MAGIC: Final = 0xFF544347
TYPE_QUOTE: Final = 0x8018
MAX_BANKS: Final = 16
MAX_BITMAP: Final = 32
MAX_MESSAGE: Final = 2048
_HEAD: Final = Struct(">IH")
_SELECTION: Final = Struct(">HB")
_CLOCK: Final = Struct(">QIIBQ")
_MAX_NAME: Final = 2 + 64
_MAX_DATA: Final = 2 + 64


class Clock(msgspec.Struct, frozen=True):
    """The TPM's own clock: milliseconds, and how often it was reset and resumed."""

    milliseconds: int
    resets: int
    restarts: int
    safe: bool


class Selection(msgspec.Struct, frozen=True):
    """Registers of one bank, in ascending order."""

    bank: Hash
    registers: tuple[int, ...]


class Quote(msgspec.Struct, frozen=True):
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
    cursor = Cursor(message, "the TPM quote", "big")
    magic, kind = cursor.fields(_HEAD, "magic and type")
    if magic != MAGIC:
        raise EvidenceError("not-a-quote", "the structure was not made by a TPM: its magic number differs")
    if kind != TYPE_QUOTE:
        raise EvidenceError("not-a-quote", f"the TPM attests something else than a quote (type {kind:#06x})")
    signer = cursor.sized("qualifiedSigner", _MAX_NAME)
    extra = cursor.sized("extraData", _MAX_DATA)
    milliseconds, resets, restarts, safe, firmware = cursor.fields(_CLOCK, "clockInfo and firmwareVersion")
    if safe > 1:
        raise EvidenceError("bad-flag", f"the flag `safe` is 0 or 1, not {safe}")
    clock = Clock(milliseconds, resets, restarts, safe == 1)
    selections = _selections(cursor)
    digest = cursor.sized("pcrDigest", 64)
    cursor.finish()
    return Quote(message, signer, extra, clock, firmware, selections, digest)


def _selections(cursor: Cursor) -> tuple[Selection, ...]:
    count = cursor.u32("pcrSelect.count")
    if count > MAX_BANKS:
        raise EvidenceError("too-many-banks", f"the quote selects from {count} banks; at most {MAX_BANKS} are possible")
    selections = tuple([_selection(cursor) for _ in range(count)])
    if count > 1 and len({selection.bank for selection in selections}) != count:
        raise EvidenceError("repeated-bank", "the quote selects from the same bank twice")
    return selections


def _selection(cursor: Cursor) -> Selection:
    number, size = cursor.fields(_SELECTION, "pcrSelect")
    bank = HASHES.get(number)
    if bank is None:
        raise EvidenceError("unknown-hash", f"the quote selects from a bank of unknown algorithm {number:#06x}")
    if size > MAX_BITMAP:
        raise EvidenceError("too-long", f"a bitmap of registers has at most {MAX_BITMAP} bytes, not {size}")
    return Selection(bank, _registers(cursor.take(size, "pcrSelect")))


@lru_cache(maxsize=256)
def _registers(bitmap: bytes) -> tuple[int, ...]:
    """The numbers behind a bitmap; a fleet uses a handful of them."""
    bits = int.from_bytes(bitmap, "little")
    return tuple(index for index in range(len(bitmap) * 8) if bits >> index & 1)
