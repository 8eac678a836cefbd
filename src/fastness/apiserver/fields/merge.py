"""Putting an applied configuration into the live object, and taking out what is no longer applied.

`merge` gives a new object: maps key by key, sets as union, keyed lists item by item, everything atomic and every scalar from
the configuration. Items of both keep the order of the configuration; items that only the live object has stay before the
next item that both have.

`remove` gives the object without the members of a field set. `check` walks a configuration before anything else does, and
raises the typed error that names the field which cannot be merged. None of them changes what it is given; results share
subtrees with their input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from fastness.apiserver.fields.element import describe_step
from fastness.apiserver.fields.errors import BadListItem, FieldNotDeclared, WrongShape
from fastness.apiserver.fields.fieldset import Trie, is_member
from fastness.apiserver.fields.schema import ListType, MapType, Node

_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {"string": (str,), "numeric": (int, float), "boolean": (bool,)}
_EXPECTED: Final = {
    "string": "string",
    "numeric": "numeric (int or float)",
    "boolean": "boolean",
    "untyped": "any scalar",
}


def merge(live: Any, config: Any, node: Node) -> Any:
    """The live value with the configuration put into it."""
    if isinstance(config, dict) and isinstance(live, dict) and node.map is not None and not node.map.atomic:
        return _merge_entries(live, config, node.map) if live or config else config
    if isinstance(config, list) and isinstance(live, list) and node.list is not None and not node.list.atomic:
        return _merge_items(live, config, node.list) if live and config else config or live
    if config is None and live and _divisible(live, node):
        return live
    return config


def _divisible(value: Any, node: Node) -> bool:
    """Whether null beside this value means an empty configuration rather than a value."""
    shape = node.map if isinstance(value, dict) else node.list if isinstance(value, list) else None
    return shape is not None and not shape.atomic


def _merge_entries(live: dict[str, Any], config: dict[str, Any], entries: MapType) -> dict[str, Any]:
    out = dict(live)
    for name, value in config.items():
        out[name] = merge(live[name], value, entries.field(name)) if name in live else value
    return out


def _merge_items(live: list[Any], config: list[Any], items: ListType) -> list[Any]:
    applied = {items.step(item): item for item in config}
    named = [(_step(items, item), item) for item in live]
    times = Counter(step for step, _ in named)
    # Items that share a key came with an update, which is not held to the key: none of them is the one to merge with.
    old = {step: item for step, item in named if step is not None and times[step] == 1}
    out: list[Any] = []
    rest, waiting = iter(applied.items()), iter([step for step in applied if step in times])
    awaited = next(waiting, None)
    for step, item in named:
        if step not in applied:
            out.append(item)
        # The order of the configuration wins among what both have, as structured-merge-diff has it: reordering is a change that
        # sticks.
        elif step == awaited:
            for key, value in rest:
                out.append(merge(old[key], value, items.element) if key in old else value)
                if key == step:
                    break
            awaited = next(waiting, None)
    out += [merge(old[key], value, items.element) if key in old else value for key, value in rest]
    return out


def _step(items: ListType, item: Any) -> str | None:
    try:
        return items.step(item)
    except ValueError:
        return None  # a stored item that cannot be named stays where it is


def remove(value: Any, trie: Trie, node: Node) -> Any:
    """The value without the members of the trie. A container that loses its last part stays, empty.

    A real API server writes null there, and then refuses its own result for most custom resources.
    """
    if isinstance(value, dict) and node.map is not None and not node.map.atomic:
        return _remove_entries(value, trie, node.map)
    if isinstance(value, list) and node.list is not None and not node.list.atomic:
        return _remove_items(value, trie, node.list)
    return value


def _remove_entries(value: dict[str, Any], trie: Trie, entries: MapType) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, part in value.items():
        below = trie.get(f"f:{name}")
        if below is None:
            out[name] = part
        elif not is_member(below):
            out[name] = remove(part, below, entries.field(name))
    return out


def _remove_items(values: list[Any], trie: Trie, items: ListType) -> list[Any]:
    out: list[Any] = []
    for item in values:
        step = _step(items, item)
        below = None if step is None else trie.get(step)
        if below is None:
            out.append(item)
        elif not is_member(below):
            out.append(remove(item, below, items.element))
    return out


def check(value: Any, node: Node, path: str = "") -> None:
    """Raise the error that names the first field of a configuration which cannot be merged."""
    if value is None:
        return
    if isinstance(value, dict) and node.map is not None:
        _check_entries(value, node.map, path)
    elif isinstance(value, list) and node.list is not None:
        _check_items(value, node.list, path)
    elif not node.scalar:
        expected = "map" if node.map is not None else "list"
        raise WrongShape(f"{path}: expected {expected}, got {_type_name(value)}", path)
    elif not _fits(value, node.scalar):
        raise WrongShape(f"{path}: expected {_EXPECTED[node.scalar]}, got {_type_name(value)}", path)


def _check_entries(value: dict[str, Any], entries: MapType, path: str) -> None:
    for name, part in value.items():
        # An apply owns what it states; a field that the schema would prune can be owned by nobody, so a typo is told here.
        if entries.element is None and not entries.declares(name):
            raise FieldNotDeclared(f"{path}.{name}: field not declared in schema", f"{path}.{name}")
        check(part, entries.field(name), f"{path}.{name}")


def _check_items(values: list[Any], items: ListType, path: str) -> None:
    steps: set[str] = set()
    for place, item in enumerate(values):
        if items.atomic:
            check(item, items.element, f"{path}[{place}]")
            continue
        try:
            step = items.step(item)
        except ValueError as bad:
            raise BadListItem(f"{path}: element {place}: {bad}", f"{path}[{place}]") from bad
        # Two items of one key could not be told apart again: which of them an owner meant would depend on the order.
        if step in steps:
            raise BadListItem(f"{path}: duplicate entries for key {describe_step(step)}", path + describe_step(step))
        steps.add(step)
        check(item, items.element, path + describe_step(step))


def _fits(value: Any, scalar: str) -> bool:
    if isinstance(value, (dict, list)):
        return False
    return scalar == "untyped" or (
        # `bool` is an int to Python, and `true` must not pass for a number.
        isinstance(value, _PYTHON[scalar]) and isinstance(value, bool) == (scalar == "boolean")
    )


def _type_name(value: Any) -> str:
    names = {dict: "map", list: "list", str: "string", bool: "boolean"}
    return names.get(value.__class__, "number")
