"""Reading fixed binary layouts: a cursor that cannot run past the end.

Evidence is written by machines that are not trusted yet. Every length in it is a claim, so a reader takes what it needs and
says where the bytes ran out; nothing is allocated from a length before the bytes are known to be there.

* `Cursor` reads integers in one byte order and slices of exact length.
* `finish` is the rule for what follows: nothing at all, or (padding of quotes) zero bytes only.
* `EvidenceError` is the one error of the parsers of evidence: `formats.tpm`, `formats.eventlog`, `formats.snp`, `formats.tdx`.
"""

from __future__ import annotations

from typing import Literal

from fastness.formats.errors import FormatError


class EvidenceError(FormatError):
    """The bytes are not evidence of the kind that was asked for."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Collect the evidence again and pass it on unchanged.")


class Cursor:
    """A place in some bytes; raises EvidenceError where they end too early."""

    __slots__ = ("data", "offset", "order", "what")

    def __init__(self, data: bytes, what: str, order: Literal["big", "little"]) -> None:
        self.data = data
        self.what = what
        self.order = order
        self.offset = 0

    @property
    def left(self) -> int:
        """How many bytes are unread."""
        return len(self.data) - self.offset

    def take(self, count: int, field: str) -> bytes:
        """The next `count` bytes."""
        end = self.offset + count
        if end > len(self.data):
            raise EvidenceError("cut-off", f"{self.what} ends inside {field}: {count} bytes needed, {self.left} left")
        piece = self.data[self.offset : end]
        self.offset = end
        return piece

    def u8(self, field: str) -> int:
        """The next byte."""
        return self.take(1, field)[0]

    def u16(self, field: str) -> int:
        """The next two bytes as a number."""
        return int.from_bytes(self.take(2, field), self.order)

    def u32(self, field: str) -> int:
        """The next four bytes as a number."""
        return int.from_bytes(self.take(4, field), self.order)

    def u64(self, field: str) -> int:
        """The next eight bytes as a number."""
        return int.from_bytes(self.take(8, field), self.order)

    def sized(self, field: str, most: int) -> bytes:
        """Bytes behind a 16-bit length of at most `most`."""
        size = self.u16(field)
        if size > most:
            raise EvidenceError("too-long", f"{field} of {self.what} claims {size} bytes; at most {most} are possible")
        return self.take(size, field)

    def finish(self, *, zeros: bool = False) -> None:
        """Demand that nothing follows; with `zeros`, that only zero bytes do."""
        rest = self.data[self.offset :]
        if rest and not (zeros and not any(rest)):
            raise EvidenceError(
                "trailing-bytes", f"{len(rest)} bytes follow the end of {self.what} that do not belong to it"
            )
