"""A set of field paths, as a trie that has the very shape of fieldsV1.

A node is a dict from step (see `element.py`) to node. An empty node is a member without anything below it; a node that is a
member and has members below carries the step `.`. So a stored fieldsV1 *is* a set, and nothing is decoded or encoded on the
way of a write.

- Sets are values: no operation changes its operands, results share subtrees with them. Never write into a node.
- Membership of a path says nothing about what is below or above it, as in Kubernetes: `{a.b} - {a}` is `{a.b}`.
- No empty branches: a node has members below it, or is one.

The functions work on bare tries, for the hot path; `FieldSet` wraps them for everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from fastness.apiserver.fields.element import SELF, describe_step, in_order, normal

Trie: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

_MARKS = ("f:", "k:", "v:", "i:")
# Above what an object may nest with ownership (160 levels, `kube/readable`): no recursion without end for what a client sends.
_MAX_DEPTH = 200


class FieldSet:
    """A set of field paths; a value, to be compared with `==`."""

    __slots__ = ("trie",)

    def __init__(self, trie: Trie | None = None) -> None:
        self.trie: Trie = trie if trie is not None else {}

    @classmethod
    def of(cls, *paths: Iterable[str]) -> FieldSet:
        """The set of these paths; a step without a mark is the name of a field."""
        trie: Trie = {}
        for path in paths:
            steps = [_marked(step) for step in path]
            branch: Trie = {}
            for step in reversed(steps):
                branch = {step: branch}
            trie = union(trie, branch)
        return cls(trie)

    @classmethod
    def from_fields_v1(cls, fields: Mapping[str, Any] | None) -> FieldSet:
        """Read what somebody else wrote; raises ValueError when it is not a field set."""
        trie = _read({} if fields is None else fields, 0)
        trie.pop(SELF, None)  # nobody owns the object as a whole
        return cls(trie)

    def to_fields_v1(self) -> Trie:
        """The JSON of managedFields.fieldsV1, in Kubernetes' order."""
        return ordered(self.trie)

    def union(self, other: FieldSet) -> FieldSet:
        """Paths of either."""
        return FieldSet(union(self.trie, other.trie))

    def difference(self, other: FieldSet) -> FieldSet:
        """Paths of this that the other does not have."""
        return FieldSet(difference(self.trie, other.trie))

    def intersection(self, other: FieldSet) -> FieldSet:
        """Paths of both."""
        return FieldSet(intersection(self.trie, other.trie))

    def without(self, other: FieldSet) -> FieldSet:
        """Paths of this that are neither in the other nor below one of its paths."""
        return FieldSet(without(self.trie, other.trie))

    def has(self, path: Iterable[str]) -> bool:
        """Whether the path is a member; a step without a mark is the name of a field."""
        node = self.trie
        steps = [_marked(step) for step in path]
        for step in steps:
            below = node.get(step)
            if below is None:
                return False
            node = below
        return bool(steps) and is_member(node)

    def __iter__(self) -> Iterator[Path]:
        return paths(self.trie)

    def __bool__(self) -> bool:
        return bool(self.trie)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.trie == other.trie

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return "FieldSet(" + ", ".join(human(path) for path in self) + ")"


def _marked(step: str) -> str:
    return step if step[:2] in _MARKS else f"f:{step}"


def human(path: Iterable[str]) -> str:
    """A path as messages show it: `.spec.containers[name="x"].image`."""
    return "".join(describe_step(step) for step in path)


def is_member(node: Trie) -> bool:
    """Whether the path that leads to this node is in the set."""
    return not node or SELF in node


def paths(trie: Trie, prefix: Path = ()) -> Iterator[Path]:
    """All paths: at each level first the members, then what is below, each in order."""
    steps = [step for step in in_order(trie) if step != SELF]
    for step in steps:
        if is_member(trie[step]):
            yield (*prefix, step)
    for step in steps:
        if trie[step]:
            yield from paths(trie[step], (*prefix, step))


def ordered(trie: Trie) -> Trie:
    """The same trie with its steps in Kubernetes' order at every level."""
    if len(trie) == 1:
        ((step, node),) = trie.items()
        return {step: ordered(node)} if node else trie
    return {step: ordered(trie[step]) if trie[step] else {} for step in in_order(trie)}


def union(left: Trie, right: Trie) -> Trie:
    """Paths of either; subtrees that only one has are shared."""
    out = dict(left)
    for step, node in right.items():
        mine = out.get(step)
        if mine is None:
            out[step] = node
        elif mine is not node and (mine or node):
            out[step] = union(mine, node) if mine and node else {SELF: {}, **mine, **node}
    return out


def difference(minuend: Trie, subtrahend: Trie) -> Trie:
    """Paths of the first that the second does not have."""
    out: Trie = {}
    for step, mine in minuend.items():
        node = subtrahend.get(step)
        if node is None:
            out[step] = mine
        elif mine:
            left = difference(mine, node) if node else {each: mine[each] for each in mine if each != SELF}
            if left:
                out[step] = left if len(left) > 1 or SELF not in left else {}
        elif node and SELF not in node:
            out[step] = mine
    return out


def intersection(left: Trie, right: Trie) -> Trie:
    """Paths of both."""
    out: Trie = {}
    for step, mine in left.items():
        node = right.get(step)
        if node is None or step == SELF:
            continue
        below = intersection(mine, node) if mine and node else {}
        if is_member(mine) and is_member(node):
            out[step] = {SELF: {}, **below} if below else {}
        elif below:
            out[step] = below
    return out


def without(minuend: Trie, subtrahend: Trie) -> Trie:
    """Paths of the first that are neither in the second nor below one of its paths."""
    out: Trie = {}
    for step, mine in minuend.items():
        node = subtrahend.get(step)
        if node is None:
            out[step] = mine
        elif not is_member(node):
            if not mine:
                out[step] = mine
                continue
            left = without(mine, node)
            if left:
                out[step] = left if len(left) > 1 or SELF not in left else {}
    return out


def _read(fields: Mapping[str, Any], depth: int) -> Trie:
    if depth > _MAX_DEPTH:
        raise ValueError("field set is nested too deeply")
    if not isinstance(fields, Mapping):
        raise ValueError("field set is not an object")
    trie: Trie = {}
    for step, below in fields.items():
        if step == SELF:
            trie[SELF] = {}
            continue
        canonical = normal(step)
        if canonical is not None:
            node = _read(below, depth + 1)
            # Two spellings of one step in what a client sent: the later one alone would lose the fields of the first.
            trie[canonical] = union({"": trie[canonical]}, {"": node})[""] if canonical in trie else node
    return {} if len(trie) == 1 and SELF in trie else trie
