"""Rows from stored bytes, decoding only what the columns show.

A list of five thousand objects as a table needs a handful of fields of each and passes the metadata through as it is. So the
columns of a kind become a typed shape: structs for the objects on the way, anything at the end. The decoder skips all other
fields without making Python values of them, and metadata is copied as bytes.

* Columns that share a beginning share the structs; a column inside another column's value reads from that value.
* An object that does not fit the shape (a string or null where others have an object) raises `Misfit`; the caller then takes
  the general way for that object.
* `values` gives the raw value of every column, `MISSING` where there is none; cells are made of them in `columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec

from fastness.formats.jsonpath import JsonPath

MISSING: Final = object()
_NAME: Final = ("name",)

Tree = dict[str, "Tree"]


class Misfit(Exception):
    """The object has another shape than the columns expect."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one object contributes to a table."""

    name: Any
    values: tuple[Any, ...]
    metadata: msgspec.Raw


class RowReader:
    """Reads rows of one kind."""

    def __init__(self, paths: Sequence[JsonPath]) -> None:
        inside = [path.lead[1:] if path.lead[0] == "metadata" else None for path in paths]
        outside = [path.lead if getter is None else None for path, getter in zip(paths, inside, strict=True)]
        meta, body = _tree([_NAME, *filter(None, inside)]), _tree([path for path in outside if path is not None])
        body.pop("metadata", None)
        self._decode_meta = msgspec.json.Decoder(_struct("Metadata", meta)).decode
        self._decode_body = msgspec.json.Decoder(_struct("Body", body, raw=("metadata",))).decode
        self._metadata = attrgetter("metadata")
        self._name = _getter(meta, _NAME, None)
        self._getters = tuple(
            (True, _getter(meta, deep, path)) if deep is not None else (False, _getter(body, path.lead, path))
            for path, deep in zip(paths, inside, strict=True)
        )

    @classmethod
    def of(cls, paths: Sequence[JsonPath]) -> RowReader | None:
        """A reader, or None when a column shows the whole object or its whole metadata."""
        if any(not path.lead or path.lead == ("metadata",) for path in paths):
            return None
        return cls(paths)

    def read(self, body: bytes) -> Row:
        """One row; raises Misfit."""
        try:
            outer = self._decode_body(body)
            raw = self._metadata(outer)
            meta = self._decode_meta(raw)
        except (msgspec.ValidationError, AttributeError) as error:
            raise Misfit from error
        values = tuple([get(meta if of_metadata else outer) for of_metadata, get in self._getters])
        return Row(self._name(meta), values, raw)


def _tree(paths: Sequence[tuple[str, ...]]) -> Tree:
    """The fields on the way to every path; a path inside another ends where the other ends."""
    root: Tree = {}
    leaves: set[tuple[str, ...]] = set()
    for path in sorted(paths, key=len):
        if any(path[:size] in leaves for size in range(1, len(path) + 1)):
            continue
        node = root
        for name in path:
            node = node.setdefault(name, {})
        leaves.add(path)
    return root


def _struct(title: str, tree: Tree, raw: Sequence[str] = ()) -> type[msgspec.Struct]:
    """A struct for a tree: attributes are numbered, since names of fields need not be identifiers."""
    fields: list[Any] = [(name, msgspec.Raw) for name in raw]
    names = {name: name for name in raw}
    for index, (name, inside) in enumerate(tree.items()):
        attribute = f"f{index}"
        names[attribute] = name
        if inside:
            nested = _struct(f"{title}{index}", inside)
            fields.append((attribute, nested, msgspec.field(default_factory=nested)))
        else:
            fields.append((attribute, Any, MISSING))
    return msgspec.defstruct(title, fields, rename=names, gc=False)


def _getter(tree: Tree, fields: tuple[str, ...], path: JsonPath | None) -> Callable[[Any], Any]:
    attributes = []
    node, depth = tree, 0
    while node and depth < len(fields):
        attributes.append(f"f{list(node).index(fields[depth])}")
        node = node[fields[depth]]
        depth += 1
    get, beyond = attrgetter(".".join(attributes)), fields[depth:]
    if path is None or (not beyond and not path.rest):
        return get

    def through(outer: Any) -> Any:
        value = get(outer)
        for name in beyond:
            if type(value) is not dict or name not in value:
                return MISSING
            value = value[name]
        if value is MISSING or not path.rest:
            return value
        return path.first_beyond(value, MISSING)

    return through
