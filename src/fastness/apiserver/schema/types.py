"""What a typed decoder refuses: values of the wrong JSON type, and numbers that do not fit.

Native kinds of Kubernetes are decoded into Go structures before anything else looks at them. A null is "not set" there, a whole
number may not be written with a fraction, and texts of the formats `byte` and `date-time` are parsed while decoding.
"""

from __future__ import annotations

from typing import Any

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.accept import INT64, INT_RANGES
from fastness.apiserver.schema.formats import check_of
from fastness.apiserver.schema.node import Node
from fastness.kube.errors import Cause


def type_errors(root: Node, obj: Any) -> list[Cause]:
    """Every value that does not decode, with the path of its field."""
    problems: list[Cause] = []
    _walk(root, obj, "", problems)
    return problems


def _walk(node: Node, value: Any, path: str, problems: list[Cause]) -> None:
    if value is None:
        return
    problem = _problem(node, value)
    if problem is not None:
        problems.append(causes.type_invalid(path, value, problem))
    elif type(value) is dict:
        for name, below in value.items():
            schema = node.child(name)
            if schema is not None:
                _walk(schema, below, causes.child(path, name), problems)
    elif type(value) is list and node.items is not None:
        for i, entry in enumerate(value):
            _walk(node.items, entry, f"{path}[{i}]", problems)


def _problem(node: Node, value: Any) -> str | None:
    if node.int_or_string:
        return None if type(value) in (int, str) else "must be a whole number or a string"
    allowed = {entry.get("type") for word in ("oneOf", "anyOf") for entry in node.schema.get(word) or ()}
    if not node.type and allowed and None not in allowed:
        return None if any(_is(kind, value) for kind in allowed) else f"must be of type {' or '.join(sorted(allowed))}"
    if not node.type:
        return None
    if not _is(node.type, value):
        return f"must be of type {node.type}"
    if node.type == "integer":
        least, most = INT_RANGES.get(node.schema.get("format") or "", INT64)
        return None if least <= value <= most else f"does not fit into {node.schema.get('format') or 'int64'}"
    name = node.schema.get("format") or ""
    check = check_of(name) if name in ("byte", "date-time") else None
    if check is not None and value and not check(value):
        return f"must be of the format {name}"
    return None


def _is(kind: str | None, value: Any) -> bool:
    match kind:
        case "object":
            return type(value) is dict
        case "array":
            return type(value) is list
        case "string":
            return type(value) is str
        case "boolean":
            return type(value) is bool
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)
    return True
