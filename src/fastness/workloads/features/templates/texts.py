"""Sprig's functions on texts. Places in texts count bytes, as in Go."""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from base64 import b32decode, b32encode, b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.show import quoted, shown
from fastness.workloads.features.templates.values import Meter, TypedList, TypedMap, cooked, failed, raw

# What Go calls white space; Python's own strip takes more.
SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
MARK: Final = "..."


def _mapped(text: str, case: Callable[[str], str]) -> str:
    """Letters changed one by one: what would become two letters stays."""
    return "".join(changed if len(changed := case(letter)) == 1 else letter for letter in text)


def upper(meter: Meter, text: str) -> str:
    """Capital letters."""
    return _mapped(text, str.upper)


def lower(meter: Meter, text: str) -> str:
    """Small letters."""
    return _mapped(text, str.lower)


def _words(text: str, change: Callable[[str], str], starts: Callable[[str], bool]) -> str:
    """A text with the first letter of each word changed."""
    parts, first = [], True
    for letter in text:
        parts.append(_mapped(letter, change) if first else letter)
        first = starts(letter)
    return "".join(parts)


def _separates(letter: str) -> bool:
    if letter.isalnum() or letter == "_":
        return False
    return letter.isascii() or letter in SPACES


def _title(meter: Meter, text: str) -> str:
    return _words(text, str.title, _separates)


def _untitle(meter: Meter, text: str) -> str:
    return _words(text, str.lower, SPACES.__contains__)


def _initials(meter: Meter, text: str) -> str:
    letters, first = [], True
    for letter in text:
        if letter in SPACES:
            first = True
        elif first:
            letters.append(letter)
            first = False
    return "".join(letters)


def _swapped(meter: Meter, text: str) -> str:
    parts, first = [], True
    for letter in text:
        if letter.isupper() or letter.istitle():
            parts.append(_mapped(letter, str.lower))
        elif letter.islower():
            parts.append(_mapped(letter, str.title if first else str.upper))
        else:
            parts.append(letter)
        first = letter in SPACES
    return "".join(parts)


def _trunc(meter: Meter, count: int, text: str) -> str:
    content = raw(text)
    if count < 0 and len(content) + count > 0:
        return cooked(content[len(content) + count :])
    return cooked(content[:count]) if 0 <= count < len(content) else text


def _cut(content: bytes, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(content):
        raise failed("bad-index", f"there is no part from {start} to {end} in {len(content)} bytes")
    return cooked(content[start:end])


def _substr(meter: Meter, start: int, end: int, text: str) -> str:
    content = raw(text)
    if start < 0:
        return _cut(content, 0, end)
    return _cut(content, start, len(content) if end < 0 or end > len(content) else end)


def _abbreviated(content: bytes, offset: int, width: int) -> bytes:
    """A text cut to a width, from an offset on, with dots where something is missing."""
    dots, room = MARK.encode(), width - len(MARK)
    if len(content) <= width:
        return content
    offset = min(offset, len(content))
    offset = len(content) - room if len(content) - offset < room else offset
    if offset <= 4:
        return content[:room] + dots
    if width < 7:
        return b""
    if offset + room < len(content):
        return dots + _abbreviated(content[offset:], 0, room)
    return dots + content[len(content) - room :]


def _abbrev(meter: Meter, width: int, text: str) -> str:
    return text if width < 4 else cooked(_abbreviated(raw(text), 0, width))


def _abbrevboth(meter: Meter, left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7):
        return text
    return cooked(_abbreviated(raw(text), left, right))


def _repeat(meter: Meter, count: int, text: str) -> str:
    if count < 0:
        raise failed("bad-argument", "nothing can be repeated less than zero times")
    meter.room(count * len(text))
    return text * count


def _indent(meter: Meter, spaces: int, text: str) -> str:
    pad = _repeat(meter, spaces, " ")
    meter.room(len(text) + (text.count("\n") + 1) * len(pad))
    return pad + text.replace("\n", f"\n{pad}")


def _replace(meter: Meter, old: str, new: str, text: str) -> str:
    meter.room(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new)


def strval(value: Any, meter: Meter) -> str:
    """A value as text."""
    return value if isinstance(value, str) else shown(value, meter)


def strings_of(value: Any, meter: Meter) -> list[str]:
    """A list as texts, nil left out; anything else is a list of one."""
    if isinstance(value, list):
        return [strval(element, meter) for element in value if element is not None]
    return [] if value is None else [strval(value, meter)]


def _join(meter: Meter, separator: str, value: Any) -> str:
    parts = strings_of(value, meter)
    meter.room(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _split(separator: str, text: str, count: int = -1) -> list[str]:
    """Parts of a text, as Go's strings.SplitN: without a separator, its letters."""
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    return [*text] if count < 0 or count >= len(text) else [*text[: count - 1], text[count - 1 :]]


def _numbered(parts: list[str]) -> TypedMap:
    return TypedMap({f"_{place}": part for place, part in enumerate(parts)})


def _quote(meter: Meter, *values: Any) -> str:
    return " ".join(quoted(strval(value, meter)) for value in values if value is not None)


def _squote(meter: Meter, *values: Any) -> str:
    return " ".join(f"'{shown(value, meter)}'" for value in values if value is not None)


def _cat(meter: Meter, *values: Any) -> str:
    return " ".join(shown(value, meter) for value in values if value is not None)


def _decoded(meter: Meter, decode: Callable[[bytes], bytes], text: str) -> str:
    # Sprig returns the words of the error as the value, which would become a label.
    try:
        return cooked(decode(raw(text).replace(b"\r", b"").replace(b"\n", b"")))
    except ValueError as error:
        raise failed("bad-encoding", f"the text cannot be decoded: {error}") from error


def _clean(meter: Meter, path: str) -> str:
    clean = posixpath.normpath(path) if path else "."
    return clean[1:] if clean.startswith("//") else clean


def _base(meter: Meter, path: str) -> str:
    return (path.rstrip("/").rpartition("/")[2] or "/") if path else "."


def _dir(meter: Meter, path: str) -> str:
    return _clean(meter, path[: path.rfind("/") + 1])


def _ext(meter: Meter, path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") :] if "." in name else ""


_PATHS: Final[Mapping[str, Function]] = {
    name: Function("s", call)
    for names, call in (
        (("base", "osBase"), _base), (("dir", "osDir"), _dir), (("clean", "osClean"), _clean), (("ext", "osExt"), _ext),
        (("isAbs", "osIsAbs"), lambda meter, path: path.startswith("/")),
    )
    for name in names
}  # fmt: skip

TEXTS: Final[Mapping[str, Function]] = {
    "upper": Function("s", upper), "lower": Function("s", lower), "title": Function("s", _title),
    "untitle": Function("s", _untitle), "initials": Function("s", _initials), "swapcase": Function("s", _swapped),
    "trim": Function("s", lambda meter, text: text.strip(SPACES)),
    "trimall": Function("ss", lambda meter, letters, text: text.strip(letters)),
    "trimAll": Function("ss", lambda meter, letters, text: text.strip(letters)),
    "trimSuffix": Function("ss", lambda meter, end, text: text.removesuffix(end)),
    "trimPrefix": Function("ss", lambda meter, begin, text: text.removeprefix(begin)),
    "nospace": Function("s", lambda meter, text: "".join(letter for letter in text if letter not in SPACES)),
    "trunc": Function("is", _trunc), "substr": Function("iis", _substr), "repeat": Function("is", _repeat),
    "abbrev": Function("is", _abbrev), "abbrevboth": Function("iis", _abbrevboth),
    "contains": Function("ss", lambda meter, part, text: part in text),
    "hasPrefix": Function("ss", lambda meter, part, text: text.startswith(part)),
    "hasSuffix": Function("ss", lambda meter, part, text: text.endswith(part)),
    "quote": Function("v*", _quote), "squote": Function("v*", _squote), "cat": Function("v*", _cat),
    "indent": Function("is", _indent), "nindent": Function("is", lambda meter, *given: "\n" + _indent(meter, *given)),
    "replace": Function("sss", _replace),
    "plural": Function("ssi", lambda meter, one, many, count: one if count == 1 else many),
    "sha1sum": Function("s", lambda meter, text: hashlib.sha1(raw(text), usedforsecurity=False).hexdigest()),
    "sha256sum": Function("s", lambda meter, text: hashlib.sha256(raw(text)).hexdigest()),
    "sha512sum": Function("s", lambda meter, text: hashlib.sha512(raw(text)).hexdigest()),
    "adler32sum": Function("s", lambda meter, text: str(zlib.adler32(raw(text)))),
    "toString": Function("v", lambda meter, value: strval(value, meter)),
    "toStrings": Function("v", lambda meter, value: TypedList(strings_of(value, meter))),
    "join": Function("sv", _join),
    "split": Function("ss", lambda meter, separator, text: _numbered(_split(separator, text))),
    "splitn": Function("sis", lambda meter, separator, count, text: _numbered(_split(separator, text, count))),
    "splitList": Function("ss", lambda meter, separator, text: TypedList(_split(separator, text))),
    "b64enc": Function("s", lambda meter, text: b64encode(raw(text)).decode()),
    "b32enc": Function("s", lambda meter, text: b32encode(raw(text)).decode()),
    "b64dec": Function("s", lambda meter, text: _decoded(meter, lambda data: b64decode(data, validate=True), text)),
    "b32dec": Function("s", lambda meter, text: _decoded(meter, b32decode, text)),
    "hello": Function("", lambda meter: "Hello!"),
    **_PATHS,
}  # fmt: skip
