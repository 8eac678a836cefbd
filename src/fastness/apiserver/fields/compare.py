"""What a write changed: fields that went, fields whose value is another, fields that came.

The walk follows the schema: below an atomic place nothing is told apart, items of associative lists are compared by key and
not by place, and a container that is empty on both sides is a leaf, so that `null`, `{}` and `[]` stay different values. A
value that changes its shape (a map becomes a string) is modified as a whole, and what was or is below it went or came.

Equality is that of Kubernetes: `1` and `1.0` are the same, `1` and `true` are not. Python thinks otherwise of the latter,
hence `same`. Subtrees that did not change, nearly all of them, are passed over by one comparison in C.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from fastness.apiserver.fields.element import SELF
from fastness.apiserver.fields.fieldset import FieldSet, Trie, union, without
from fastness.apiserver.fields.ownership import appeared
from fastness.apiserver.fields.schema import ListType, MapType, Node, TypedSchema

_CONTAINERS: Final[frozenset[Any]] = frozenset((dict, list))
_ABSENT: Final = object()


class FieldChange(NamedTuple):
    """Tries of one place and below; None where there is nothing, {} where it is the place itself."""

    removed: Trie | None = None
    modified: Trie | None = None
    added: Trie | None = None

    def without(self, reset: FieldSet) -> FieldChange:
        """The change without fields that the door resets."""
        return (
            FieldChange(*(None if part is None else without(part, reset.trie) or None for part in self))
            if reset
            else self
        )

    @property
    def taken(self) -> Trie:
        """Fields that have a new value."""
        return union(self.modified or {}, self.added or {})


SAME: Final = FieldChange()
_MODIFIED: Final = FieldChange(modified={})


def compare(live: Mapping[str, Any], new: Mapping[str, Any], schema: TypedSchema) -> FieldChange:
    """What changed from `live` to `new`; managedFields are left out, since they change with every write."""
    root = schema.root.map
    if root is None:
        return SAME
    return _compare_entries(_unmanaged(live), _unmanaged(new), root)


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal as Kubernetes has it."""
    if left.__class__ not in _CONTAINERS:
        # In Python 1 == True: a replicas of true would be no change.
        return bool(left == right) and (left is True or left is False) == (right is True or right is False)
    if left != right:
        return False
    if orjson.dumps(left) == orjson.dumps(right):
        return True
    if isinstance(left, dict):
        return all(same(value, right[name]) for name, value in left.items())
    return all(same(value, right[place]) for place, value in enumerate(left))


class _Collected:
    """The changes of the parts of one place."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.removed: Trie = {}
        self.modified: Trie = {}
        self.added: Trie = {}

    def add(self, step: str, change: FieldChange) -> None:
        if change is SAME:
            return
        if change.removed is not None:
            self.removed[step] = change.removed
        if change.modified is not None:
            self.modified[step] = change.modified
        if change.added is not None:
            self.added[step] = change.added

    def change(self, self_modified: bool = False) -> FieldChange:
        modified = {SELF: {}, **self.modified} if self_modified and self.modified else self.modified or None
        if self_modified and not self.modified:
            modified = {}
        if not self.removed and modified is None and not self.added:
            return SAME
        return FieldChange(self.removed or None, modified, self.added or None)


def _unmanaged(obj: Mapping[str, Any]) -> dict[str, Any]:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj if isinstance(obj, dict) else dict(obj)
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _compare(old: Any, new: Any, node: Node) -> FieldChange:
    if old is _ABSENT:
        return FieldChange(added=appeared(new, node))
    if new is _ABSENT:
        return FieldChange(removed=appeared(old, node))
    if old.__class__ not in _CONTAINERS and new.__class__ not in _CONTAINERS:
        return SAME if same(old, new) else _MODIFIED
    if old == new and orjson.dumps(old) == orjson.dumps(new):
        return SAME
    return _compare_containers(old, new, node)


def _compare_containers(old: Any, new: Any, node: Node) -> FieldChange:
    shapes = {id(shape): shape for shape in (_shape(old, new, node), _shape(new, old, node))}
    if len(shapes) == 1:
        (shape,) = shapes.values()
        return _compare_as(shape, old, new)
    collected, modified = _Collected(), False
    for shape in shapes.values():
        part = _compare_as(shape, old, new)
        modified = modified or part.modified == {}
        collected.removed = union(collected.removed, part.removed or {})
        collected.added = union(collected.added, part.added or {})
    return collected.change(modified)


def _shape(value: Any, beside: Any, node: Node) -> MapType | ListType | None:
    """The type that a value is read by; null takes the form of the value beside it, None stands for a scalar."""
    if value is None and beside is not None:
        return _shape(beside, None, node)
    if isinstance(value, dict):
        return node.map or (None if node.scalar else node.list)
    if isinstance(value, list):
        return node.list or node.map
    return None if node.scalar else node.map or node.list


def _compare_as(shape: MapType | ListType | None, old: Any, new: Any) -> FieldChange:
    if shape is not None and not shape.atomic:
        if isinstance(shape, MapType):
            before, after = old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}
            if before or after:
                return _compare_entries(before, after, shape)
        else:
            earlier, later = old if isinstance(old, list) else [], new if isinstance(new, list) else []
            if earlier or later:
                return _compare_items(earlier, later, shape)
    return SAME if same(old, new) else _MODIFIED


def _compare_entries(old: dict[str, Any], new: dict[str, Any], entries: MapType) -> FieldChange:
    collected, implied = _Collected(), entries.implied
    for name, before in old.items():
        # A native object has these parts whether or not they were written; counted as removed they would be a change at every
        # write.
        after = new[name] if name in new else implied.get(name, _ABSENT)
        if after is not before:
            collected.add(f"f:{name}", _compare(before, after, entries.field(name)))
    for name, after in new.items():
        if name not in old:
            collected.add(f"f:{name}", _compare(implied.get(name, _ABSENT), after, entries.field(name)))
    return collected.change()


def _compare_items(old: list[Any], new: list[Any], items: ListType) -> FieldChange:
    before, after = _by_step(old, items), _by_step(new, items)
    collected = _Collected()
    for step in dict.fromkeys((*before, *after)):
        collected.add(step, _compare_found(before.get(step, []), after.get(step, []), items.element))
    return collected.change()


def _compare_found(before: list[Any], after: list[Any], element: Node) -> FieldChange:
    """Items under one key. Repeated ones, which only an update can bring, are owned together as one leaf."""
    if len(before) <= 1 and len(after) <= 1:
        return _compare(before[0] if before else _ABSENT, after[0] if after else _ABSENT, element)
    if len(before) > 1 and len(after) > 1:
        return SAME if same(before, after) else _MODIFIED
    if len(before) > 1:
        return FieldChange(removed={}, added=appeared(after[0], element) if after else None)
    return FieldChange(removed=appeared(before[0], element) if before else None, added={})


def _by_step(values: list[Any], items: ListType) -> dict[str, list[Any]]:
    by_step: dict[str, list[Any]] = {}
    for item in values:
        try:
            by_step.setdefault(items.step(item), []).append(item)
        except ValueError:
            continue  # an item that cannot be named cannot be owned; validation answers for it
    return by_step
