"""The JSON that carries a TPM quote.

    {"ak_public": <base64 DER SPKI>, "tpm_quote": {"message": <base64>, "signature": <base64>, "pcrs": [24 × hex]},
     "event_log": <base64>}

* `pcrs` is a list of all 24 registers of the SHA-256 bank, or an object `{"bank": "sha256", "values": {"7": hex, …}}` for
others.
* `event_log` is optional: a log explains registers and proves nothing.
* Unknown members are refused: whoever wrote them expected them to matter.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, Mapping
from typing import Any, Final

import msgspec

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.envelope import base64_field, read_object, refuse_unknown
from fastness.formats.evidence.tpm.algorithms import HASHES
from fastness.formats.evidence.tpm.attest import Quote, parse_quote
from fastness.formats.evidence.tpm.signature import Signature, parse_signature

REGISTERS: Final = 24
_MEMBERS: Final = frozenset({"ak_public", "tpm_quote", "event_log"})
_QUOTE_MEMBERS: Final = frozenset({"message", "signature", "pcrs"})
_ALL: Final = tuple(range(REGISTERS))
_SPACES: Final = " " * (REGISTERS - 1)
# No leading zeros: "4" and "04" would be two members of the object and one register.
_INDEX: Final = re.compile(r"(?:0|[1-9][0-9]?)\Z", re.ASCII)
_SIZES: Final = {entry.name: entry.size for entry in HASHES.values()}


class Registers(Mapping[int, bytes]):
    """Values of registers by number, kept as a TPM hashes them: in ascending order, one after the other."""

    __slots__ = ("_size", "joined", "order")

    def __init__(self, order: tuple[int, ...], joined: bytes) -> None:
        self.order = order
        self.joined = joined
        self._size = len(joined) // len(order) if order else 0

    @classmethod
    def of(cls, values: Mapping[int, bytes]) -> Registers:
        """The same from any mapping."""
        order = tuple(sorted(values))
        return cls(order, b"".join([values[index] for index in order]))

    def __getitem__(self, index: int) -> bytes:
        try:
            start = self.order.index(index) * self._size
        except ValueError:
            raise KeyError(index) from None
        return self.joined[start : start + self._size]

    def items(self) -> ItemsView[int, bytes]:
        """All of them, cut once."""
        size, joined = self._size, self.joined
        return {
            index: joined[start : start + size]
            for index, start in zip(self.order, range(0, len(joined), size or 1), strict=True)
        }.items()

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


class TpmEvidence(msgspec.Struct, frozen=True, gc=False):
    """A quote with its signature, the register values beside it, the key it claims to be signed with, and the boot's log."""

    quote: Quote
    signature: Signature
    bank: str
    pcrs: Registers
    ak_public: bytes
    event_log: bytes = b""


def parse_envelope(data: bytes) -> TpmEvidence:
    """Read the JSON envelope; raises EvidenceError."""
    return read_envelope(read_object(data))


def read_envelope(value: Mapping[str, Any]) -> TpmEvidence:
    """The same from JSON that was decoded already; raises EvidenceError."""
    refuse_unknown(value, _MEMBERS, "the envelope")
    inner = value.get("tpm_quote")
    if not isinstance(inner, dict):
        raise EvidenceError("bad-envelope", "the envelope lacks the object tpm_quote", "tpm_quote")
    refuse_unknown(inner, _QUOTE_MEMBERS, "tpm_quote")
    bank, pcrs = _pcrs(inner.get("pcrs"))
    return TpmEvidence(
        parse_quote(base64_field(inner, "message")),
        parse_signature(base64_field(inner, "signature")),
        bank,
        pcrs,
        base64_field(value, "ak_public") if "ak_public" in value else b"",
        base64_field(value, "event_log") if "event_log" in value else b"",
    )


def _pcrs(value: object) -> tuple[str, Registers]:
    if isinstance(value, list):
        # A list names registers by position: a shorter one would give every later value to another register.
        if len(value) != REGISTERS:
            raise EvidenceError("bad-pcrs", f"a list of registers has {REGISTERS} entries, not {len(value)}", "pcrs")
        return "sha256", _whole_bank(value)
    if not isinstance(value, dict) or not isinstance(value.get("values"), dict):
        raise EvidenceError("bad-pcrs", "pcrs is neither a list nor an object with bank and values", "pcrs")
    refuse_unknown(value, {"bank", "values"}, "pcrs")
    bank = value.get("bank")
    if not isinstance(bank, str) or bank not in _SIZES:
        raise EvidenceError("bad-pcrs", "pcrs.bank names no known hash algorithm", "pcrs.bank")
    values = {
        _index(name): _value(entry, _SIZES[bank], f"pcrs.values.{name}") for name, entry in value["values"].items()
    }
    return bank, Registers.of(values)


def _whole_bank(entries: list[Any]) -> Registers:
    """All registers of the SHA-256 bank: read at once when all look well, and one by one to say which does not."""
    try:
        text = " ".join(entries)
        raw = bytes.fromhex(text)
    except (TypeError, ValueError):
        text, raw = "", b""
    # Spaces stand where we put them and nowhere else, or digits would be missing: so each entry has its 64.
    if len(raw) == 32 * REGISTERS and len(text) == 65 * REGISTERS - 1 and text[64::65] == _SPACES:
        return Registers(_ALL, raw)
    return Registers.of({index: _value(entry, 32, f"pcrs[{index}]") for index, entry in enumerate(entries)})


def _index(name: str) -> int:
    if _INDEX.match(name) is None or int(name) >= REGISTERS:
        raise EvidenceError("bad-pcrs", f"{name!r} is not the number of a register (0 to 23)", "pcrs.values")
    return int(name)


def _value(entry: object, size: int, path: str) -> bytes:
    try:
        # fromhex skips spaces, so the length of the text is compared as well.
        value = bytes.fromhex(entry) if isinstance(entry, str) and len(entry) == 2 * size else b""
    except ValueError:
        value = b""
    if len(value) != size:
        raise EvidenceError("bad-pcrs", f"a register value has {2 * size} hex digits", path)
    return value
