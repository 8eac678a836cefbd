"""The fast way to say yes: the structural part of a schema, in the words of jsonschema-rs.

Nearly every object is valid, so validation starts with a validator that runs in Rust and only says yes or no. The translation
may be stricter than Kubernetes (a no is always judged again by `validation.py`, which has the last word) and must never be
laxer. Where the words differ:

* `nullable` becomes a second type; with `enum` it does not, because Kubernetes refuses a null there;
* `exclusiveMinimum: true` becomes the number; integers get the range of their format;
* formats are ours (`formats.py`), and so are patterns that are not plain (`patterns.py`);
* a limit that Kubernetes computes in another way (fractions on integers) makes the whole schema untranslatable: no fast way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonschema_rs

from fastness.apiserver.schema.formats import check_of
from fastness.apiserver.schema.node import CLOSED, Node
from fastness.apiserver.schema.patterns import OPTIONS, is_plain, matcher

INT_RANGES: Final[Mapping[str, tuple[int, int]]] = {"int32": (-(2**31), 2**31 - 1)}
INT64: Final = (-(2**63), 2**63 - 1)
EXACT: Final = 2**53 - 1  # the largest float that still counts as a whole number
FLOAT32_MAX: Final = 3.4028234663852886e38

_COPIED: Final = (
    "enum", "required", "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "uniqueItems",
)  # fmt: skip


class _Untranslatable(Exception):
    """The schema has a limit whose meaning in Kubernetes differs from JSON Schema."""


def acceptor(root: Node) -> Callable[[Any], bool]:
    """A function that is true only for objects whose structure is valid."""
    try:
        return _Translation().validator(root)
    except _Untranslatable:
        return _never


def _never(_: Any) -> bool:
    return False


class _Translation:
    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}
        self._formats: dict[str, Callable[[str], bool]] = {}

    def validator(self, root: Node) -> Callable[[Any], bool]:
        schema = self.node(root)
        if self._definitions:
            schema = {**schema, "definitions": self._definitions}
        return jsonschema_rs.Draft7Validator(
            schema, formats=self._formats or None, validate_formats=bool(self._formats), pattern_options=OPTIONS
        ).is_valid

    def node(self, node: Node) -> dict[str, Any]:
        if node.ref is None:
            return self._node(node)
        name = node.ref.replace("/", "~").replace("#", "")
        if name not in self._definitions:
            # Entered before it is translated: definitions may refer to themselves (JSONSchemaProps does).
            self._definitions[name] = {}
            self._definitions[name] = self._node(node)
        return {"$ref": "#/definitions/" + name.replace("~", "~0")}

    def _node(self, node: Node) -> dict[str, Any]:
        out = self._values(node.schema, node.type)
        types = ["integer", "string"] if node.int_or_string else [node.type] if node.type else []
        if types:
            if node.nullable and "enum" not in out:
                types.append("null")
            out["type"] = types[0] if len(types) == 1 else types
        if node.properties:
            out["properties"] = {name: self.node(below) for name, below in node.properties.items()}
        if node.schema.get("additionalProperties") is False:
            out["additionalProperties"] = False
        elif node.extra is not None and node.extra is not CLOSED:
            out["additionalProperties"] = self.node(node.extra)
        if node.items is not None:
            out["items"] = self.node(node.items)
        return out

    def _values(self, schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """What a schema demands of a value, outside its structure."""
        out = {word: schema[word] for word in _COPIED if schema.get(word)}
        also: list[dict[str, Any]] = [self._nested(s) for s in schema.get("allOf") or () if "$ref" not in s]
        self._numbers(schema, kind, out)
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                out[word] = [self._nested(s) for s in schema[word]]
        if "not" in schema:
            out["not"] = self._nested(schema["not"])
        if schema.get("pattern"):
            pattern = schema["pattern"]
            if is_plain(pattern):
                out["pattern"] = pattern
            else:
                also.append(self._checked(f"pattern-{pattern}", matcher(pattern)))
        check = check_of(schema.get("format") or "") if kind in ("", "string") else None
        if check is not None:
            also.append(self._checked(f"format-{schema['format']}", check))
        if also:
            out["allOf"] = also
        return out

    def _checked(self, name: str, check: Callable[[str], bool]) -> dict[str, Any]:
        self._formats[name] = check
        return {"format": name}

    def _nested(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        out = self._values(schema, schema.get("type") or "")
        if schema.get("type"):
            out["type"] = schema["type"]
        if schema.get("properties"):
            out["properties"] = {name: self._nested(below) for name, below in schema["properties"].items()}
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), Mapping):
                out[word] = self._nested(schema[word])
        return out

    @staticmethod
    def _numbers(schema: Mapping[str, Any], kind: str, out: dict[str, Any]) -> None:
        low, high = schema.get("minimum"), schema.get("maximum")
        factor = schema.get("multipleOf")
        fractions = [n for n in (low, high, factor) if n is not None and n != int(n)]
        if fractions and (kind != "number" or factor in fractions):
            raise _Untranslatable
        if low is not None:
            out["exclusiveMinimum" if schema.get("exclusiveMinimum") else "minimum"] = low
        if high is not None:
            out["exclusiveMaximum" if schema.get("exclusiveMaximum") else "maximum"] = high
        if factor is not None:
            if factor <= 0:
                raise _Untranslatable
            out["multipleOf"] = factor
        if kind == "integer":
            least, most = INT_RANGES.get(schema.get("format") or "", INT64)
            out["minimum"], out["maximum"] = max(least, out.get("minimum", least)), min(most, out.get("maximum", most))
        elif kind == "number" and schema.get("format") == "float":
            out.setdefault("minimum", -FLOAT32_MAX)
            out.setdefault("maximum", FLOAT32_MAX)
