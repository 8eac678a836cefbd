"""Filling in defaults, and nulls that mean "not set".

Rules, in the order an API server applies them:

* a null in a field that is neither nullable nor has a default is dropped from its object (in an array it stays, and validation
  refuses it);
* a missing field with a default gets it, and so does a null in a field that is not nullable;
* defaults nest: a default that is an object is itself filled in from the schema below.

The walk copies only what it changes, and skips subtrees that hold neither defaults nor nulls.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fastness.apiserver.schema.node import MISSING, Node


def apply_defaults(root: Node, obj: Any) -> Any:
    """The object with its defaults; the same object when nothing is missing."""
    return _fill(root, obj)


def _fill(node: Node, value: Any) -> Any:
    if type(value) is dict:
        return _fill_object(node, value)
    if type(value) is list and node.items is not None:
        return _fill_array(node.items, value)
    return value


def _fill_object(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    out = value
    properties, extra = node.properties, node.extra
    for key, below in value.items():
        child = properties.get(key, extra)
        if child is None:
            continue
        if below is None:
            if child.nullable:
                continue
            out = dict(value) if out is value else out
            # Kubernetes drops such a null instead of refusing it: Go clients write null for what is not set (`creationTimestamp:
            # null`).
            if child.default is MISSING:
                del out[key]
            else:
                out[key] = _fill(child, deepcopy(child.default))
        elif type(below) is dict or type(below) is list:
            filled = _fill(child, below)
            if filled is not below:
                out = dict(value) if out is value else out
                out[key] = filled
    for key, child in node.with_default:
        if key not in value:
            out = dict(value) if out is value else out
            out[key] = _fill(child, deepcopy(child.default))
    return out


def _fill_array(items: Node, value: list[Any]) -> list[Any]:
    out = value
    replaces_null = not items.nullable and items.default is not MISSING
    for i, below in enumerate(value):
        filled = below
        if below is None and replaces_null:
            filled = _fill(items, deepcopy(items.default))
        elif type(below) is dict or type(below) is list:
            filled = _fill(items, below)
        if filled is not below:
            out = list(value) if out is value else out
            out[i] = filled
    return out
