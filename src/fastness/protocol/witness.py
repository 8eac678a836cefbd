"""What a log sends to a witness (C2SP tlog-witness, `add-checkpoint`), and what a witness answers with.

    old 20852014
    PlRN…=                     hashes that prove that the tree of that size is the beginning of the new one
                               (an empty line)
    example.com/record         the signed checkpoint
    …

Total functions with limits: both sides read what somebody else wrote.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastness.formats.tlog import HASH_SIZE, MAX_NOTE, TlogError, parse_size

# The bound of the protocol (C2SP tlog-witness): no tree that anybody could build needs a longer proof.
MAX_HASHES: Final = 63
MAX_REQUEST: Final = MAX_NOTE + (MAX_HASHES + 1) * 64
MAX_ANSWER: Final = 4096
SIZE_TYPE: Final = "text/x.tlog.size"


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """A checkpoint to cosign, and the proof that it continues the tree of the old size."""

    old: int
    proof: tuple[bytes, ...]
    note: str

    def encode(self) -> bytes:
        """The body of the request."""
        hashes = "".join(f"{base64.b64encode(digest).decode()}\n" for digest in self.proof)
        return f"old {self.old}\n{hashes}\n{self.note}".encode()


def parse_add_checkpoint(body: bytes) -> AddCheckpoint:
    """Read the body of a request; raises TlogError."""
    if len(body) > MAX_REQUEST:
        raise TlogError(f"a request has at most {MAX_REQUEST} bytes")
    try:
        head, separator, note = body.decode("utf-8").partition("\n\n")
    except UnicodeDecodeError as error:
        raise TlogError("the request is not UTF-8") from error
    first, *hashes = head.split("\n")
    if not separator or not first.startswith("old ") or len(hashes) > MAX_HASHES:
        raise TlogError(f"a request is a line `old SIZE`, up to {MAX_HASHES} hashes, an empty line and a checkpoint")
    return AddCheckpoint(parse_size(first.removeprefix("old "), "the old size"), tuple(_hashes(hashes)), note)


def parse_latest(body: bytes) -> int:
    """The size that a witness has seen last, as a conflict tells it; raises TlogError."""
    text = body.decode("ascii", "replace")
    # Cut off on the way, 1234 would be read as 12, and the log would send a proof from the wrong size.
    if not text.endswith("\n"):
        raise TlogError("the size of a witness does not end in a line break")
    return parse_size(text[:-1], "the size of a witness")


def _hashes(lines: Sequence[str]) -> list[bytes]:
    try:
        hashes = [base64.b64decode(line, validate=True) for line in lines]
    except (binascii.Error, ValueError) as error:
        raise TlogError("a line of the proof is not base64") from error
    if any(len(digest) != HASH_SIZE for digest in hashes):
        raise TlogError(f"a hash of the proof does not have {HASH_SIZE} bytes")
    return hashes
