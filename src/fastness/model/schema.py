"""A small vocabulary for structural schemas.

Each function returns a fresh OpenAPI v3 fragment as Kubernetes accepts it in a CRD: every node has a type (or is int-or-string,
or preserves unknown fields), list semantics are explicit where they matter for server-side apply, and rules that a type cannot
express are CEL in `x-kubernetes-validations`. Keyword arguments pass straight into the fragment (`pattern=`, `minLength=`,
`maximum=` …), so that the vocabulary stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Fragment = dict[str, Any]


def string(description: str = "", **rules: Any) -> Fragment:
    """A string; `pattern`, `minLength`, `maxLength`, `format` as rules."""
    return _node("string", description, rules)


def integer(description: str = "", **rules: Any) -> Fragment:
    """An integer; `minimum`, `maximum`, `format` as rules."""
    return _node("integer", description, rules)


def number(description: str = "", **rules: Any) -> Fragment:
    """A number that may have a fraction."""
    return _node("number", description, rules)


def boolean(description: str = "", **rules: Any) -> Fragment:
    """A boolean."""
    return _node("boolean", description, rules)


def enum(*values: str, description: str = "", **rules: Any) -> Fragment:
    """A string out of a closed set."""
    return _node("string", description, {"enum": list(values), **rules})


def timestamp(description: str = "", **rules: Any) -> Fragment:
    """An RFC 3339 time."""
    return _node("string", description, {"format": "date-time", **rules})


def duration(description: str = "", **rules: Any) -> Fragment:
    """A Go duration such as `15m` or `1h30m`."""
    return _node("string", description, {"pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", **rules})


def int_or_string(description: str = "", **rules: Any) -> Fragment:
    """An integer or a string such as `30%`."""
    return {
        **({"description": description} if description else {}),
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        **rules,
    }


def obj(
    properties: Mapping[str, Fragment] | None = None,
    description: str = "",
    *,
    required: Sequence[str] = (),
    **rules: Any,
) -> Fragment:
    """An object with known fields."""
    fragment = _node("object", description, rules)
    if properties:
        fragment["properties"] = dict(properties)
    if required:
        fragment["required"] = list(required)
    return fragment


def mapping(values: Fragment, description: str = "", **rules: Any) -> Fragment:
    """An object with free keys and values of one shape."""
    return _node("object", description, {"additionalProperties": values, **rules})


def anything(description: str = "", **rules: Any) -> Fragment:
    """An object that keeps whatever it holds: for documents with a schema of their own."""
    return _node("object", description, {"x-kubernetes-preserve-unknown-fields": True, **rules})


def array(items: Fragment, description: str = "", **rules: Any) -> Fragment:
    """A list that is replaced as a whole (atomic)."""
    return _node("array", description, {"items": items, **rules})


def list_set(items: Fragment, description: str = "", **rules: Any) -> Fragment:
    """A list of distinct scalars whose entries are owned one by one."""
    return _node("array", description, {"items": items, "x-kubernetes-list-type": "set", **rules})


def list_map(items: Fragment, keys: Sequence[str], description: str = "", **rules: Any) -> Fragment:
    """A list of objects that are told apart, and owned, by their key fields."""
    return _node(
        "array",
        description,
        {"items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), **rules},
    )


def rule(expression: str, message: str, **extra: Any) -> Fragment:
    """One CEL rule, for `validations=[…]` through `rules(...)`."""
    return {"rule": expression, "message": message, **extra}


def immutable(fragment: Fragment, message: str = "Value is immutable") -> Fragment:
    """The same field, not to be changed once it is set."""
    known = list(fragment.get("x-kubernetes-validations", ()))
    return {**fragment, "x-kubernetes-validations": [*known, rule("self == oldSelf", message)]}


def with_rules(fragment: Fragment, *rules: Fragment) -> Fragment:
    """The same fragment with CEL rules added."""
    known = list(fragment.get("x-kubernetes-validations", ()))
    return {**fragment, "x-kubernetes-validations": [*known, *rules]}


def label_selector(description: str = "") -> Fragment:
    """A LabelSelector as Kubernetes has it."""
    expression = obj(
        {
            "key": string(),
            "operator": string(),
            "values": array(string(), **{"x-kubernetes-list-type": "atomic"}),
        },
        required=("key", "operator"),
    )
    return obj(
        {
            "matchLabels": mapping(string()),
            "matchExpressions": array(expression, **{"x-kubernetes-list-type": "atomic"}),
        },
        description,
        **{"x-kubernetes-map-type": "atomic"},
    )


def conditions(description: str = "", **rules: Any) -> Fragment:
    """The conditions of a status, owned one by one by type."""
    condition = obj(
        {
            "type": string(maxLength=316),
            "status": enum("True", "False", "Unknown"),
            "reason": string(maxLength=1024),
            "message": string(maxLength=32768),
            "lastTransitionTime": timestamp(),
            "observedGeneration": integer(format="int64", minimum=0),
        },
        required=("type", "status"),
    )
    return list_map(condition, ("type",), description, **rules)


def _node(kind: str, description: str, rules: Mapping[str, Any]) -> Fragment:
    return {"type": kind, **({"description": description} if description else {}), **rules}
