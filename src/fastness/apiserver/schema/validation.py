"""The exact way to say no: every problem of an object's structure, with the field and the reason an API server gives.

This walk runs only for objects that the fast way refused. It follows the order and the habits of Kubernetes' validator:

* a null is judged by type and `enum` alone; wrong types do not stop the other checks of the same value;
* of `anyOf` and `oneOf` alternatives that all fail, the one that came furthest is reported, beside one problem at `<nil>`;
* a text reports its first problem of maximum length, minimum length and pattern;
* on update a place that did not change keeps its problems to itself (ratcheting), where the old value can be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.accept import EXACT, FLOAT32_MAX, INT64, INT_RANGES
from fastness.apiserver.schema.correlation import OldEntries, old_field, same
from fastness.apiserver.schema.formats import check_of
from fastness.apiserver.schema.node import MISSING, Node
from fastness.apiserver.schema.patterns import matcher
from fastness.kube.errors import Cause


def problems(root: Node, obj: Any, old: Any = MISSING) -> list[Cause]:
    """All structural problems of the object, in the order they are found."""
    return _place(root, obj, "", old).causes


class _Result:
    """Problems of one value and how many checks it passed, by which the closest alternative is chosen."""

    __slots__ = ("causes", "passed")

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.passed = 0

    def add(self, cause: Cause) -> None:
        if cause not in self.causes:
            self.causes.append(cause)

    def merge(self, other: _Result) -> None:
        for cause in other.causes:
            self.add(cause)
        self.passed += other.passed


def _place(node: Node, value: Any, path: str, old: Any) -> _Result:
    """Judge a value where it stands in the structure."""
    result = _judge(node, node.schema, value, path, old, nested=False)
    if result.causes and old is not MISSING and same(value, old):
        return _Result()
    return result


def _judge(node: Node, schema: Mapping[str, Any], value: Any, path: str, old: Any, *, nested: bool) -> _Result:
    """Judge a value by one schema: that of its node, or one of the alternatives nested in it."""
    result = _Result()
    types = _types(node, schema, nested)
    if value is None:
        if types and not (schema.get("nullable") and not nested):
            result.add(causes.type_invalid(path, None, f"must be of type {' or '.join(types)}, not null"))
        else:
            result.passed += 1
        _enum(schema, value, path, result)
        return result
    if types:
        result.passed += 1
        if _fits(value, types):
            result.passed += 1
        else:
            detail = f"{path or 'the object'} must be of type {' or '.join(types)}, not {_type_name(value)}"
            result.add(causes.type_invalid(path, value, detail))
    result.passed += 1
    _alternatives(node, schema, value, path, old, result)
    if type(value) is str:
        _text(schema, value, path, result, types)
    elif type(value) is int or type(value) is float:
        _number(schema, value, path, result, types)
    elif type(value) is list:
        _array(node, schema, value, path, old, result, nested)
    result.passed += 1
    _enum(schema, value, path, result)
    if type(value) is dict:
        _object(node, schema, value, path, old, result, nested)
        result.passed += 1
    result.passed += 1
    return result


def _types(node: Node, schema: Mapping[str, Any], nested: bool) -> list[str]:
    if not nested:
        return ["integer", "string"] if node.int_or_string else [node.type] if node.type else []
    return [schema["type"]] if schema.get("type") else []


def _type_name(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            # what does not fit into int64 is decoded as a float
            return "integer" if INT64[0] <= value <= INT64[1] else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def _fits(value: Any, types: list[str]) -> bool:
    name = _type_name(value)
    if name in types or (name == "integer" and "number" in types):
        return True
    return name == "number" and "integer" in types and abs(value) <= EXACT and float(value).is_integer()


def _enum(schema: Mapping[str, Any], value: Any, path: str, result: _Result) -> None:
    allowed = schema.get("enum")
    if allowed and (value is None or not any(same(value, entry) for entry in allowed)):
        result.add(causes.not_supported(path, value, allowed))


def _text(schema: Mapping[str, Any], value: str, path: str, result: _Result, types: list[str]) -> None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        result.add(causes.too_long(path, longest))
    elif shortest is not None and len(value) < shortest:
        result.add(causes.invalid(path, value, f"{path} must be at least {shortest} characters long"))
    elif pattern and not matcher(pattern)(value):
        result.add(causes.invalid(path, value, f"{path} must match '{pattern}'"))
    result.passed += 1
    name = schema.get("format") or ""
    check = check_of(name) if types in ([], ["string"]) else None
    if check is not None:
        result.passed += 1
        if not check(value):
            result.add(causes.type_invalid(path, value, f"{path} must be of the format {name}"))


def _number(schema: Mapping[str, Any], value: float, path: str, result: _Result, types: list[str]) -> None:
    _range(schema, value, path, result, types)
    low, high, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if type(value) is int:
        # Kubernetes compares whole numbers with the whole part of a limit
        low, high, factor = (int(n) if n is not None else None for n in (low, high, factor))
    if factor is not None and (factor <= 0 or not _divides(factor, value)):
        result.add(causes.invalid(path, value, f"{path} must be a multiple of {schema['multipleOf']}"))
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        word = "greater than" if schema.get("exclusiveMinimum") else "at least"
        result.add(causes.invalid(path, value, f"{path} must be {word} {low}"))
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        word = "less than" if schema.get("exclusiveMaximum") else "at most"
        result.add(causes.invalid(path, value, f"{path} must be {word} {high}"))
    result.passed += 2


def _divides(factor: float, value: float) -> bool:
    if type(value) is int:
        return value % int(factor) == 0
    quotient = value / factor if factor >= 1 else 1 / factor * value
    nearest = round(quotient)
    return abs(quotient - nearest) < 1e-9 * max(1.0, abs(quotient))


def _range(schema: Mapping[str, Any], value: float, path: str, result: _Result, types: list[str]) -> None:
    name = schema.get("format") or ""
    if types == ["integer"]:
        least, most = INT_RANGES.get(name, INT64)
        if not least <= value <= most or (type(value) is float and not value.is_integer()):
            result.add(causes.invalid("", value, f"{path} must be a whole number in the range of {name or 'int64'}"))
    elif types == ["number"] and name == "float" and abs(value) > FLOAT32_MAX:
        result.add(causes.invalid("", value, f"{path} must be a number in the range of float"))


def _array(
    node: Node, schema: Mapping[str, Any], value: list[Any], path: str, old: Any, result: _Result, nested: bool
) -> None:
    below = node.items
    if below is not None and (not nested or isinstance(schema.get("items"), Mapping)):
        entries = OldEntries(node, old)
        for i, entry in enumerate(value):
            was, where = entries.of(entry), f"{path}[{i}]"
            result.merge(
                _nested(below, schema["items"], entry, where, was) if nested else _place(below, entry, where, was)
            )
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        result.add(causes.invalid(path, len(value), f"{path} must have at least {least} entries"))
    if most is not None and len(value) > most:
        result.add(causes.too_many(path, len(value), most))
    if schema.get("uniqueItems") and any(same(a, b) for i, a in enumerate(value) for b in value[:i]):
        result.add(causes.invalid(path, value, f"{path} must not hold an entry twice"))
    result.passed += 2


def _object(
    node: Node, schema: Mapping[str, Any], value: dict[str, Any], path: str, old: Any, result: _Result, nested: bool
) -> None:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        result.add(causes.invalid(path, len(value), f"{path} must have at least {least} fields"))
    if most is not None and len(value) > most:
        result.add(causes.too_many(path, len(value), most))
    specified = schema.get("properties") or {}
    if schema.get("additionalProperties") is False:
        for name in value.keys() - specified.keys():
            result.add(causes.invalid(path, name, f"{path}.{name} is not an allowed field"))
    for name, below, entry in _fields(node, schema, value, specified, nested):
        where, was = causes.child(path, name), old_field(node, old, name)
        if not path and name in ("apiVersion", "kind"):
            was = MISSING
        if nested:
            result.merge(_nested(below, specified.get(name) or schema["additionalProperties"], entry, where, was))
        else:
            result.merge(_place(below, entry, where, was))
    for name in schema.get("required") or ():
        if name not in value:
            result.add(causes.required(causes.child(path, name)))


def _fields(
    node: Node, schema: Mapping[str, Any], value: dict[str, Any], specified: Mapping[str, Any], nested: bool
) -> Iterable[tuple[str, Node, Any]]:
    """The fields of an object that the schema judges, each with its node."""
    open_end = isinstance(schema.get("additionalProperties"), Mapping)
    for name, entry in value.items():
        below = node.child(name)
        if below is None and nested and name in specified:
            below = Node(specified[name])
        if below is not None and (name in specified or open_end):
            yield name, below, entry


def _nested(node: Node, schema: Mapping[str, Any], value: Any, path: str, old: Any) -> _Result:
    result = _judge(node, schema, value, path, old, nested=True)
    if result.causes and old is not MISSING and same(value, old):
        return _Result()
    return result


def _alternatives(node: Node, schema: Mapping[str, Any], value: Any, path: str, old: Any, result: _Result) -> None:
    def judge(nested: Mapping[str, Any]) -> _Result:
        return _judge(node, nested, value, path, old, nested=True)

    if schema.get("anyOf"):
        _any_of([judge(s) for s in schema["anyOf"]], path, result)
    if schema.get("oneOf"):
        _one_of([judge(s) for s in schema["oneOf"]], path, result)
    every = [s for s in schema.get("allOf") or () if "$ref" not in s]
    if every:
        results = [judge(s) for s in every]
        for alternative in results:
            result.merge(alternative)
        if any(alternative.causes for alternative in results):
            result.add(causes.invalid("", "", f"{path!r} must be valid by every schema of allOf"))
    if schema.get("not") is not None and not judge(schema["not"]).causes:
        result.add(causes.invalid("", "", f"{path!r} must not be valid by the schema of not"))
    result.passed += 1


def _any_of(results: list[_Result], path: str, result: _Result) -> None:
    valid = next((alternative for alternative in results if not alternative.causes), None)
    if valid is None:
        result.add(causes.invalid("", "", f"{path!r} must be valid by at least one schema of anyOf"))
    result.merge(valid or max(results, key=lambda alternative: alternative.passed))


def _one_of(results: list[_Result], path: str, result: _Result) -> None:
    valid = [alternative for alternative in results if not alternative.causes]
    if len(valid) == 1:
        result.merge(valid[0])
        return
    count = f"{len(valid)} are" if valid else "none is"
    result.add(causes.invalid("", "", f"{path!r} must be valid by exactly one schema of oneOf, {count}"))
    if not valid:
        result.merge(max(results, key=lambda alternative: alternative.passed))
