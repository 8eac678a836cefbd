"""How Go prints: `%v` of any value, and `printf`.

What does not fit a verb is no error in Go but a text that says so (`%!d(string=x)`), and such a text is what comes out here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from fastness.workloads.features.templates.values import MAX_DEPTH, Meter, Version, failed, raw, type_of

NO_VALUE: Final = "<no value>"
_VERB: Final = re.compile(r"%([-+# 0]*)(\*|[0-9]+)?(?:(\.)(\*|[0-9]+)?)?(.)?", re.DOTALL)
_MAX_WIDTH: Final = 1000
_SIMPLE: Final = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 34: '\\"', 92: "\\\\"}


def shown(value: Any, meter: Meter, depth: int = 0) -> str:
    """A value as `%v`; raises BadTemplate when it is too large, or contains itself."""
    meter.step()
    if depth > MAX_DEPTH:
        raise failed("too-deep", f"values lie inside each other more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Version):
        return value.text
    if isinstance(value, list):
        text = f"[{' '.join(shown(element, meter, depth + 1) for element in value)}]"
    elif isinstance(value, dict):
        text = f"map[{' '.join(f'{key}:{shown(value[key], meter, depth + 1)}' for key in sorted(value, key=raw))}]"
    else:
        return str(int(value))
    meter.room(len(text))
    return text


def float_text(value: float, least: int = -4, most: int = 6) -> str:
    """The shortest text that reads back as the number; with an exponent where it is below the least or not below the most."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits, exponent = _shortest(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if exponent < least or exponent >= most:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _shortest(value: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    lead = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return digits.rstrip("0") or "0", (lead + int(exponent or 0)) if digits else 0


def joined(values: Sequence[Any], meter: Meter) -> str:
    """Values as `print` joins them: a space where neither side is a text."""
    parts: list[str] = []
    for place, value in enumerate(values):
        if place and not isinstance(value, str) and not isinstance(values[place - 1], str):
            parts.append(" ")
        parts.append(shown(value, meter))
    text = "".join(parts)
    meter.room(len(text))
    return text


def quoted(text: str) -> str:
    """A text in double quotes, with Go's escapes."""
    parts = []
    for letter in text:
        code = ord(letter)
        if code in _SIMPLE:
            parts.append(_SIMPLE[code])
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif letter.isprintable():
            parts.append(letter)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'


def formatted(form: str, values: Sequence[Any], meter: Meter) -> str:
    """`printf`; raises BadTemplate for results that are too large."""
    parts: list[str] = []
    at, used, size = 0, 0, 0
    for match in _VERB.finditer(form):
        parts.append(form[at : match.start()])
        at = match.end()
        text, used = _one(match, values, used, meter)
        parts.append(text)
        size += len(text)
        meter.room(size + len(form))
    parts.append(form[at:])
    if used < len(values):
        extra = ", ".join(
            "<nil>" if value is None else f"{type_of(value)}={shown(value, meter)}" for value in values[used:]
        )
        parts.append(f"%!(EXTRA {extra})")
    text = "".join(parts)
    meter.room(len(text))
    return text


def _one(match: re.Match[str], values: Sequence[Any], used: int, meter: Meter) -> tuple[str, int]:
    """One verb with its value, and how many values are used up."""
    flags, width, dot, precision, verb = match.groups()
    if "*" in (width, precision):
        raise failed("bad-format", "widths from values (%*d) are not known here")
    if verb is None:
        return "%!(NOVERB)", used
    if verb == "%":
        return "%", used
    if used >= len(values):
        return f"%!{verb}(MISSING)" if verb else "%!(NOVERB)", used
    spec = _Spec(flags, int(width or 0), int(precision or 0) if dot else None)
    if spec.width > _MAX_WIDTH or (spec.precision or 0) > _MAX_WIDTH:
        raise failed("result-too-large", f"a width is more than {_MAX_WIDTH}")
    return spec.text(verb, values[used], meter), used + 1


class _Spec:
    """Flags, width and precision of one verb."""

    def __init__(self, flags: str, width: int, precision: int | None) -> None:
        self.flags = flags
        self.width = width
        self.precision = precision

    def text(self, verb: str, value: Any, meter: Meter) -> str:
        """A value in the form of one verb."""
        if verb == "T":
            return self._padded(type_of(value))
        if verb == "p":
            return self._bad(verb, value, meter)
        if (isinstance(value, list) and verb not in "v") or (isinstance(value, dict) and verb not in "v"):
            return self._of_parts(verb, value, meter)
        if verb == "v" or value is None:
            return self._padded(shown(value, meter)) if verb == "v" else f"%!{verb}(<nil>)"
        if isinstance(value, Version):
            value = value.text
        if isinstance(value, bool):
            return self._padded(shown(value, meter)) if verb == "t" else self._bad(verb, value, meter)
        if isinstance(value, int):
            text = self._integer(verb, int(value))
        else:
            text = self._float(verb, value) if isinstance(value, float) else self._string(verb, value)
        return self._bad(verb, value, meter) if text is None else text

    def _of_parts(self, verb: str, value: Any, meter: Meter) -> str:
        meter.step(1 + len(value))
        if isinstance(value, list):
            return f"[{' '.join(self.text(verb, element, meter) for element in value)}]"
        entries = (
            f"{self.text(verb, key, meter)}:{self.text(verb, value[key], meter)}" for key in sorted(value, key=raw)
        )
        return f"map[{' '.join(entries)}]"

    def _bad(self, verb: str, value: Any, meter: Meter) -> str:
        return f"%!{verb}({type_of(value)}={shown(value, meter)})"

    def _padded(self, text: str, *, zeros: bool = False) -> str:
        missing = self.width - len(text)
        if missing <= 0:
            return text
        if "-" in self.flags:
            return text + " " * missing
        if zeros and "0" in self.flags:
            sign = text[:1] if text[:1] in ("+", "-", " ") else ""
            return f"{sign}{'0' * missing}{text[len(sign) :]}"
        return " " * missing + text

    def _signed(self, text: str) -> str:
        if text.startswith("-"):
            return text
        return f"+{text}" if "+" in self.flags else f" {text}" if " " in self.flags else text

    def _integer(self, verb: str, value: int) -> str | None:
        if verb in "cqU":
            return self._rune(verb, value)
        base = {"d": "d", "x": "x", "X": "X", "o": "o", "b": "b", "O": "o"}.get(verb)
        if base is None:
            return None
        digits = format(abs(value), base)
        if self.precision is not None:
            digits = digits.rjust(self.precision, "0") if value or self.precision else ""
        prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(verb, "") if "#" in self.flags else ""
        prefix = "0o" if verb == "O" else prefix
        text = self._signed(f"{'-' if value < 0 else ''}{prefix}{digits}")
        return self._padded(text, zeros=self.precision is None)

    def _rune(self, verb: str, value: int) -> str:
        letter = chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value < 0xE000 else "\ufffd"
        if verb == "U":
            return self._padded(f"U+{value:04X}")
        if verb == "c":
            return self._padded(letter)
        inner = quoted(letter)[1:-1]
        return self._padded("'" + {"'": "\\'", '\\"': '"'}.get(inner, inner) + "'")

    def _float(self, verb: str, value: float) -> str | None:
        if verb not in "feEgGF" or not math.isfinite(value):
            return self._padded(float_text(value)) if verb in "feEgGF" else None
        if verb in "gG" and self.precision is None:
            text = float_text(value)
            return self._padded(self._signed(text.upper() if verb == "G" else text), zeros=True)
        form = format(value, f".{6 if self.precision is None else self.precision}{verb.replace('F', 'f')}")
        return self._padded(self._signed(form), zeros=True)

    def _string(self, verb: str, value: str) -> str | None:
        if verb in "sq":
            text = value if self.precision is None else value[: self.precision]
            return self._padded(text if verb == "s" else quoted(text), zeros=True)
        if verb in "xX":
            digits = raw(value).hex()
            return self._padded(digits.upper() if verb == "X" else digits)
        return None
