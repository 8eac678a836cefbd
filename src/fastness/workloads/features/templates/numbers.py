"""Sprig's arithmetic: whole numbers of 64 bits, and floats that go through decimals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, Final

from fastness.formats.gotemplate.literals import number
from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.show import shown
from fastness.workloads.features.templates.values import Int64, Meter, TypedList, failed

_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\Z|[+-]?(?:inf|infinity|nan)\Z", re.I | re.A
)
_ZEROS: Final = re.compile(r"\.0*\Z", re.A)
_OCTAL: Final = re.compile(r"[+-]?[0-7]{1,21}\Z", re.A)
_PLACES: Final = Decimal(1).scaleb(-16)


def wrapped(value: int) -> Int64:
    """A number in 64 bits, the rest lost."""
    return Int64((value + 2**63) % 2**64 - 2**63)


def to_int(value: Any) -> int:
    """A number from anything: what is none is zero."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else -(2**63)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        read = number(_ZEROS.sub("", value) or "0") if value else None
        return read if isinstance(read, int) else 0
    return 0


def to_float(value: Any) -> float:
    """A float from anything: what is none is zero."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and _FLOAT.match(value):
        return float(value)
    return 0.0


def _add(meter: Meter, *values: Any) -> Int64:
    return wrapped(sum(map(to_int, values)))


def _mul(meter: Meter, first: Any, *values: Any) -> Int64:
    product = wrapped(to_int(first))
    for value in values:
        product = wrapped(product * to_int(value))
    return product


def _div(meter: Meter, first: Any, second: Any) -> Int64:
    over, under = to_int(first), to_int(second)
    if not under:
        raise failed("bad-argument", "a division by zero")
    quotient = abs(over) // abs(under)
    return wrapped(quotient if (over < 0) == (under < 0) else -quotient)


def _mod(meter: Meter, first: Any, second: Any) -> Int64:
    over, under = to_int(first), to_int(second)
    if not under:
        raise failed("bad-argument", "a division by zero")
    return wrapped(
        int(math.copysign(abs(over) % abs(under), over))
        if abs(over) < 2**53
        else over - under * _div(meter, over, under)
    )


def _folded(operation: Callable[[Decimal, Decimal], Decimal], first: Any, values: tuple[Any, ...]) -> float:
    """Floats as decimals, one operation after the other."""
    with localcontext(Context(prec=400)):
        result = _decimal(first)
        for value in values:
            result = operation(result, _decimal(value))
        return float(result) + 0.0  # decimals of Go have no negative zero


def _decimal(value: Any) -> Decimal:
    given = to_float(value)
    if not math.isfinite(given):
        raise failed("bad-argument", "this is no number to calculate with")
    return Decimal(repr(given))


def _quotient(first: Decimal, second: Decimal) -> Decimal:
    if not second:
        raise failed("bad-argument", "a division by zero")
    return (first / second).quantize(_PLACES, ROUND_HALF_UP)


def _round(meter: Meter, value: Any, places: int, *at: float) -> float:
    if abs(places) > 300:
        raise failed("bad-argument", "there are not that many digits")
    power = math.pow(10, places)
    digit = power * to_float(value)
    if not math.isfinite(digit):
        raise failed("bad-argument", "this is no number to round")
    up = math.modf(digit)[0] >= (at[0] if at else 0.5)
    return float(math.ceil(digit) if up else math.floor(digit)) / power


def _whole(way: Callable[[float], int]) -> Callable[[Meter, Any], float]:
    def whole(meter: Meter, value: Any) -> float:
        given = to_float(value)
        return math.copysign(float(way(given)), given) if math.isfinite(given) else given

    return whole


def steps(meter: Meter, start: int, stop: int, step: int) -> TypedList:
    """Numbers from one to another."""
    if (stop < start) is (step >= 0) or not step:
        return TypedList(of="int")
    numbers = range(start, stop, step)
    meter.room(len(numbers))
    return TypedList(numbers, of="int")


def _seq(meter: Meter, *given: int) -> str:
    if not 1 <= len(given) <= 3:
        return ""
    start, end = (1, given[0]) if len(given) == 1 else (given[0], given[-1])
    way = -1 if end < start else 1
    step = given[1] if len(given) == 3 else way
    if way < 0 < step:
        return ""
    return " ".join(str(value) for value in steps(meter, start, end + way, step))


def _octal(meter: Meter, value: Any) -> Int64:
    text = shown(value, meter)
    read = int(text, 8) if _OCTAL.match(text) else 0
    return Int64(read if -(2**63) <= read < 2**63 else 0)


def _extreme(pick: Callable[..., Any], read: Callable[[Any], Any], result: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda meter, *values: result(pick(read(value) for value in values))


_FIRST: Final = "vv*"
NUMBERS: Final[Mapping[str, Function]] = {
    "atoi": Function("s", lambda meter, text: _atoi(text)),
    "int": Function("v", lambda meter, value: int(wrapped(to_int(value)))),
    "int64": Function("v", lambda meter, value: wrapped(to_int(value))),
    "float64": Function("v", lambda meter, value: to_float(value)),
    "toDecimal": Function("v", _octal),
    "add": Function("v*", _add), "add1": Function("v", lambda meter, value: wrapped(to_int(value) + 1)),
    "sub": Function("vv", lambda meter, first, second: wrapped(to_int(first) - to_int(second))),
    "mul": Function(_FIRST, _mul), "div": Function("vv", _div), "mod": Function("vv", _mod),
    "addf": Function("v*", lambda meter, *values: _folded(lambda a, b: a + b, 0.0, values)),
    "add1f": Function("v", lambda meter, value: _folded(lambda a, b: a + b, value, (1,))),
    "subf": Function(_FIRST, lambda meter, first, *values: _folded(lambda a, b: a - b, first, values)),
    "mulf": Function(_FIRST, lambda meter, first, *values: _folded(lambda a, b: a * b, first, values)),
    "divf": Function(_FIRST, lambda meter, first, *values: _folded(_quotient, first, values)),
    "max": Function(_FIRST, _extreme(max, to_int, wrapped)), "biggest": Function(_FIRST, _extreme(max, to_int, wrapped)),
    "min": Function(_FIRST, _extreme(min, to_int, wrapped)),
    "maxf": Function(_FIRST, _extreme(max, to_float, float)), "minf": Function(_FIRST, _extreme(min, to_float, float)),
    "ceil": Function("v", _whole(math.ceil)), "floor": Function("v", _whole(math.floor)), "round": Function("vif*", _round),
    "until": Function("i", lambda meter, count: steps(meter, 0, count, -1 if count < 0 else 1)),
    "untilStep": Function("iii", steps), "seq": Function("i*", _seq),
}  # fmt: skip


def _atoi(text: str) -> int:
    read = int(text) if re.fullmatch(r"[+-]?[0-9]{1,25}", text, re.A) else 0
    # Go keeps the nearest number that fits, and drops the error.
    return min(max(read, -(2**63)), 2**63 - 1)
