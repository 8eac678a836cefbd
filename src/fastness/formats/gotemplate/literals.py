"""Literals as Go writes them: quoted texts, characters and numbers.

A text of Go is bytes, so `\\xff` is one byte; bytes that are no UTF-8 are kept as lone surrogates (`surrogateescape`).
"""

from __future__ import annotations

import re
from typing import Final

_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_WIDTHS: Final = {"x": 2, "u": 4, "U": 8}
_ESCAPE: Final = re.compile(r"\\(?:([abfnrtv\\'\"])|([xuU])|([0-7]{3}))", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-fA-F]+\Z", re.ASCII)
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX](_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB](_?[01]+(?:_[01]+)*)|0[oO]?(_?[0-7]+(?:_[0-7]+)*)"
    r"|(0|[1-9][0-9]*(?:_[0-9]+)*))\Z",
    re.ASCII,
)
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII
)
_LEAST, _MOST = -(2**63), 2**63 - 1


def unquoted(text: str) -> str | None:
    """What a quoted text stands for; None when an escape in it is none of Go's."""
    if text.startswith("`"):
        return text[1:-1].replace("\r", "")
    content = _bytes(text[1:-1], text[0])
    return None if content is None else content.decode("utf-8", "surrogateescape")


def character(text: str) -> int | None:
    """The number of a character in quotes; None when there is not one."""
    if (escape := _ESCAPE.match(text, 1)) is not None and escape[2] is None and escape[1] is None:
        return int(escape[3], 8) if escape.end() == len(text) - 1 and int(escape[3], 8) < 256 else None
    if text.startswith("'\\x"):
        return int(text[3:5], 16) if len(text) == 6 and _HEX.match(text[3:5]) else None
    content = unquoted(text)
    return ord(content) if content is not None and len(content) == 1 else None


def _bytes(text: str, quote: str) -> bytes | None:
    parts, at = bytearray(), 0
    while at < len(text):
        if text[at] != "\\":
            parts += text[at].encode("utf-8", "surrogateescape")
            at += 1
            continue
        escape = _ESCAPE.match(text, at)
        # Each sort of quote may be escaped in its own sort of literal alone.
        if escape is None or escape[1] in ({"'", '"'} - {quote}):
            return None
        at = escape.end()
        if escape[1]:
            parts.append(_SIMPLE.get(escape[1]) or ord(escape[1]))
        elif escape[3]:
            if (value := int(escape[3], 8)) > 255:
                return None
            parts.append(value)
        else:
            width = _WIDTHS[escape[2]]
            digits = text[at : at + width]
            if len(digits) < width or not _HEX.match(digits):
                return None
            value, at = int(digits, 16), at + width
            if escape[2] == "x":
                parts.append(value)
            elif value > 0x10FFFF or 0xD800 <= value < 0xE000:
                return None
            else:
                parts += chr(value).encode()
    return bytes(parts)


def number(text: str) -> int | float | None:
    """The value of a number; None for what is none, is imaginary, or does not fit into 64 bits."""
    if (match := _INTEGER.match(text)) is not None:
        digits, base = next((part, base) for part, base in zip(match.groups()[1:], (16, 2, 8, 10), strict=True) if part)
        value = int(digits.replace("_", ""), base) * (-1 if match[1] == "-" else 1)
        return value if _LEAST <= value <= _MOST else None
    # Go takes a float in hexadecimal, too. Nobody writes a label with one.
    if _FLOAT.match(text) is None or not set(text) & set(".eE") or "_" in text:
        return None
    value_of = float(text)
    return None if value_of in (float("inf"), float("-inf")) else value_of
