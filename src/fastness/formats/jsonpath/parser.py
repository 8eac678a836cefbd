"""From text to a compiled path.

The grammar is small enough to be read character by character: a dot begins a field, a bracket a selection, two dots a descent.
Everything that is not part of it raises `JsonPathError` with the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from fastness.formats.errors import FormatError
from fastness.formats.jsonpath.steps import (
    COMPARISONS,
    Mismatch,
    Step,
    children,
    comparable,
    descend,
    first_having,
    having,
    index,
    lists_only,
    pick,
    run,
    run_all,
    span,
)

MAX_LENGTH: Final = 2048
MAX_STEPS: Final = 64
MAX_UNION: Final = 16
MAX_NESTING: Final = 8
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
        return run(self.rest, value, quiet=True)

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
            return first_having(value, *self.usual, default)
        values = run(self.rest, value, quiet=True)
        return values[0] if values else default


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
            yield None, descend
            position += 1 if position + 2 < len(text) and text[position + 2] not in ".[" else 2
            continue
        elif char == ".":
            name, position = _field(text, position + 1)
            if name == "*":
                yield None, children
            elif name:
                yield name, pick(name)
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
        return None, lambda values: [match for choice in choices for match in choice(values)]
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
        return None, children
    key = _KEY.fullmatch(inner)
    if key is not None:
        return _quoted(key[1])
    match = _SLICE.fullmatch(inner)
    if match is None or not inner:
        raise _error("jsonpath-syntax", f"[{inner}] is neither an index, a slice, a quoted field nor a filter")
    start, colon, stop, _, step = match.groups()
    if colon is None:
        return None, index(int(start))
    stride = int(step) if step else 1
    if stride <= 0:
        raise _error("jsonpath-syntax", "the step of a slice must be positive")
    return None, span(int(start) if start else 0, int(stop) if stop else None, stride)


def _quoted(text: str) -> tuple[str | None, Step]:
    """Quotes protect brackets and blanks but not dots: `['a.b']` is `.a.b`, as in Kubernetes; a dot in a name is `\\.`."""
    names = [_ESCAPE.sub(r"\1", part) for part in _DOT.split(text)]
    if len(names) == 1:
        return names[0], pick(names[0])
    steps = [pick(name) for name in names]
    return None, lambda values: run_all(steps, values)


def _filter(text: str, nesting: int) -> Step:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        exists = [step for _, step in _parse(text, nesting + 1)]
        return lambda values: [item for value in lists_only(values) for item in value if run(exists, item, quiet=True)]
    left = _operand(match[1].strip(), nesting)
    right = _operand(match[3].strip(), nesting)
    compare = COMPARISONS.get(match[2])
    if compare is None:
        raise _error("jsonpath-syntax", f"{match[2]!r} is not a comparison")
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        return having(usual[1], usual[2])

    def step(values: list[Any]) -> list[Any]:
        matches = []
        for value in lists_only(values):
            for item in value:
                lefts, rights = left(item), right(item)
                if len(lefts) > 1 or len(rights) > 1:
                    raise Mismatch
                if lefts and rights and comparable(lefts[0], rights[0]) and compare(lefts[0], rights[0]):
                    matches.append(item)
        return matches

    return step


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
    return lambda item: run(steps, item)


def _error(code: str, message: str) -> JsonPathError:
    return JsonPathError(code, message, hint='write a path such as .status.conditions[?(@.type=="Ready")].status')
