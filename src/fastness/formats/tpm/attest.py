"""TPMS_ATTEST of type quote: what a TPM signs about its registers.

TPM 2.0 Library, part 2, §10.12. Big-endian, no padding, nothing may follow. A selection is a bitmap per bank; it is turned into
register numbers here, so that nobody above maps values by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.tpm.algorithms import HASHES, Hash

MAGIC: Final = 0xFF544347
TYPE_QUOTE: Final = 0x8018
MAX_BANKS: Final = 16
MAX_BITMAP: Final = 32
MAX_MESSAGE: Final = 2048
_MAX_NAME: Final = 2 + 64
_MAX_DATA: Final = 2 + 64


@dataclass(frozen=True, slots=True)
class Clock:
    """The TPM's own clock: milliseconds, and how often it was reset and resumed."""

    milliseconds: int
    resets: int
    restarts: int
    safe: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Registers of one bank, in ascending order."""

    bank: Hash
    registers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quote:
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
    if cursor.u32("magic") != MAGIC:
        raise EvidenceError("not-a-quote", "the structure was not made by a TPM: its magic number differs")
    kind = cursor.u16("type")
    if kind != TYPE_QUOTE:
        raise EvidenceError("not-a-quote", f"the TPM attests something else than a quote (type {kind:#06x})")
    signer = cursor.sized("qualifiedSigner", _MAX_NAME)
    extra = cursor.sized("extraData", _MAX_DATA)
    clock = _clock(cursor)
    firmware = cursor.u64("firmwareVersion")
    selections = _selections(cursor)
    digest = cursor.sized("pcrDigest", 64)
    cursor.finish()
    return Quote(message, signer, extra, clock, firmware, selections, digest)


def _clock(cursor: Cursor) -> Clock:
    milliseconds, resets, restarts = cursor.u64("clock"), cursor.u32("resetCount"), cursor.u32("restartCount")
    safe = cursor.u8("safe")
    if safe > 1:
        raise EvidenceError("bad-flag", f"the flag `safe` is 0 or 1, not {safe}")
    return Clock(milliseconds, resets, restarts, safe == 1)


def _selections(cursor: Cursor) -> tuple[Selection, ...]:
    count = cursor.u32("pcrSelect.count")
    if count > MAX_BANKS:
        raise EvidenceError("too-many-banks", f"the quote selects from {count} banks; at most {MAX_BANKS} are possible")
    selections = tuple(_selection(cursor) for _ in range(count))
    if len({selection.bank for selection in selections}) != count:
        raise EvidenceError("repeated-bank", "the quote selects from the same bank twice")
    return selections


def _selection(cursor: Cursor) -> Selection:
    number = cursor.u16("pcrSelect.hash")
    bank = HASHES.get(number)
    if bank is None:
        raise EvidenceError("unknown-hash", f"the quote selects from a bank of unknown algorithm {number:#06x}")
    size = cursor.u8("sizeofSelect")
    if size > MAX_BITMAP:
        raise EvidenceError("too-long", f"a bitmap of registers has at most {MAX_BITMAP} bytes, not {size}")
    bits = int.from_bytes(cursor.take(size, "pcrSelect"), "little")
    return Selection(bank, tuple(index for index in range(size * 8) if bits >> index & 1))
