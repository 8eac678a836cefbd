"""The wrappings of evidence, recognised by content: raw bytes, hexadecimal, base64, JSON.

Tools hand the same structure around in several dresses. Undressing is a matter of form only and happens once, here; the
parsers of the structures see raw bytes.

* A text counts as hexadecimal or base64 only when all of it is.
* A JSON envelope may not repeat a member, and unknown members are refused: whoever wrote them expected them to matter.
* Nothing larger than `MAX_EVIDENCE` is looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Set
from typing import Any, Final

from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import JsonError

# As much as the doors take in a body, so that evidence is judged from files as it is over the wire.
MAX_EVIDENCE: Final = 2 * 1024 * 1024
_HEX_TEXT: Final = re.compile(rb"[0-9a-fA-F\s]+\Z")
_BASE64_TEXT: Final = re.compile(rb"[A-Za-z0-9+/\r\n]+={0,2}\s*\Z")


def bounded(data: bytes) -> bytes:
    """The same bytes, unless there are none or too many; raises EvidenceError."""
    if not data:
        raise EvidenceError("empty", "there is nothing in it")
    if len(data) > MAX_EVIDENCE:
        raise EvidenceError("too-long", f"evidence has at most {MAX_EVIDENCE} bytes, not {len(data)}")
    return data


def is_json(data: bytes) -> bool:
    """Whether the bytes begin as a JSON object does."""
    return data.lstrip(b" \t\r\n")[:1] == b"{"


def undressed(data: bytes) -> bytes:
    """Raw bytes out of raw bytes, hexadecimal or base64; raises EvidenceError."""
    bounded(data)
    if _HEX_TEXT.match(data):
        # Hexadecimal before base64: most hexadecimal texts are good base64 as well, and would become other bytes.
        digits = b"".join(data.split())
        if len(digits) % 2 == 0:
            return bytes.fromhex(digits.decode("ascii"))
    if _BASE64_TEXT.match(data):
        try:
            return base64.b64decode(b"".join(data.split()), validate=True)
        except binascii.Error:
            return data
    return data


def read_object(data: bytes) -> dict[str, Any]:
    """A JSON object without repeated members; raises EvidenceError."""
    try:
        value, repeated = json.decode_reporting_duplicates(bounded(data))
    except JsonError as error:
        raise EvidenceError("bad-json", f"the envelope is not JSON: {error}") from error
    # JSON leaves open which of two equal members counts (RFC 8259 §4): the verifier and a policy might read different ones.
    if repeated:
        raise EvidenceError("repeated-member", f"the envelope says {repeated[0]} twice", repeated[0])
    if not isinstance(value, dict):
        raise EvidenceError("bad-envelope", "the envelope is not a JSON object")
    return value


def base64_field(value: Mapping[str, Any], name: str) -> bytes:
    """The bytes of a member in standard base64; raises EvidenceError."""
    text = value.get(name)
    if not isinstance(text, str):
        raise EvidenceError("bad-envelope", f"{name} is missing or not text", name)
    try:
        # Strict: a decoder that skips what it does not know gives one evidence many texts.
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:  # also for text beyond ASCII
        raise EvidenceError("bad-base64", f"{name} is not standard base64", name) from error


def refuse_unknown(value: Mapping[str, Any], names: Set[str], where: str) -> None:
    """Demand that all members are known; raises EvidenceError."""
    if not value.keys() <= names:
        strange = sorted(set(value) - names)
        hint = "Evidence of an Azure vTPM has a TEE name of its own." if "hcl_report" in strange else ""
        raise EvidenceError("unknown-member", f"{where} has the unknown member {strange[0]!r}", strange[0], hint)
