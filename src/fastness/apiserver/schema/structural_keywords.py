"""Keywords of a CRD's schema: which may be used, together with which others, and whether rules are well formed.

Each check is a function from one schema and its place to causes; `keyword_problems` walks all schemas, alternatives included.
What the walk knows of a place: whether it lies in the metadata of a resource, whether a default may stand there, whether an old
value can be found for it (`oldSelf`), and whether rules are to be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.cel.engine import RuleError
from fastness.apiserver.schema.cel.rules import Rule, check_rule, field_path, uses_old
from fastness.apiserver.schema.node import META_FIELDS, build_part
from fastness.kube.errors import Cause

Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_RULES: Final = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class _Place:
    """What the walk knows of where a schema stands."""

    path: str
    root: bool = False
    in_meta: bool = False
    no_default: str | None = None
    uncorrelated: str = ""
    compile_rules: bool = True

    def at(self, path: str, **changes: Any) -> _Place:
        return replace(self, path=path, root=False, **changes)

    def child(self, name: str) -> str:
        return causes.child(self.path, name)


def keyword_problems(schema: Schema, path: str, *, compile_rules: bool) -> list[Cause]:
    """Everything that is wrong with keywords and rules, in one schema and all below it."""
    return list(_walk(schema, _Place(path, root=True, compile_rules=compile_rules)))


def _walk(schema: Schema, place: _Place) -> Iterator[Cause]:
    own = [*_standard(schema, place), *_lists(schema, place), *_maps(schema, place), *_rule_forms(schema, place)]
    below = [cause for part, where in _parts(schema, place) for cause in _walk(part, where)]
    yield from own
    yield from below
    if place.compile_rules and not own and not below:
        yield from _rule_programs(schema, place)


def _parts(schema: Schema, place: _Place) -> Iterator[tuple[Schema, _Place]]:
    extra, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(extra, Mapping):
        where = place.at(place.child("additionalProperties"))
        yield extra, replace(where, no_default="inside of the metadata of an object") if place.in_meta else where
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for name, below in (schema.get("properties") or {}).items():
        where = place.at(causes.key(place.child("properties"), name))
        if atomic:
            where = replace(where, uncorrelated=place.uncorrelated or place.path or "the schema")
        if (place.root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            where = replace(
                where, in_meta=True, no_default=f"in the {name} of the root" if place.root else where.no_default
            )
        yield below, where
    if isinstance(items, Mapping):
        where = place.at(place.child("items"))
        if schema.get("x-kubernetes-list-type") != "map":
            where = replace(where, uncorrelated=place.uncorrelated or place.path or "the schema")
        yield items, where
    for word in ("anyOf", "allOf", "oneOf"):
        for i, below in enumerate(schema.get(word) or ()):
            yield below, place.at(f"{place.child(word)}[{i}]", compile_rules=False)
    if isinstance(schema.get("not"), Mapping):
        yield schema["not"], place.at(place.child("not"), compile_rules=False)


def _standard(schema: Schema, place: _Place) -> Iterator[Cause]:
    kind, extra = schema.get("type"), schema.get("additionalProperties")
    if kind == "null":
        yield causes.forbidden(place.child("type"), "must not be null; nullable says the same")
    if kind and kind not in _TYPES:
        yield causes.not_supported(place.child("type"), kind, _TYPES)
    if "default" in schema and place.no_default is not None:
        yield causes.forbidden(place.child("default"), f"must not be set {place.no_default}")
    for word in _UNSUPPORTED:
        if schema.get(word):
            yield causes.forbidden(place.child(word), f"{word} is not supported")
    if isinstance(schema.get("items"), list):
        yield causes.forbidden(place.child("items"), "must be one schema and not a list")
    if place.in_meta and schema.get("x-kubernetes-embedded-resource"):
        yield causes.forbidden(
            place.child("x-kubernetes-embedded-resource"), "must not be used in the metadata of an object"
        )
    if schema.get("uniqueItems"):
        yield causes.forbidden(
            place.child("uniqueItems"), "must not be true: its cost is quadratic; use a list of type set"
        )
    if extra is not None and extra is not True and schema.get("properties"):
        yield causes.forbidden(place.child("additionalProperties"), "must not be used beside properties")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield causes.invalid(place.child("x-kubernetes-preserve-unknown-fields"), False, "must be true or left out")


def _typed(schema: Schema, place: _Place, word: str, type_: str, allowed: tuple[str, ...]) -> Iterator[Cause]:
    """A list or map type needs the type it speaks of."""
    given, kind = schema.get(word), schema.get("type") or ""
    if given is None:
        return
    if kind != type_:
        detail = f"must be {type_} beside {word}"
        where = place.child("type")
        yield causes.invalid(where, kind, detail) if kind else causes.required(where, detail)
    if given not in allowed:
        yield causes.not_supported(place.child(word), given, allowed)


def _maps(schema: Schema, place: _Place) -> Iterator[Cause]:
    yield from _typed(schema, place, "x-kubernetes-map-type", "object", ("atomic", "granular"))


def _lists(schema: Schema, place: _Place) -> Iterator[Cause]:
    yield from _typed(schema, place, "x-kubernetes-list-type", "array", ("atomic", "map", "set"))
    kind, keys, items = (
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-list-map-keys"),
        schema.get("items"),
    )
    if keys and kind != "map":
        where, detail = place.child("x-kubernetes-list-type"), "must be map beside x-kubernetes-list-map-keys"
        yield causes.required(where, detail) if kind is None else causes.invalid(where, kind, detail)
    if kind in ("set", "map") and isinstance(items, Mapping):
        if items.get("nullable"):
            yield causes.forbidden(f"{place.child('items')}.nullable", f"must not be set for the entries of a {kind}")
        if kind == "set":
            yield from _set_entries(items, place)
    if kind == "map":
        yield from _map_entries(items, keys or (), place)


def _set_entries(items: Schema, place: _Place) -> Iterator[Cause]:
    for of, word in (("array", "x-kubernetes-list-type"), ("object", "x-kubernetes-map-type")):
        given = items.get(word)
        if items.get("type") == of and given != "atomic" and (given is not None or of == "object"):
            yield causes.invalid(f"{place.child('items')}.{word}", given, "must be atomic for the entries of a set")


def _map_entries(items: Any, keys: Any, place: _Place) -> Iterator[Cause]:
    where_keys, where_items = place.child("x-kubernetes-list-map-keys"), place.child("items")
    if not keys:
        yield causes.required(where_keys, "a list of type map needs its keys")
    if items is None:
        yield causes.required(where_items, "a list of type map needs a schema of its entries")
    if not isinstance(items, Mapping):
        return
    if items.get("type") != "object":
        yield causes.invalid(f"{where_items}.type", items.get("type") or "", "must be object in a list of type map")
        return
    properties = items.get("properties") or {}
    for position, name in enumerate(keys):
        if name in keys[:position]:
            yield causes.invalid(where_keys, list(keys), "must not name a key twice")
        if name not in properties:
            yield causes.invalid(where_keys, list(keys), f"must name fields of the entries, and {name!r} is none")
            continue
        where = causes.key(f"{where_items}.properties", name)
        if properties[name].get("type") in ("array", "object"):
            yield causes.invalid(f"{where}.type", properties[name]["type"], "must be a scalar, as it is a key")
        if name not in (items.get("required") or ()) and properties[name].get("default") is None:
            yield causes.required(f"{where}.default", "a key needs a default, or must be required")
        if properties[name].get("nullable"):
            yield causes.forbidden(f"{where}.nullable", "must not be set, as it is a key")


def _rule_forms(schema: Schema, place: _Place) -> Iterator[Cause]:
    for i, spec in enumerate(schema.get(_RULES) or ()):
        where = f"{place.child(_RULES)}[{i}]"
        if not isinstance(spec, Mapping):
            yield causes.invalid(where, spec, "must be an object with a rule")
            continue
        rule, message = str(spec.get("rule") or "").strip(), str(spec.get("message") or "")
        if not rule:
            yield causes.required(f"{where}.rule", "a rule must say something")
        elif message and not message.strip():
            yield causes.invalid(f"{where}.message", message, "must not be blank")
        elif "\n" in message.strip():
            yield causes.invalid(f"{where}.message", message, "must not contain line breaks")
        elif "\n" in rule and not message.strip():
            yield causes.required(f"{where}.message", "a rule of several lines needs a message")
        if spec.get("messageExpression") and not str(spec["messageExpression"]).strip():
            yield causes.required(f"{where}.messageExpression", "must not be blank")
        if spec.get("reason") is not None and spec["reason"] not in _REASONS:
            yield causes.not_supported(f"{where}.reason", spec["reason"], _REASONS)
        yield from _rule_path(schema, str(spec.get("fieldPath") or ""), f"{where}.fieldPath")


def _rule_path(schema: Schema, path: str, where: str) -> Iterator[Cause]:
    if not path:
        return
    if not path.strip() or "\n" in path:
        yield causes.invalid(where, path, "must be one line and not blank")
        return
    try:
        if path[0] not in ".[":
            raise RuleError("it must start with . or [")
        field_path(build_part({**schema, _RULES: []}), path)
    except RuleError as error:
        yield causes.invalid(where, path, f"must be a path of the schema: {error}")


def _rule_programs(schema: Schema, place: _Place) -> Iterator[Cause]:
    """Rules that do not compile, or that compare where nothing can be compared."""
    if not schema.get(_RULES):
        return
    node = build_part({**schema, _RULES: []})
    is_object = place.root or bool(schema.get("x-kubernetes-embedded-resource"))
    for i, spec in enumerate(schema[_RULES]):
        where = f"{place.child(_RULES)}[{i}]"
        plain = {name: value for name, value in spec.items() if name not in ("messageExpression", "fieldPath")}
        for word, tried in (
            ("rule", plain),
            ("messageExpression", {**plain, "messageExpression": spec.get("messageExpression")}),
        ):
            try:
                Rule(node, tried, root=is_object)
                check_rule(node, tried, root=is_object)
            except RuleError as error:
                yield causes.invalid(f"{where}.{word}", spec.get(word), f"compilation failed: {error}")
                break
        if not uses_old(spec["rule"]):
            if spec.get("optionalOldSelf") is not None:
                yield causes.invalid(
                    f"{where}.optionalOldSelf", spec["optionalOldSelf"], "the rule does not use oldSelf"
                )
        elif place.uncorrelated:
            detail = f"oldSelf has no meaning within {place.uncorrelated}, where old values cannot be found"
            yield causes.invalid(f"{where}.rule", spec["rule"], detail)
