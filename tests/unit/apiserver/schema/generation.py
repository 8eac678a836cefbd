"""Random structural schemas, and objects that more or less fit them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d-e")
SCALARS: tuple[dict[str, Any], ...] = (
    {"type": "string"}, {"type": "string", "maxLength": 2}, {"type": "string", "enum": ["x", "yy"]}, {"type": "integer"},
    {"type": "string", "pattern": "^[a-z]+$"}, {"type": "integer", "minimum": 0, "maximum": 3}, {"type": "boolean"},
    {"type": "number"}, {"type": "string", "nullable": True}, {"x-kubernetes-int-or-string": True},
    {"type": "string", "default": "x"}, {"type": "integer", "default": 1},
)  # fmt: skip


def objects_of(below: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def build(fields: dict[str, Any], preserve: bool, need: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "object", "properties": fields}
        if preserve:
            out["x-kubernetes-preserve-unknown-fields"] = True
        if need and fields:
            out["required"] = [min(fields)]
        return out

    return st.builds(build, st.dictionaries(st.sampled_from(NAMES), below, max_size=3), st.booleans(), st.booleans())


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    def extend(below: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        arrays = below.map(lambda items: {"type": "array", "items": items})
        maps = below.map(lambda extra: {"type": "object", "additionalProperties": extra})
        return objects_of(below) | arrays | maps

    return objects_of(st.recursive(st.sampled_from(SCALARS), extend, max_leaves=6))


def anything() -> st.SearchStrategy[Any]:
    scalars = st.sampled_from(["x", "yy", "ABC", 0, 1, 5, -1, 1.0, 1.5, True, False, None])
    return st.recursive(
        scalars,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "z")), below, max_size=3),
        max_leaves=6,
    )


@st.composite
def values_for(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A value that follows the schema mostly, and strays from it now and then."""
    if draw(st.integers(0, 9)) == 0:
        return draw(anything())
    kind = schema.get("type")
    if kind == "object":
        if "additionalProperties" in schema:
            return {
                name: draw(values_for(schema["additionalProperties"])) for name in draw(st.sets(st.sampled_from(NAMES)))
            }
        fields = {name: draw(values_for(below)) for name, below in schema["properties"].items() if draw(st.booleans())}
        return {**fields, "z": draw(anything())} if draw(st.integers(0, 3)) == 0 else fields
    if kind == "array":
        return [draw(values_for(schema["items"])) for _ in range(draw(st.integers(0, 2)))]
    by_kind: dict[str, list[Any]] = {
        "string": ["x", "yy", "abc"],
        "integer": [0, 1, 5],
        "number": [1, 1.5],
        "boolean": [True, False],
    }
    return draw(st.sampled_from(by_kind.get(kind or "", ["x", 1])))


@st.composite
def schemas_with_objects(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A schema of a whole object and an object for it."""
    schema = draw(schemas())
    obj = draw(values_for(schema).filter(lambda value: isinstance(value, dict)))
    return schema, obj
