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

ATOMIC: Fragment = {"x-kubernetes-list-type": "atomic"}
"""For a list that one manager owns as a whole."""
KEEP: Fragment = {"x-kubernetes-preserve-unknown-fields": True}
"""For an object that keeps fields beside the known ones."""

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
SHA256 = r"^sha256:[0-9a-f]{64}$"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


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
    return _node("string", description, {"enum": [str(value) for value in values], **rules})


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


def quantity(description: str = "", **rules: Any) -> Fragment:
    """An amount such as `64`, `512Gi` or `100m`."""
    return int_or_string(description, pattern=QUANTITY, **rules)


def object_name(description: str = "", **rules: Any) -> Fragment:
    """The name of another object (a DNS subdomain)."""
    return _node("string", description, {"pattern": DNS_SUBDOMAIN, "maxLength": 253, **rules})


def sha256(description: str = "", **rules: Any) -> Fragment:
    """A digest that carries its algorithm: `sha256:<64 hex>`."""
    return _node("string", description, {"pattern": SHA256, "maxLength": 71, **rules})


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
    return _node("object", description, {**KEEP, **rules})


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
    rules = list(fragment.get("x-kubernetes-validations", ()))
    return {**fragment, "x-kubernetes-validations": [*rules, rule("self == oldSelf", message)]}


def with_rules(fragment: Fragment, *rules: Fragment) -> Fragment:
    """The same fragment with CEL rules added."""
    every = [*fragment.get("x-kubernetes-validations", ()), *rules]
    # An API server drops an empty list, and applying the definition again would change it for ever.
    return {**fragment, "x-kubernetes-validations": every} if every else fragment


def singleton(fragment: Fragment, name: str) -> Fragment:
    """The same root schema for a kind of which only the object called `name` may exist."""
    return with_rules(fragment, rule(f"self.metadata.name == '{name}'", f"only one object may exist, named {name!r}"))


def immutable_once_set(fragment: Fragment, *names: str) -> Fragment:
    """The same object with optional fields that, once set, can neither change nor go away."""
    return with_rules(
        fragment,
        *(
            rule(f"!has(oldSelf.{name}) || (has(self.{name}) && self.{name} == oldSelf.{name})", f"{name} is immutable")
            for name in names
        ),
    )


def status_stays(fragment: Fragment) -> Fragment:
    """The same root schema whose status cannot be dropped: rules inside it would not see that, and facts would be lost."""
    return with_rules(fragment, rule("!has(oldSelf.status) || has(self.status)", "status cannot be removed"))


def exactly_one_of(fragment: Fragment, *names: str) -> Fragment:
    """The same object with a union: one of the named fields is set, and only one."""
    choice = ", ".join(f"has(self.{name})" for name in names)
    return with_rules(
        fragment, rule(f"[{choice}].filter(x, x).size() == 1", f"exactly one of {', '.join(names)} must be set")
    )


def label_selector(description: str = "", **rules: Any) -> Fragment:
    """A LabelSelector as Kubernetes has it."""
    expression = obj(
        {
            "key": string("The label that the requirement looks at."),
            "operator": string("How the label relates to the values: In, NotIn, Exists or DoesNotExist."),
            "values": array(
                string(),
                "The values for In and NotIn; empty for Exists and DoesNotExist.",
                **ATOMIC,
            ),
        },
        "One requirement on one label.",
        required=("key", "operator"),
    )
    return obj(
        {
            "matchLabels": mapping(string(), "Labels that must be there with exactly these values."),
            "matchExpressions": array(expression, "Requirements that must all hold.", **ATOMIC),
        },
        description,
        **{"x-kubernetes-map-type": "atomic", **rules},
    )


def conditions(description: str = "", **rules: Any) -> Fragment:
    """The conditions of a status, owned one by one by type."""
    condition = obj(
        {
            "type": string("What the condition is about, in CamelCase.", maxLength=316),
            "status": enum("True", "False", "Unknown", description="Whether it holds."),
            "reason": string("Why, as one CamelCase word for programs.", maxLength=1024),
            "message": string("Why, as a sentence for people.", maxLength=32768),
            "lastTransitionTime": timestamp("When the status last changed."),
            "observedGeneration": integer(
                "The generation of the object that the condition speaks of.", format="int64", minimum=0
            ),
        },
        "One observation about the object.",
        required=("type", "status"),
    )
    return list_map(condition, ("type",), description or "What is known about the object, by type.", **rules)


def _node(kind: str, description: str, rules: Mapping[str, Any]) -> Fragment:
    return {"type": kind, **({"description": description} if description else {}), **rules}
