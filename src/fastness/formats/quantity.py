"""Numbers with a unit: quantities (`100m`, `1.5Gi`, `12e6`), the int-or-percent of budgets (`2`, `"25%"`), durations (`1h30m`).

A quantity is a number of billionths, exactly, and the notation it came in. Smaller amounts round away from zero to one
billionth, binary ones stop at 2^63-1: Kubernetes' rules, which make every operation here exact integer arithmetic.
A suffix without digits is zero, as in Kubernetes.

- Canonical form: no fraction, the largest suffix that allows that (`1.5Gi` is `1536Mi`, `0.5` is `500m`).
- A binary amount that is small or not whole is written in decimal notation, because the binary suffixes have no fractions.
- Quantities compare by amount, whatever the notation; `str()` gives the canonical form.

Durations are hours, minutes, seconds and milliseconds, each with or without a fraction; no sign and no space, because no field of
ours can mean less than nothing. What the reader of a bad one does (a default, a refusal) is the caller's decision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal

from fastness.formats.errors import DurationError, QuantityError

Notation = Literal["decimal", "binary", "exponent"]

_NANO: Final = 10**9
_MAX_NANOS: Final = (2**63 - 1) * _NANO
_MAX_CHARS: Final = 64
_MAX_EXPONENT: Final = 300
_SHAPE: Final = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:(n|u|m|k|M|G|T|P|E)|(Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?[0-9]{1,10}))?\Z", re.ASCII
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_PERCENT: Final = re.compile(r"([0-9]{1,9})%\Z", re.ASCII)
_HINT: Final = "write a number with an optional suffix, like 500m, 2, 1.5Gi or 1e3"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An amount in billionths; the notation takes no part in comparison."""

    nanos: int
    notation: Notation = field(default="decimal", compare=False)

    def __str__(self) -> str:
        if self.notation == "binary" and self.nanos % _NANO == 0 and abs(self.nanos) >= 1024 * _NANO:
            return _binary_text(self.nanos // _NANO)
        return _decimal_text(self.nanos, self.notation == "exponent")

    def __int__(self) -> int:
        """The amount as a whole number, rounded up: what `Value()` gives in Kubernetes."""
        return -(-self.nanos // _NANO)


def parse_quantity(text: str, path: str = "") -> Quantity:
    """Read a quantity; raises `QuantityError`."""
    match = _SHAPE.match(text) if 0 < len(text) <= _MAX_CHARS else None
    if match is None or abs(int(match[6] or 0)) > _MAX_EXPONENT:
        raise QuantityError("quantity-syntax", f"{text[:_MAX_CHARS]!r} is not a quantity", path, _HINT)
    sign, whole, fraction, decimal, binary, exponent = match.groups()
    digits = int(whole + (fraction or "") or "0")
    power = (_DECIMAL[decimal or ""] if exponent is None else int(exponent)) - len(fraction or "") + 9
    nanos = digits * 1024 ** _BINARY[binary or ""]
    # Rounding is away from zero, and before the sign, so that -0.1n is -1n.
    nanos = nanos * 10**power if power >= 0 else -(-nanos // 10**-power)
    if binary:
        nanos = min(nanos, _MAX_NANOS)
    notation: Notation = "binary" if binary else "exponent" if exponent is not None else "decimal"
    return Quantity(-nanos if sign == "-" else nanos, notation)


def scaled(value: int | str, total: int, *, round_up: bool, path: str = "") -> int:
    """Resolve an int-or-percent against a total: a budget's `minAvailable`, a rollout's `maxUnavailable`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _PERCENT.match(value) if isinstance(value, str) else None
    if match is None:
        raise QuantityError(
            "int-or-percent",
            f"{str(value)[:_MAX_CHARS]!r} is neither a whole number nor a percentage",
            path,
            "write 2 or 25%",
        )
    share = int(match[1]) * total
    return -(-share // 100) if round_up else share // 100


def _binary_text(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < _BINARY["Ei"]:
        value //= 1024
        power += 1
    return f"{value}{('', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei')[power]}"


def _decimal_text(nanos: int, as_exponent: bool) -> str:
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0 and (as_exponent or exponent < _DECIMAL["E"]):
        nanos //= 1000
        exponent += 3
    if as_exponent:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_WRITTEN: Final = "write it as 90s, 15m or 1h30m"


def duration(text: object, field: str) -> timedelta:
    """The duration that a field holds; raises DurationError."""
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise DurationError("duration-syntax", f"{text!r} is not a duration", field, _WRITTEN)
    try:
        return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))
    except OverflowError as error:
        # 32 digits fit into every field; a timedelta ends at 999,999,999 days.
        raise DurationError("duration-range", f"{text!r} is longer than can be counted", field, _WRITTEN) from error
