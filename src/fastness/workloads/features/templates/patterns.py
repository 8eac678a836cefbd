"""Sprig's functions on regular expressions. Whether something matches RE2 says; where, and which groups, `formats/regexp`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastness.formats.errors import RegexpError
from fastness.formats.regexp import Regexp, compile_regexp
from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.regexps import matcher
from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.values import Meter, TypedList, failed

_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_INSERT: Final = re.compile(r"\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))", re.A)
Spans = tuple[int, ...]


def _compiled(pattern: str) -> Regexp:
    try:
        return compile_regexp(pattern)
    except RegexpError as error:
        raise failed(error.code, f"{pattern[:80]!r}: {error}") from error


def _all(pattern: str, text: str, count: int, meter: Meter) -> Iterator[Spans]:
    """Matches that do not overlap, without an empty one right behind another."""
    regexp, at, before = _compiled(pattern), 0, -1
    while count and at <= len(text):
        spans = regexp.search(text, at, meter.step)
        if spans is None:
            return
        empty = spans[1] == at
        at = at + 1 if empty else spans[1]
        if not (empty and spans[0] == before):
            yield spans
            count -= 1
        before = spans[1]


def _found(pattern: str, text: str, *, strict: bool) -> bool:
    try:
        return matcher(pattern)(text)
    except BadExpression as error:
        if strict:
            raise failed("bad-pattern", str(error)) from error
        return False


def _find(meter: Meter, pattern: str, text: str) -> str:
    spans = _compiled(pattern).search(text, 0, meter.step)
    return text[spans[0] : spans[1]] if spans is not None else ""


def _find_all(meter: Meter, pattern: str, text: str, count: int) -> TypedList:
    return TypedList(text[spans[0] : spans[1]] for spans in _all(pattern, text, count, meter))


def _replaced(meter: Meter, pattern: str, text: str, insert: Callable[[Regexp, Spans], str]) -> str:
    regexp, parts, last, at, size = _compiled(pattern), list[str](), 0, 0, 0
    while at <= len(text):
        spans = regexp.search(text, at, meter.step)
        if spans is None:
            break
        parts.append(text[last : spans[0]])
        if spans[1] > last or spans[0] == 0:
            parts.append(insert(regexp, spans))
            size += len(parts[-1])
            meter.room(len(text) + size)
        last = spans[1]
        at = max(at + 1, last)
    return "".join((*parts, text[last:]))


def _replace(meter: Meter, pattern: str, text: str, form: str) -> str:
    def insert(regexp: Regexp, spans: Spans) -> str:
        return _INSERT.sub(lambda match: _group(regexp, spans, text, match), form)

    return _replaced(meter, pattern, text, insert)


def _group(regexp: Regexp, spans: Spans, text: str, match: re.Match[str]) -> str:
    """What `$1`, `${name}` and `$$` stand for; a group that is not there is empty."""
    name = match[1] or match[2]
    if name is None:
        return "$"
    number = (
        int(name) if name.isdecimal() and len(name) < 5 else regexp.groups.index(name) if name in regexp.groups else -1
    )
    if not 0 <= number < len(regexp.groups) or spans[2 * number] < 0:
        return ""
    return text[spans[2 * number] : spans[2 * number + 1]]


def _split(meter: Meter, pattern: str, text: str, count: int) -> TypedList:
    _compiled(pattern)
    if not count:
        return TypedList()
    if pattern and not text:
        return TypedList([""])
    parts, begin, end = list[str](), 0, 0
    for spans in _all(pattern, text, count, meter):
        if 0 < count == len(parts) + 1:
            break
        end = spans[0]
        if spans[1]:
            parts.append(text[begin:end])
        begin = spans[1]
    return TypedList([*parts, text[begin:]] if end != len(text) else parts)


def _both(name: str, function: Function) -> dict[str, Function]:
    """A function and the one that says so when the pattern is none: here both do."""
    return {name: function, f"must{name[0].upper()}{name[1:]}": function}


PATTERNS: Final[Mapping[str, Function]] = {
    "regexMatch": Function("ss", lambda meter, pattern, text: _found(pattern, text, strict=False)),
    "mustRegexMatch": Function("ss", lambda meter, pattern, text: _found(pattern, text, strict=True)),
    "regexQuoteMeta": Function("s", lambda meter, text: _META.sub(lambda match: f"\\{match[0]}", text)),
    **_both("regexFind", Function("ss", _find)),
    **_both("regexFindAll", Function("ssi", _find_all)),
    **_both("regexReplaceAll", Function("sss", _replace)),
    **_both("regexReplaceAllLiteral", Function(
        "sss", lambda meter, pattern, text, form: _replaced(meter, pattern, text, lambda regexp, spans: form))),
    **_both("regexSplit", Function("ssi", _split)),
}  # fmt: skip
