"""What a plain YAML scalar means to Kubernetes: YAML 1.1 as its Go library reads it, then JSON.

- `yes`, `no`, `on`, `off`, `y`, `n` are booleans, also as keys (`on:` becomes `"true"`). Quote them to keep them.
- `0777` is octal, `0x1F` hexadecimal, `0b11` binary, `1_000` one thousand. `08` is no octal number and therefore 8.
- A date stays a string: JSON has no dates.
- A whole float becomes an integer (`1.0` is 1, `1e3` is 1000), because the value passes through JSON text on its way.
- An integer beyond 64 bits becomes a float. Infinity and not-a-number have no JSON form and are refused by the caller.
"""

import math
import re
from typing import Final

Scalar = None | bool | int | float | str

_CONSTANTS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_START: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(
    r"([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9][0-9]*))\Z", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)
# Longer digit strings are floats anyway; this keeps the conversion to a machine integer cheap.
_MAX_DIGITS: Final = 64


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar without a tag."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    plain = text.replace("_", "")
    integer = _integer(plain)
    if integer is not None:
        return integer
    if _FLOAT.match(plain) is not None:
        return _whole(float(plain), text)
    return text


def key_text(value: Scalar) -> str | None:
    """The JSON name of a mapping key, or None when a key of this kind has no JSON name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    # A number too large for an integer would lose digits on the way to a name.
    return None if value is None or (isinstance(value, float) and abs(value) >= 2**63) else str(value)


def _integer(plain: str) -> int | float | None:
    match = _INTEGER.match(plain) if len(plain) <= _MAX_DIGITS else None
    if match is None:
        return None
    sign, _, hexadecimal, _, binary, _, octal, decimal = match.groups()
    if decimal is not None:
        number = int(decimal)
    else:
        digits, base = next((d, b) for d, b in ((hexadecimal, 16), (binary, 2), (octal, 8)) if d is not None)
        number = int(digits, base)
    number = -number if sign == "-" else number
    if -(2**63) <= number < 2**63:
        return number
    # An unsigned 64-bit integer still parses in any base; beyond that only decimals do, as floats.
    return float(number) if decimal is not None or (not sign and number < 2**64) else None


def _whole(number: float, text: str) -> Scalar:
    if math.isinf(number):
        return text  # too large for a float: the Go library leaves the text alone
    return int(number) if number.is_integer() and abs(number) < 2**63 else number
