"""The functions that Kubernetes adds to CEL, as tables of overloads.

An entry is (name, member, result, parameters, implementation); types are signatures as `engine.py` reads them. An implementation
raises ValueError to make the call an error, which a rule may still absorb with `||` or `&&`. The CEL library picks an overload by
the kinds of the arguments, so `list(dyn)` stands for every list; a function over lists of any element has one overload per kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from fastness.apiserver.schema.cel.values import VALUE_FUNCTIONS
from fastness.apiserver.schema.correlation import same

Entry = tuple[str, bool, str, tuple[str, ...], Callable[..., Any]]

LIST: Final = "list(dyn)"
MAP: Final = "map(dyn)"
_KINDS: Final = ("int", "uint", "double", "string", "bool", "bytes", "duration", "timestamp", "null", LIST, MAP)
MAX_OUTPUT: Final = 1 << 20


def _checked_index(text: str, index: int, what: str) -> int:
    if not 0 <= index <= len(text):
        raise ValueError(f"{what}: index {index} is outside of a text of {len(text)} characters")
    return index


def _char_at(text: str, index: int) -> str:
    return text[_checked_index(text, index, "charAt") :][:1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    return text.find(part, _checked_index(text, start, "indexOf"))


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, _checked_index(text, start, "lastIndexOf") + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else _checked_index(text, end, "substring")
    if _checked_index(text, start, "substring") > stop:
        raise ValueError(f"substring: it ends at {stop}, before its start at {start}")
    return text[start:stop]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    out = text.replace(old, new, limit)
    if len(out) > MAX_OUTPUT:
        raise ValueError("replace: the result is too long")
    return out


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        return list(text) if limit < 0 or limit >= len(text) else [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(parts: list[Any], separator: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("join: the list holds something that is no text")
    return separator.join(parts)


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() else c for c in text)


_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
                   "\\": "\\\\", '"': '\\"'}  # fmt: skip


def _quote(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


def _format(template: str, arguments: list[Any]) -> str:
    out: list[str] = []
    rest = iter(arguments)
    at = 0
    for match in re.finditer(r"%(?:(%)|(?:\.(\d{1,3}))?([sdfexXob]))?", template):
        literal, precision, verb = match[1], match[2], match[3]
        out.append(template[at : match.start()])
        at = match.end()
        if literal:
            out.append("%")
        elif verb is None:
            raise ValueError(f"format: unknown directive at {match.start()}")
        else:
            try:
                out.append(_directive(verb, precision, next(rest)))
            except StopIteration:
                raise ValueError("format: there are fewer arguments than directives") from None
    return "".join(out) + template[at:]


def _directive(verb: str, precision: str | None, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if verb == "s":
        return _printed(value)
    if verb in "fe" and number:
        return f"{value:.{precision or 6}{verb}}"
    if verb == "d" and number:
        return str(value)
    if verb in "xXob" and isinstance(value, int):
        return format(int(value), verb)
    if verb in "xX" and isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    raise ValueError(f"format: %{verb} does not take this value")


def _printed(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return "[" + ", ".join(_printed(entry) for entry in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_printed(k)}: {_printed(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _ordered(values: list[Any], what: str) -> list[Any]:
    if len({bool if isinstance(v, bool) else float if isinstance(v, int | float) else type(v) for v in values}) > 1:
        raise ValueError(f"{what}: the list holds values of several types")
    return values


def _extreme(choose: Callable[[list[Any]], Any], what: str) -> Callable[[list[Any]], Any]:
    def extreme(values: list[Any]) -> Any:
        if not values:
            raise ValueError(f"{what} called on an empty list")
        return choose(_ordered(values, what))

    return extreme


def _sum(values: list[Any]) -> Any:
    total = _ordered(values, "sum")[0] if values else 0
    for value in values[1:]:
        total = total + value
    return total


def _is_sorted(values: list[Any]) -> bool:
    _ordered(values, "isSorted")
    return all(not b < a for a, b in pairwise(values))


def _sort(values: list[Any]) -> list[Any]:
    return sorted(_ordered(values, "sort"))


def _in(values: list[Any], value: Any) -> bool:
    return any(_equal(entry, value) for entry in values)


def _equal(a: Any, b: Any) -> bool:
    return same(a, b) if isinstance(a, dict | list) else isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _position(values: list[Any], value: Any) -> int:
    return next((i for i, entry in enumerate(values) if _equal(entry, value)), -1)


def _last_position(values: list[Any], value: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if _equal(values[i], value)), -1)


def _distinct(values: list[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if not _in(out, value):
            out.append(value)
    return out


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"slice: [{start}, {end}) is outside of a list of {len(values)} entries")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("flatten: the depth is negative")
    out: list[Any] = []
    for value in values:
        out.extend(_flatten(value, depth - 1) if isinstance(value, list) and depth > 0 else [value])
    return out


def _range(count: int) -> list[int]:
    if count > MAX_OUTPUT:
        raise ValueError("lists.range: too many entries")
    return list(range(count))


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.replace(r"\z", r"\Z"), re.ASCII)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def _find(text: str, pattern: str) -> str:
    match = _pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = [match[0] for match in _pattern(pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]


S: Final = "string"
FUNCTIONS: Final[tuple[Entry, ...]] = (
    ("charAt", True, S, (S, "int"), _char_at),
    ("indexOf", True, "int", (S, S), _index_of),
    ("indexOf", True, "int", (S, S, "int"), _index_of),
    ("lastIndexOf", True, "int", (S, S), _last_index_of),
    ("lastIndexOf", True, "int", (S, S, "int"), _last_index_of),
    ("substring", True, S, (S, "int"), _substring),
    ("substring", True, S, (S, "int", "int"), _substring),
    ("replace", True, S, (S, S, S), _replace),
    ("replace", True, S, (S, S, S, "int"), _replace),
    ("split", True, "list(string)", (S, S), _split),
    ("split", True, "list(string)", (S, S, "int"), _split),
    ("join", True, S, (LIST,), _join),
    ("join", True, S, (LIST, S), _join),
    ("lowerAscii", True, S, (S,), _ascii(str.lower)),
    ("upperAscii", True, S, (S,), _ascii(str.upper)),
    ("trim", True, S, (S,), str.strip),
    ("format", True, S, (S, LIST), _format),
    ("strings.quote", False, S, (S,), _quote),
    ("find", True, S, (S, S), _find),
    ("findAll", True, "list(string)", (S, S), _find_all),
    ("findAll", True, "list(string)", (S, S, "int"), _find_all),
    ("isSorted", True, "bool", (LIST,), _is_sorted),
    ("sum", True, "dyn", (LIST,), _sum),
    ("min", True, "dyn", (LIST,), _extreme(min, "min")),
    ("max", True, "dyn", (LIST,), _extreme(max, "max")),
    ("distinct", True, LIST, (LIST,), _distinct),
    ("slice", True, LIST, (LIST, "int", "int"), _slice),
    ("flatten", True, LIST, (LIST,), _flatten),
    ("flatten", True, LIST, (LIST, "int"), _flatten),
    ("sort", True, LIST, (LIST,), _sort),
    ("reverse", True, LIST, (LIST,), lambda values: values[::-1]),
    ("lists.range", False, "list(int)", ("int",), _range),
    ("sets.contains", False, "bool", (LIST, LIST), lambda a, b: all(_in(a, x) for x in b)),
    ("sets.equivalent", False, "bool", (LIST, LIST), lambda a, b: all(_in(a, x) for x in b) and all(_in(b, x) for x in a)),
    ("sets.intersects", False, "bool", (LIST, LIST), lambda a, b: any(_in(a, x) for x in b)),
    *(("indexOf", True, "int", (LIST, kind), _position) for kind in _KINDS),
    *(("lastIndexOf", True, "int", (LIST, kind), _last_position) for kind in _KINDS),
)  # fmt: skip


def entries() -> Iterator[Entry]:
    """Every function a rule may call beside those of the language."""
    yield from FUNCTIONS
    yield from VALUE_FUNCTIONS
