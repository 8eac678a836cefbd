"""How a value looks to a rule: typed by its schema, with names that CEL can spell.

* `integer` is an int, `number` a double (also when it is written without a point), `x-kubernetes-int-or-string` whatever it is;
* `date-time` and `date` are timestamps, `duration` a duration, `byte` bytes;
* a field's name is escaped where CEL could not write it: `foo-bar` as `foo__dash__bar`, `a.b` as `a__dot__b`, `namespace` as
  `__namespace__`; keys of maps stay as they are;
* a rule sees only what the schema specifies; of the metadata of a root or an embedded resource only the name.

`Presentation` is compiled per node and hands the value through untouched where nothing would change.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from fastness.apiserver.schema.cel.engine import duration, timestamp
from fastness.apiserver.schema.formats import parse_duration
from fastness.apiserver.schema.node import Node

RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPED: Final = re.compile(r"__|[./-]")
_FORMATS: Final = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_SCALARS: Final = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
MAX_PATHS: Final = 2000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND: Final = dt.timedelta(seconds=1)
_META_NODE: Final = Node({"type": "object"})
_TEXT_NODE: Final = Node({"type": "string"})
_META_NODE.properties = {"name": _TEXT_NODE, "generateName": _TEXT_NODE}


def escape(name: str) -> str | None:
    """The name as CEL writes it, or None when CEL cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


def type_name(node: Node) -> str | None:
    """The type of a node's values, or None when rules cannot see them."""
    if node.int_or_string:
        return "dyn"
    if node.type == "string":
        return _FORMATS.get(node.schema.get("format") or "", "string")
    if node.type == "array":
        below = type_name(node.items) if node.items is not None else None
        return None if below is None else f"list({below})"
    if node.type == "object":
        if node.extra is not None:
            below = type_name(node.extra)
            return None if below is None else f"map({below})"
        return "dyn"
    return _SCALARS.get(node.type)


def visible(node: Node, *, root: bool = False) -> dict[str, tuple[str, Node]]:
    """The fields of an object that rules see: by escaped name, the real name and the node."""
    fields = dict(node.properties)
    if root or node.embedded:
        fields = {**fields, "apiVersion": _TEXT_NODE, "kind": _TEXT_NODE, "metadata": _META_NODE}
    out: dict[str, tuple[str, Node]] = {}
    for name, below in fields.items():
        escaped = escape(name)
        if escaped is not None and type_name(below) is not None:
            out[escaped] = (name, below)
    return out


def typed_paths(node: Node, *, root: bool = False) -> dict[str, str]:
    """The types of all fields below an object, by path in escaped names."""
    paths: dict[str, str] = {}
    waiting = [("", node, root)]
    while waiting and len(paths) < MAX_PATHS:
        path, at, top = waiting.pop()
        for escaped, (_, below) in visible(at, root=top).items():
            where = f"{path}.{escaped}" if path else escaped
            paths[where] = type_name(below) or "dyn"
            if below.type == "object" and below.extra is None and not below.int_or_string:
                waiting.append((where, below, False))
    return paths


Present = Callable[[Any], Any]


def presenter(node: Node, *, root: bool = False, only: Iterable[str] | None = None) -> Present:
    """A function from a value to what a rule sees; `only` names (escaped) the fields the rule asks for."""
    made = _presenter(node, root, None if only is None else frozenset(only))
    return made or (lambda value: value)


def _presenter(node: Node, root: bool, only: frozenset[str] | None) -> Present | None:
    """None means: as it is."""
    if node.int_or_string:
        return None
    if node.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if node.type == "string":
        convert = _CONVERSIONS.get(node.schema.get("format") or "")
        return None if convert is None else (lambda value: convert(value) if type(value) is str else value)
    if node.type == "array" and node.items is not None:
        below = _presenter(node.items, False, None)
        return None if below is None else (lambda value: [below(v) for v in value] if type(value) is list else value)
    if node.type == "object" and node.extra is not None:
        each = _presenter(node.extra, False, None)
        if each is None:
            return None
        return lambda value: {k: each(v) for k, v in value.items()} if type(value) is dict else value
    if node.type == "object":
        return _object_presenter(node, root, only)
    return None


def _object_presenter(node: Node, root: bool, only: frozenset[str] | None) -> Present:
    fields = [
        (name, escaped, _presenter(below, False, None))
        for escaped, (name, below) in visible(node, root=root).items()
        if only is None or escaped in only
    ]

    def present(value: Any) -> Any:
        if type(value) is not dict:
            return value
        return {
            escaped: value[name] if below is None else below(value[name])
            for name, escaped, below in fields
            if name in value
        }

    return present


@lru_cache(maxsize=4096)
def _timestamp(text: str) -> Any:
    # the format admits a small t and z, the parser behind rules does not: such a text stays one, and a rule about time fails
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)", text)
    if match is None:
        return text
    try:
        moment = dt.datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    except ValueError:
        # year 0 cannot be told to the library: it stays a text, on which a rule about time fails
        return text
    return timestamp((moment - _EPOCH) // _SECOND, int(f"{match[2] or '0':0<9}"))


def _date(text: str) -> Any:
    return _timestamp(f"{text}T00:00:00Z")


def _duration(text: str) -> Any:
    nano = parse_duration(text)
    return text if nano is None else duration(nano)


def _bytes(text: str) -> Any:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


_CONVERSIONS: Final[dict[str, Present]] = {
    "date-time": _timestamp, "date": _date, "duration": _duration, "byte": _bytes,
}  # fmt: skip
