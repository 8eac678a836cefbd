"""Ownership that was recorded under an older schema.

When a list or a map becomes atomic, managers still hold paths below it that nobody can own any more. They own the whole from
then on, all of them, until one changes it. The other way round needs nothing: the next write divides what was whole. Free-form
places are left alone.
"""

from __future__ import annotations

from fastness.apiserver.fields.element import SELF
from fastness.apiserver.fields.fieldset import Trie
from fastness.apiserver.fields.schema import DEDUCED, Node


def reconciled(trie: Trie, node: Node) -> Trie:
    """The trie with paths below atomic places replaced by the place; the very same trie when there are none."""
    if node is DEDUCED:
        return trie
    shape = node.map or (None if node.scalar else node.list)
    if shape is None or not trie:
        return trie
    if shape.atomic:
        return {}
    changed: Trie = {}
    for step, below in trie.items():
        if below and step != SELF:
            child = shape.element if step[0] != "f" or node.map is None else node.map.field(step[2:])
            now = reconciled(below, child) if child is not None else below
            if now is not below:
                changed[step] = now
    return {**trie, **changed} if changed else trie
