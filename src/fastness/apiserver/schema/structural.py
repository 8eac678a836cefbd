"""What an API server refuses in the schema of a CustomResourceDefinition.

A schema must be *structural*: every field has its type in one place, outside of the alternatives, so that pruning, defaulting and
ownership are decided by the schema alone. The checks come in the order of Kubernetes:

1. structure: types, what may stand inside of `allOf`, `anyOf`, `oneOf` and `not`, what may be said about metadata (here);
2. defaults must be valid themselves (`structural_defaults.py`), judged only if 1 found nothing;
3. keywords, list and map types, the form of rules (`structural_keywords.py`), always;
4. rules must compile, judged only if 1 and 2 found nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.node import META_FIELDS
from fastness.apiserver.schema.patterns import problem as pattern_problem
from fastness.apiserver.schema.structural_defaults import default_problems
from fastness.apiserver.schema.structural_keywords import keyword_problems
from fastness.kube.errors import Cause

Schema = Mapping[str, Any]

INT_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
_ALTERNATIVES: Final = ("anyOf", "allOf", "oneOf")
_OUTSIDE_ONLY: Final = (
    "type", "default", "title", "description", "nullable", "additionalProperties", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
    "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip
_PLACES: Final = {"root": "at the root", "items": "for the entries of an array", "field": "for a field of an object"}
_MAPPINGS: Final = ("properties", "items", "not")
_LISTS: Final = (*_ALTERNATIVES, "x-kubernetes-validations")


def structural_problems(schema: Mapping[str, Any], path: str = "") -> list[Cause]:
    """Everything that makes the schema unfit for a CRD; fields are below `path`, that of `openAPIV3Schema`."""
    malformed = list(_malformed(schema, path))
    # Alone: every later check walks the schema and relies on its parts being of the right JSON type.
    if malformed:
        return malformed
    problems = [*_structure(schema, "root", path), *_completeness(schema, schema, path, path)]
    if not problems:
        problems = default_problems(schema, path)
    if schema.get("nullable"):
        problems.append(causes.forbidden(causes.child(path, "nullable"), "must not be set at the root"))
    problems += keyword_problems(schema, path, compile_rules=not problems)
    return list(dict.fromkeys(problems))


def _malformed(schema: Any, path: str) -> Iterator[Cause]:
    """Parts of a schema that are not even of the right JSON type."""
    if not isinstance(schema, Mapping):
        yield causes.invalid(path, schema, "must be a schema")
        return
    for word in (*_MAPPINGS, *_LISTS):
        kind = Mapping if word in _MAPPINGS else list
        if (
            word in schema
            and not isinstance(schema[word], kind)
            and not (word == "items" and isinstance(schema[word], list))
        ):
            yield causes.invalid(causes.child(path, word), schema[word], "is of the wrong JSON type")
    for name in ("type", "format", "pattern", "x-kubernetes-list-type", "x-kubernetes-map-type"):
        if not isinstance(schema.get(name, ""), str):
            yield causes.invalid(causes.child(path, name), schema[name], "must be a string")
    for below, where in _below(schema, path):
        yield from _malformed(below, where)


def _below(schema: Schema, path: str) -> Iterator[tuple[Any, str]]:
    """Every schema directly inside of a schema, with its path."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, below in properties.items():
            yield below, causes.key(causes.child(path, "properties"), name)
    for word in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield schema[word], causes.child(path, word)
    for word in _ALTERNATIVES:
        if isinstance(schema.get(word), list):
            for i, below in enumerate(schema[word]):
                yield below, f"{causes.child(path, word)}[{i}]"


def _structure(schema: Schema, place: str, path: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    extra = schema.get("additionalProperties")
    items = schema.get("items")
    if kind == "array" and items is None:
        yield causes.required(causes.child(path, "items"), "an array must say what it holds")
    if isinstance(items, Mapping):
        yield from _structure(items, "items", causes.child(path, "items"))
    for name, below in (schema.get("properties") or {}).items():
        yield from _structure(below, "field", causes.key(causes.child(path, "properties"), name))
    if extra is not None and place == "root":
        yield causes.forbidden(causes.child(path, "additionalProperties"), "must not be used at the root")
    if isinstance(extra, Mapping):
        yield from _structure(extra, "field", causes.child(path, "additionalProperties"))
    if schema.get("x-kubernetes-int-or-string"):
        for word in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(word):
                yield causes.invalid(
                    causes.child(path, word), True, "must not be set beside x-kubernetes-int-or-string"
                )
    yield from _values(schema, path, skip_any_of=_is_int_or_string(schema))
    yield from _type(schema, kind, place, path)
    yield from _metadata(schema, place, path)


def _is_int_or_string(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string")) and tuple(schema.get("anyOf") or ()) == INT_OR_STRING


def _type(schema: Schema, kind: str, place: str, path: str) -> Iterator[Cause]:
    where = causes.child(path, "type")
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object for an embedded resource"
        yield causes.invalid(where, kind, detail) if kind else causes.required(where, detail)
    elif not kind and not free:
        yield causes.required(where, f"must not be empty {_PLACES[place]}")
    if embedded and schema.get("additionalProperties") is not None:
        yield causes.forbidden(causes.child(path, "additionalProperties"), "must not be used for an embedded resource")
    if place == "root" and kind and kind != "object":
        yield causes.invalid(where, kind, "must be object at the root")
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = "must not be empty for an embedded resource whose unknown fields are pruned"
        yield causes.required(causes.child(path, "properties"), detail)


def _metadata(schema: Schema, place: str, path: str) -> Iterator[Cause]:
    properties = schema.get("properties") or {}
    if place != "root" and not schema.get("x-kubernetes-embedded-resource"):
        return
    for name in sorted(META_FIELDS & properties.keys()):
        where = causes.key(causes.child(path, "properties"), name)
        allowed = "object" if name == "metadata" else "string"
        if (properties[name].get("type") or "") != allowed:
            yield causes.invalid(causes.child(where, "type"), properties[name].get("type") or "", f"must be {allowed}")
        if name == "metadata" and place == "root" and not _only_restricts_names(properties[name]):
            yield causes.forbidden(where, "must restrict nothing but name and generateName, the rest is given")


def _only_restricts_names(metadata: Schema) -> bool:
    allowed = {"type", "properties", "default"}
    return metadata.keys() <= allowed and (metadata.get("properties") or {}).keys() <= {"name", "generateName"}


def _values(schema: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[Cause]:
    """What a schema says in its alternatives, and its pattern."""
    marked = bool(schema.get("x-kubernetes-int-or-string"))
    for word in _ALTERNATIVES:
        if word == "anyOf" and skip_any_of:
            continue
        for i, below in enumerate(schema.get(word) or ()):
            first = marked and word == "allOf" and i == 0 and tuple(below.get("anyOf") or ()) == INT_OR_STRING
            yield from _nested(below, f"{causes.child(path, word)}[{i}]", skip_any_of=first)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], causes.child(path, "not"))
    if schema.get("pattern"):
        wrong = pattern_problem(schema["pattern"])
        if wrong is not None:
            where = causes.child(path, "pattern")
            yield causes.invalid(where, schema["pattern"], f"must be a regular expression: {wrong}")


def _nested(schema: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[Cause]:
    yield from _values(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], causes.child(path, "items"))
    for name, below in (schema.get("properties") or {}).items():
        where = causes.key(causes.child(path, "properties"), name)
        if name == "metadata":
            yield causes.forbidden(where, "must not be specified inside of an alternative")
        yield from _nested(below, where)
    for word in _OUTSIDE_ONLY:
        if schema.get(word):
            yield causes.forbidden(causes.child(path, word), "must not be set inside of an alternative")


def _completeness(values: Schema, schema: Schema | None, path: str, value_path: str) -> Iterator[Cause]:
    """Whatever an alternative says about a field, the structure must have that field."""
    nested = [(below, f"{causes.child(value_path, word)}[{i}]") for word in _ALTERNATIVES
              for i, below in enumerate(values.get(word) or ())]  # fmt: skip
    if values.get("not") is not None:
        nested.append((values["not"], causes.child(value_path, "not")))
    for below, where in nested:
        yield from _nested_completeness(below, schema, path, where)


def _nested_completeness(values: Schema, schema: Schema | None, path: str, value_path: str) -> Iterator[Cause]:
    if schema is None:
        yield causes.required(path, f"because {value_path} speaks of it")
        return
    yield from _completeness(values, schema, path, value_path)
    if isinstance(values.get("items"), Mapping):
        items = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
        yield from _nested_completeness(
            values["items"], items, causes.child(path, "items"), causes.child(value_path, "items")
        )
    for name, below in (values.get("properties") or {}).items():
        where = causes.key(causes.child(path, "properties"), name)
        value_where = causes.key(causes.child(value_path, "properties"), name)
        yield from _nested_completeness(below, (schema.get("properties") or {}).get(name), where, value_where)
