"""Lists that are sets or maps: no entry, or no combination of keys, may come twice.

The second of equal entries is reported, further ones are not; an entry of a map that is no object ends the check of its list.
"""

from __future__ import annotations

from typing import Any

import orjson

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.node import Node
from fastness.kube.errors import Cause


def duplicates(root: Node, obj: Any) -> list[Cause]:
    """Every entry that stands twice in a set or a map."""
    problems: list[Cause] = []
    if root.has_keyed_lists and type(obj) is dict:
        _object(root, obj, "", problems)
    return problems


def _object(node: Node, value: dict[str, Any], path: str, problems: list[Cause]) -> None:
    for name, below in value.items():
        schema = node.properties.get(name)
        if schema is not None:
            if schema.has_keyed_lists:
                _value(schema, below, causes.child(path, name), problems)
        elif node.extra is not None and node.extra.has_keyed_lists:
            _value(node.extra, below, causes.key(path, name), problems)


def _value(node: Node, value: Any, path: str, problems: list[Cause]) -> None:
    if type(value) is dict:
        _object(node, value, path, problems)
    elif type(value) is list:
        if node.list_type == "set":
            _unique(value, path, problems)
        elif node.list_type == "map":
            _unique_keys(node, value, path, problems)
        if node.items is not None and node.items.has_keyed_lists:
            for i, entry in enumerate(value):
                _value(node.items, entry, f"{path}[{i}]", problems)


def _unique(entries: list[Any], path: str, problems: list[Cause]) -> None:
    if len(entries) < 2:
        return
    first_at: dict[bytes, int] = {}
    for i, entry in enumerate(entries):
        # By encoded text, so that a set of 10,000 entries costs one pass and not every pair; true and 1 stay apart, too.
        identity = orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
        times = first_at[identity] = first_at.get(identity, 0) + 1
        if times == 2:
            problems.append(causes.duplicate(f"{path}[{i}]", entry))


def _unique_keys(node: Node, entries: list[Any], path: str, problems: list[Cause]) -> None:
    for i, entry in enumerate(entries):
        if entry is not None and type(entry) is not dict:
            problems.append(causes.invalid(f"{path}[{i}]", entry, "must be an object, as the list is a map"))
            return
    keys = [{name: entry[name] for name in node.list_keys if name in entry} if entry else {} for entry in entries]
    _unique(keys, path, problems)
