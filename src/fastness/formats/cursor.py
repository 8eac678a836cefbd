"""Reading fixed binary layouts: a cursor that cannot run past the end.

Evidence is written by machines that are not trusted yet. Every length in it is a claim, so a reader takes what it needs and
says where the bytes ran out; nothing is allocated from a length before the bytes are known to be there.

* `Cursor` reads integers in one byte order and slices of exact length.
* `finish` is the rule for what follows: nothing at all, or (padding of quotes) zero bytes only.
* `EvidenceError` is the one error of the parsers of evidence: `formats.evidence.tpm`, `formats.evidence.eventlog`,
  `formats.evidence.snp`, `formats.evidence.tdx`.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, Literal

from fastness.formats.errors import FormatError

_U16: Final = {"big": Struct(">H").unpack_from, "little": Struct("<H").unpack_from}
_U32: Final = {"big": Struct(">I").unpack_from, "little": Struct("<I").unpack_from}


class EvidenceError(FormatError):
    """The bytes are not evidence of the kind that was asked for."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Collect the evidence again and pass it on unchanged.")


class Cursor:
    """A place in some bytes; raises EvidenceError where they end too early."""

    __slots__ = ("_u16", "_u32", "data", "offset", "order", "size", "what")

    def __init__(self, data: bytes, what: str, order: Literal["big", "little"]) -> None:
        self.data = data
        self.what = what
        self.order = order
        self.offset = 0
        self.size = len(data)
        self._u16, self._u32 = _U16[order], _U32[order]

    @property
    def left(self) -> int:
        """How many bytes are unread."""
        return self.size - self.offset

    def take(self, count: int, field: str) -> bytes:
        """The next `count` bytes."""
        start = self._advance(count, field)
        return self.data[start : self.offset]

    def fields(self, layout: Struct, field: str) -> tuple[Any, ...]:
        """Several fields of fixed size at once; the layout names its own byte order."""
        start = self.offset
        end = start + layout.size
        if end > self.size:
            self._advance(layout.size, field)
        self.offset = end
        return layout.unpack_from(self.data, start)

    def u8(self, field: str) -> int:
        """The next byte."""
        return self.data[self._advance(1, field)]

    def u16(self, field: str) -> int:
        """The next two bytes as a number."""
        value: int = self._u16(self.data, self._advance(2, field))[0]
        return value

    def u32(self, field: str) -> int:
        """The next four bytes as a number."""
        value: int = self._u32(self.data, self._advance(4, field))[0]
        return value

    def u64(self, field: str) -> int:
        """The next eight bytes as a number."""
        return int.from_bytes(self.take(8, field), self.order)

    def sized(self, field: str, most: int) -> bytes:
        """Bytes behind a 16-bit length of at most `most`."""
        # Written out, because quotes consist of these: it is called more often than all others together.
        start = self.offset + 2
        if start > self.size:
            self._advance(2, field)
        size: int = self._u16(self.data, start - 2)[0]
        if size > most:
            raise EvidenceError("too-long", f"{field} of {self.what} claims {size} bytes; at most {most} are possible")
        end = start + size
        if end > self.size:
            self.offset = start
            self._advance(size, field)
        self.offset = end
        return self.data[start:end]

    def _advance(self, count: int, field: str) -> int:
        """Step over `count` bytes that are there; where they begin."""
        start = self.offset
        end = start + count
        if end > self.size:
            raise EvidenceError("cut-off", f"{self.what} ends inside {field}: {count} bytes needed, {self.left} left")
        self.offset = end
        return start

    def finish(self, *, zeros: bool = False) -> None:
        """Demand that nothing follows; with `zeros`, that only zero bytes do."""
        if self.offset == self.size:
            return
        rest = self.data[self.offset :]
        if rest and not (zeros and not any(rest)):
            raise EvidenceError(
                "trailing-bytes", f"{len(rest)} bytes follow the end of {self.what} that do not belong to it"
            )
