"""Dropping what a schema does not know, as an API server does before it stores.

Most objects have nothing to drop, so `prune` first asks `_is_clean`, which builds no paths and no copies; only an object that
fails is walked again with paths. Rules:

* a field is known when `properties` names it or `additionalProperties` admits it;
* below `x-kubernetes-preserve-unknown-fields` unknown fields stay, and what *is* specified there is pruned as usual;
* `apiVersion`, `kind` and `metadata` of the root and of embedded resources always stay; the metadata of an embedded resource
  loses what no object's metadata has.
"""

from __future__ import annotations

from typing import Any

from fastness.apiserver.schema.embedded import META_TYPES
from fastness.apiserver.schema.node import CLOSED, Node


def prune(root: Node, obj: Any) -> tuple[Any, list[str]]:
    """The object without unknown fields and the sorted paths of what was dropped; the same object when there is nothing."""
    if _is_clean(root, obj, root.preserve):
        return obj, []
    unknown: list[str] = []
    pruned = _prune(root, obj, "", unknown, root.preserve)
    return pruned, sorted(unknown)


def _is_clean(node: Node, value: Any, keep: bool) -> bool:
    if type(value) is dict:
        properties, extra = node.properties, node.extra
        for key, below in value.items():
            child = properties.get(key, extra)
            # Metadata of the object itself is read and pruned by `meta`, which knows it better than any schema.
            if key in node.closed_names:
                if (
                    node.embedded
                    and key == "metadata"
                    and type(below) is dict
                    and not below.keys() <= META_TYPES.keys()
                ):
                    return False
                continue
            if child is None:
                if keep:
                    continue
                return False
            if (type(below) is dict or type(below) is list) and not _is_clean(child, below, child.preserve):
                return False
    elif type(value) is list:
        items = node.items or CLOSED
        keep = keep if node.preserve else items.preserve
        for below in value:
            if (type(below) is dict or type(below) is list) and not _is_clean(items, below, keep):
                return False
    return True


def _prune(node: Node, value: Any, path: str, unknown: list[str], keep: bool) -> Any:
    if type(value) is dict:
        out: dict[str, Any] = {}
        for key, below in value.items():
            schema = node.child(key)
            if node.embedded and key == "metadata" and type(below) is dict:
                where = f"{path}.metadata" if path else "metadata"
                out[key] = {name: value for name, value in below.items() if name in META_TYPES}
                unknown.extend(f"{where}.{name}" for name in below if name not in META_TYPES)
            elif key in node.closed_names or (schema is None and keep):
                out[key] = below
            elif schema is None:
                unknown.append(f"{path}.{key}" if path else key)
            else:
                out[key] = _prune(schema, below, f"{path}.{key}" if path else key, unknown, schema.preserve)
        return out
    if type(value) is list:
        items = node.items or CLOSED
        keep = keep if node.preserve else items.preserve
        return [_prune(items, below, f"{path}[{i}]", unknown, keep) for i, below in enumerate(value)]
    return value
