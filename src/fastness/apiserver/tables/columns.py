"""Columns of custom kinds: JSONPath in, cells out.

The rules are those of an API server for `additionalPrinterColumns`:

* The first value that the path finds counts. Nothing found: None.
* `string`: text as it is; numbers and booleans in Go's notation; objects and lists as compact JSON with sorted keys.
* `integer`, `number`, `boolean`: the value when it has that type, else None; fractions are cut off for an integer.
* `date`: an age; a text that is no time is `<invalid>`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import orjson

from fastness.apiserver.tables.ages import age
from fastness.apiserver.tables.printer import NAME, Header, Printer
from fastness.apiserver.tables.reader import MISSING, Row, RowReader
from fastness.formats.jsonpath import compile_path
from fastness.kinds.kind import Column, Kind

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LARGE_EXPONENT: Final = 6
NULL_TEXT: Final = "<no value>"
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def column_printer(kind: Kind) -> Printer:
    """The printer of a custom kind; raises JsonPathError for a column that does not compile."""
    paths = [compile_path(column.path) for column in kind.columns]
    converters = [_CONVERT[column.type] for column in kind.columns]
    ways = tuple(zip((path.first for path in paths), converters, strict=True))

    def cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
        row = [obj["metadata"].get("name", "")]
        row += [convert(first(obj, MISSING), now) for first, convert in ways]
        return row

    def row_cells(row: Row, now: datetime) -> list[Any]:
        made = [row.name]
        made += [convert(value, now) for convert, value in zip(converters, row.values, strict=True)]
        return made

    headers = (NAME, *(_header(column) for column in kind.columns))
    return Printer(headers, cells, RowReader.of(paths), row_cells)


def _header(column: Column) -> Header:
    text = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return Header(column.name, column.type, column.format, column.priority, text)


def text_of(value: Any, _now: datetime | None = None) -> str | None:
    """Any JSON value as a text cell."""
    if isinstance(value, str):
        return value
    if value is MISSING:
        return None
    if value is None:
        return NULL_TEXT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _go_float(value)
    if isinstance(value, dict | list):
        return _compact(value).decode().translate(_HTML)
    # A number beyond 64 bits is a float for an API server, however it was written.
    return str(value) if INT64_MIN <= value <= INT64_MAX else _go_float(float(value))


def _compact(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits; reading it once more makes it a float
        return orjson.dumps(orjson.loads(json.dumps(value)), option=orjson.OPT_SORT_KEYS)


def _go_float(value: float) -> str:
    """Shortest notation, with an exponent outside 1e-4 to 1e6: `1.5e+06`."""
    if not math.isfinite(value):
        return str(value)
    sign, digits, scale = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(scale) - 1
    if -4 <= exponent < LARGE_EXPONENT:
        return repr(value).removesuffix(".0")
    figures = "".join(map(str, digits))
    fraction = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{'-' if sign else ''}{figures[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _integer(value: Any, _now: datetime) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # What Go makes of a float that no 64-bit integer can hold.
    return int(value) if INT64_MIN <= value <= INT64_MAX else INT64_MIN


def _number(value: Any, _now: datetime) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if INT64_MIN <= value <= INT64_MAX else float(value)


def _boolean(value: Any, _now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    return age(value, now) if isinstance(value, str) else None


_CONVERT: Final[dict[str, Callable[[Any, datetime], Any]]] = {
    "string": text_of,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
