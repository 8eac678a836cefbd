"""Which old value belongs to a new one, and whether the two are the same.

On an update some problems are forgiven and some rules compare: both need the old value of the same place. Fields and keys
correlate by name; entries of a list only when the list is a `map`, by its keys. Atomic lists and sets have none.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fastness.apiserver.schema.node import MISSING, Node

_OPTIONS: Final = orjson.OPT_SORT_KEYS


def same(new: Any, old: Any) -> bool:
    """Whether two JSON values are equal, where `true` is not 1."""
    if new is old:
        return True
    if new != old:
        return False
    if type(new) is str and type(old) is str:
        return True
    return orjson.dumps(new, option=_OPTIONS) == orjson.dumps(old, option=_OPTIONS) or _same_numbers(new, old)


def _same_numbers(new: Any, old: Any) -> bool:
    # Python's True == 1 would make a change of a field from 1 to true no change.
    if isinstance(new, bool) or isinstance(old, bool):
        return new is old
    if isinstance(new, dict):
        return all(_same_numbers(value, old[name]) for name, value in new.items())
    if isinstance(new, list):
        return all(_same_numbers(a, b) for a, b in zip(new, old, strict=True))
    return bool(new == old)


def old_field(node: Node, old: Any, name: str) -> Any:
    """The old value of a field or key of an object, or MISSING."""
    if type(old) is not dict or name not in old or node.child(name) is None:
        return MISSING
    return old[name]


class OldEntries:
    """The old entries of one list, found by the keys of a new entry."""

    def __init__(self, node: Node, old: Any) -> None:
        self._keys = node.list_keys if node.list_type == "map" and type(old) is list else ()
        self._by_key: dict[bytes, Any] = {}
        if self._keys:
            for entry in old:
                identity = self._identity(entry)
                if identity is not None:
                    self._by_key.setdefault(identity, entry)

    def of(self, entry: Any) -> Any:
        """The old entry with the same keys, or MISSING."""
        identity = self._identity(entry) if self._keys else None
        return MISSING if identity is None else self._by_key.get(identity, MISSING)

    def _identity(self, entry: Any) -> bytes | None:
        if type(entry) is not dict:
            return None
        return orjson.dumps([entry.get(name) for name in self._keys], option=_OPTIONS)
