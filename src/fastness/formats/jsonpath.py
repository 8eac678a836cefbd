"""JSONPath as Kubernetes uses it in printer columns, `kubectl wait` and `scale` paths; compiled once, run for every row.

Understood: `.field`, `['field']`, escaped dots (`.labels.app\\.io/name`, `['app\\.io/name']`), `.*`, `[*]`, `[2]`, `[-1]`,
`[1:3]`, `[::2]`, unions (`['a','b']`, `[0,2]`), recursive descent (`..name`), and filters with one comparison or a test for
existence (`[?(@.type=="Ready")]`). `@` and `$` both mean the value at hand.

* Compiling is total: a `JsonPath` or a `JsonPathError`. Length, nesting and the number of steps are bounded.
* Running is total too: a path that does not fit the object (an index into a string, a comparison of different types) finds
  nothing, as a printer column shows nothing. Work is bounded by `MAX_VISITS` values, so that `..*..*` costs little.
* A missing field finds nothing; a field that is null finds `None`.
* Quotes are single and do not protect a dot: `['a.b']` means `.a.b`. That is what Kubernetes does, so it is what is done here.
* Wildcards walk objects in the order of their keys, so that answers are stable.

The tables of the embedded API (`cluster/embedded/tables`) are the main reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from fastness.formats.errors import FormatError

MAX_LENGTH: Final = 2048
MAX_STEPS: Final = 64
MAX_UNION: Final = 16
MAX_NESTING: Final = 8
MAX_VISITS: Final = 20_000

Step = Callable[[list[Any]], list[Any]]

_FIELD: Final = re.compile(r"(?:\\.|[^\s.,\[\]$@{}\\])+", re.DOTALL)
_KEY: Final = re.compile(r"'((?:\\.|[^'\\])*)'", re.DOTALL)
_SLICE: Final = re.compile(r"(-?[0-9]{1,9})?(?:(:)(-?[0-9]{1,9})?(?:(:)(-?[0-9]{1,9})?)?)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_EQUALS: Final = r"""@\.([A-Za-z][A-Za-z0-9]*)\s*==\s*["']([A-Za-z0-9 ./_-]*)["']"""
_USUAL: Final = re.compile(_EQUALS)
_USUAL_REST: Final = re.compile(rf"\[\?\(\s*{_EQUALS}\s*\)\]\.([A-Za-z][A-Za-z0-9]*)$")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
_DOT: Final = re.compile(r"(?<!\\)\.")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class JsonPathError(FormatError):
    """The text is not a JSONPath of the kind that Kubernetes understands."""


class _Mismatch(Exception):
    """The path does not fit this object; never leaves the module."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A compiled path: plain fields from the root (`lead`), then everything else (`rest`)."""

    text: str
    lead: tuple[str, ...]
    rest: tuple[Step, ...]
    usual: tuple[str, str, str] | None = None

    def find(self, value: Any) -> list[Any]:
        """Everything that the path finds in `value`."""
        for name in self.lead:
            if type(value) is not dict or name not in value:
                return []
            value = value[name]
        return _run(self.rest, value, quiet=True)

    def first(self, value: Any, default: Any = None) -> Any:
        """The first value that the path finds, or `default`."""
        for name in self.lead:
            if type(value) is not dict or name not in value:
                return default
            value = value[name]
        return self.first_beyond(value, default) if self.rest else value

    def first_beyond(self, value: Any, default: Any = None) -> Any:
        """The first value that the rest of the path finds in what stands at the end of `lead`."""
        if self.usual is not None:
            return _first_having(value, *self.usual, default)
        found = _run(self.rest, value, quiet=True)
        return found[0] if found else default


def compile_path(text: str) -> JsonPath:
    """Compile a path, with or without the braces of kubectl's templates; raises JsonPathError."""
    if len(text) > MAX_LENGTH:
        raise _error("jsonpath-too-long", f"the path has {len(text)} characters, the limit is {MAX_LENGTH}")
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    parsed = list(_parse(inner, 0))
    if len(parsed) > MAX_STEPS:
        raise _error("jsonpath-too-long", f"the path has {len(parsed)} steps, the limit is {MAX_STEPS}")
    lead = tuple(name for name, _ in takewhile(lambda entry: entry[0] is not None, parsed) if name is not None)
    usual = _USUAL_REST.search(inner) if len(parsed) == len(lead) + 2 else None
    rest = tuple(step for _, step in parsed[len(lead) :])
    return JsonPath(text, lead, rest, (usual[1], usual[2], usual[3]) if usual is not None else None)


def _parse(text: str, nesting: int) -> Iterator[tuple[str | None, Step]]:
    """The steps of a path, each with the name of its field when it is a plain field."""
    if nesting > MAX_NESTING:
        raise _error("jsonpath-too-deep", f"filters are nested more than {MAX_NESTING} deep")
    position, recursive = 0, False
    while position < len(text):
        char = text[position]
        if char in "@$ ":
            position += 1
        elif text.startswith("..", position):
            if recursive:
                raise _error("jsonpath-syntax", "two recursive descents in a row")
            recursive = True
            yield None, _descend
            position += 1 if position + 2 < len(text) and text[position + 2] not in ".[" else 2
            continue
        elif char == ".":
            name, position = _field(text, position + 1)
            if name == "*":
                yield None, _children
            elif name:
                yield name, _pick(name)
        elif char == "[":
            inner, position = _bracket(text, position)
            yield _select(inner, nesting)
        else:
            raise _error("jsonpath-syntax", f"unexpected {char!r} at {position}")
        recursive = False


def _field(text: str, position: int) -> tuple[str, int]:
    match = _FIELD.match(text, position)
    if match is None:
        rest = text[position : position + 1]
        if rest and rest not in ".[@$ ":
            raise _error("jsonpath-syntax", f"unexpected {rest!r} at {position}")
        return "", position
    return _ESCAPE.sub(r"\1", match[0]), match.end()


def _bracket(text: str, start: int) -> tuple[str, int]:
    """The text between a bracket and the one that closes it; quotes hide brackets."""
    depth, quote, position = 0, "", start
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return text[start + 1 : position].strip(), position + 1
        position += 1
    raise _error("jsonpath-syntax", f"the bracket at {start} is not closed")


def _select(inner: str, nesting: int) -> tuple[str | None, Step]:
    if inner.startswith("?(") and inner.endswith(")"):
        return None, _filter(inner[2:-1].strip(), nesting)
    parts = _split_union(inner)
    if len(parts) > 1:
        if len(parts) > MAX_UNION:
            raise _error("jsonpath-too-long", f"a union has more than {MAX_UNION} parts")
        choices = [_select_one(part)[1] for part in parts]
        return None, lambda values: [found for choice in choices for found in choice(values)]
    return _select_one(inner)


def _split_union(inner: str) -> list[str]:
    parts, quote, last = [], "", 0
    for position, char in enumerate(inner):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ",":
            parts.append(inner[last:position].strip())
            last = position + 1
    return [*parts, inner[last:].strip()]


def _select_one(inner: str) -> tuple[str | None, Step]:
    if inner == "*":
        return None, _children
    key = _KEY.fullmatch(inner)
    if key is not None:
        return _quoted(key[1])
    match = _SLICE.fullmatch(inner)
    if match is None or not inner:
        raise _error("jsonpath-syntax", f"[{inner}] is neither an index, a slice, a quoted field nor a filter")
    start, colon, stop, _, step = match.groups()
    if colon is None:
        return None, _index(int(start))
    stride = int(step) if step else 1
    if stride <= 0:
        raise _error("jsonpath-syntax", "the step of a slice must be positive")
    return None, _slice(int(start) if start else 0, int(stop) if stop else None, stride)


def _quoted(text: str) -> tuple[str | None, Step]:
    """Quotes protect brackets and blanks but not dots: `['a.b']` is `.a.b`, as in Kubernetes; a dot in a name is `\\.`."""
    names = [_ESCAPE.sub(r"\1", part) for part in _DOT.split(text)]
    if len(names) == 1:
        return names[0], _pick(names[0])
    steps = [_pick(name) for name in names]
    return None, lambda values: _run_all(steps, values)


def _run_all(steps: Sequence[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def _pick(name: str) -> Step:
    return lambda values: [value[name] for value in values if type(value) is dict and name in value]


def _index(at: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        found = []
        for value in _lists(values):
            if not -len(value) <= at < len(value):
                raise _Mismatch
            found.append(value[at])
        return found

    return step


def _slice(start: int, stop: int | None, stride: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in _lists(values):
            size = len(value)
            low = start + size if start < 0 else start
            high = size if stop is None else stop + size if stop < 0 else stop
            if low == high:
                continue
            if not (0 <= low < size and 0 <= high <= size and low <= high):
                raise _Mismatch
            found += value[low:high:stride]
        return found

    return step


def _lists(values: list[Any]) -> Iterator[list[Any]]:
    for value in values:
        if isinstance(value, list):
            yield value
        elif value is not None:
            raise _Mismatch


def _children(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _inside(value)
        if len(found) > MAX_VISITS:
            raise _Mismatch
    return found


def _descend(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    waiting = list(reversed(values))
    visits = 0
    while waiting:
        visits += 1
        if visits > MAX_VISITS:
            raise _Mismatch
        value = waiting.pop()
        inside = _inside(value)
        if inside:
            found.append(value)
            waiting += reversed(inside)
    return found


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _filter(text: str, nesting: int) -> Step:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        exists = [step for _, step in _parse(text, nesting + 1)]
        return lambda values: [
            item for value in _lists_only(values) for item in value if _run(exists, item, quiet=True)
        ]
    left = _operand(match[1].strip(), nesting)
    right = _operand(match[3].strip(), nesting)
    compare = _OPERATORS.get(match[2])
    if compare is None:
        raise _error("jsonpath-syntax", f"{match[2]!r} is not a comparison")
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        return _having(usual[1], usual[2])

    def step(values: list[Any]) -> list[Any]:
        found = []
        for value in _lists_only(values):
            for item in value:
                lefts, rights = left(item), right(item)
                if len(lefts) > 1 or len(rights) > 1:
                    raise _Mismatch
                if lefts and rights and _comparable(lefts[0], rights[0]) and compare(lefts[0], rights[0]):
                    found.append(item)
        return found

    return step


def _having(name: str, wanted: str) -> Step:
    """`[?(@.name=="wanted")]`, which nearly every filter is, without the detour over operands."""

    def step(values: list[Any]) -> list[Any]:
        found = []
        for value in _lists_only(values):
            for item in value:
                if type(item) is dict and name in item:
                    seen = item[name]
                    if seen == wanted:
                        found.append(item)
                    elif type(seen) is not str:
                        raise _Mismatch
        return found

    return step


def _first_having(value: Any, name: str, wanted: str, field: str, default: Any) -> Any:
    """`[?(@.name=="wanted")].field` in one loop: the column that shows a condition."""
    if type(value) is not list:
        return default
    found = default
    for item in value:
        if type(item) is dict and name in item:
            seen = item[name]
            if type(seen) is not str:
                return default
            if seen == wanted and found is default and field in item:
                found = item[field]
    return found


def _lists_only(values: list[Any]) -> Iterator[list[Any]]:
    for value in values:
        if not isinstance(value, list):
            raise _Mismatch
        yield value


def _run(steps: Sequence[Step], item: Any, quiet: bool = False) -> list[Any]:
    found = [item]
    try:
        for step in steps:
            found = step(found)
            if len(found) > MAX_VISITS:
                raise _Mismatch
    except _Mismatch:
        if not quiet:
            raise
        return []
    return found


def _operand(text: str, nesting: int) -> Callable[[Any], list[Any]]:
    if text[:1] in ("'", '"'):
        if len(text) < 2 or text[-1] != text[0]:
            raise _error("jsonpath-syntax", f"the quote in {text!r} is not closed")
        literal: Any = _ESCAPE.sub(r"\1", text[1:-1])
        return lambda _: [literal]
    if text in ("true", "false"):
        truth = text == "true"
        return lambda _: [truth]
    if _NUMBER.fullmatch(text):
        number = float(text) if "." in text else int(text)
        return lambda _: [number]
    steps = [step for _, step in _parse(text, nesting + 1)]
    return lambda item: _run(steps, item)


def _comparable(left: Any, right: Any) -> bool:
    if type(left) is not type(right) or not isinstance(left, str | int | float | bool):
        raise _Mismatch
    return True


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(left: Any, right: Any) -> bool:
        if isinstance(left, bool):
            raise _Mismatch
        return compare(left, right)

    return check


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": _ordered(lambda left, right: bool(left < right)),
    "<=": _ordered(lambda left, right: bool(left <= right)),
    ">": _ordered(lambda left, right: bool(left > right)),
    ">=": _ordered(lambda left, right: bool(left >= right)),
}


def _error(code: str, message: str) -> JsonPathError:
    return JsonPathError(code, message, hint='write a path such as .status.conditions[?(@.type=="Ready")].status')
