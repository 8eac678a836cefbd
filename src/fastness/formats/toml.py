"""TOML as the tools of a node read it, and back to text: settings of the container runtime and its storage.

Reading is the standard library's, made total: it needs memory with the square of the number of parts of one dotted key, and
leaks `ValueError` for a number of too many digits. So a text is measured before it is parsed, and what was parsed is measured
again: depth, and numbers of 64 bits, beyond which the readers on a node differ.

Writing is our own, because tables in arrays are to read as `[[registry]]`, the form of every manual, and because what the agent
imports is part of a measured image. Plain members of a table come before its tables; beyond that the order is kept. Comments and
layout of a text that was read are not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, Final

from fastness.formats.errors import TomlError

MAX_BYTES: Final = 256 * 1024
MAX_PARTS: Final = 32
MAX_DEPTH: Final = 48
_LONGEST_PART: Final = 128  # bounds the search below; longer quoted parts are too few in MAX_BYTES to cost anything
_PART: Final = rf"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){{0,{_LONGEST_PART}}}+"|'[^'\n]{{0,{_LONGEST_PART}}}+')"""
_LONG_KEY: Final = re.compile(rf"(?:(?<![A-Za-z0-9_-]){_PART}[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)
_ESCAPES: Final[Mapping[str, str]] = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f",
}  # fmt: skip
_HINT: Final = 'Write TOML 1.0, as in `key = "text"` below a line `[table]`.'


def parse(text: bytes | str) -> dict[str, Any]:
    """Read a document; raises TomlError."""
    characters = _characters(text)
    if _LONG_KEY.search(characters):
        raise TomlError("toml-key", f"a key has more than {MAX_PARTS} parts", hint="Nest tables less deeply.")
    try:
        document = tomllib.loads(characters)
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise TomlError("toml-syntax", f"this is not TOML: {reason}", hint=_HINT) from error
    _measure(document)
    return document


def encode(document: Mapping[str, Any]) -> str:
    """A text that reads back as the same document; raises TomlError for what TOML cannot say."""
    _measure(document)
    return "\n".join(_blocks(document, "")).lstrip("\n")


def _characters(text: bytes | str) -> str:
    if len(text) > MAX_BYTES:
        raise TomlError("toml-too-large", f"the text is longer than {MAX_BYTES} bytes", hint="Split it.")
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise TomlError("toml-encoding", "this is not UTF-8", hint="Save the text as UTF-8.") from error


def _measure(document: Mapping[str, Any]) -> None:
    """Refuse what is too deep or a number of more than 64 bits, without recursion of our own."""
    waiting: list[tuple[Any, int]] = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise TomlError("toml-depth", f"it nests deeper than {MAX_DEPTH} levels", hint="Nest tables less deeply.")
        if isinstance(value, Mapping):
            waiting += [(member, depth + 1) for member in value.values()]
        elif isinstance(value, list | tuple):
            waiting += [(member, depth + 1) for member in value]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TomlError("toml-number", "a whole number has more than 64 bits", hint="Write a smaller number.")


def _blocks(table: Mapping[str, Any], name: str, heading: str = "") -> Iterator[str]:
    """One text for this table, then one for each table below it; all of them end with a line end."""
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping) or _are_tables(value)}
    lines = [
        f"{_key(key)} = {_value(value, _joined(name, key))}\n" for key, value in table.items() if key not in tables
    ]
    if lines or heading.startswith("[[") or not tables:
        yield (f"{heading}\n" if heading else "") + "".join(lines)
    for key, value in tables.items():
        path = _joined(name, key)
        if isinstance(value, Mapping):
            yield from _blocks(value, path, f"[{path}]")
        else:
            for entry in value:
                yield from _blocks(entry, path, f"[[{path}]]")


def _are_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _joined(name: str, key: str) -> str:
    return f"{name}.{_key(key)}" if name else _key(key)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TomlError("toml-value", f"the key {key!r} is not a text", hint="Use texts as keys.")
    return key if _BARE.match(key) else _quoted(key, key)


def _value(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value, path)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(entry, path) for entry in value)}]"
    if isinstance(value, Mapping):
        members = (f"{_key(key)} = {_value(member, _joined(path, key))}" for key, member in value.items())
        return f"{{{', '.join(members)}}}"
    raise TomlError("toml-value", f"TOML has no {type(value).__name__}", path, "Leave the member out.")


def _quoted(text: str, path: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise TomlError("toml-value", "half of a surrogate pair is no character", path, "Write whole characters.")
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c) for c in text) + '"'
