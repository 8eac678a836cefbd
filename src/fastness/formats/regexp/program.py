"""From the tree to a program, and running it: all ways through the pattern at once, one character after the other.

A thread is a place in the program with the places of groups that it passed. Threads stand in the order in which a search would
try them, and two that come to the same place are one: the first. So a text costs its length times the program at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastness.formats.errors import RegexpError
from fastness.formats.regexp.parser import Choice, Group, Letters, Node, Place, Repeat, Sequence, read_pattern

MAX_PROGRAM: Final = 4000
Spans = tuple[int, ...]
Spend = Callable[[int], None]
_LETTER, _SPLIT, _JUMP, _SAVE, _PLACE, _MATCH = range(6)


@dataclass(frozen=True, slots=True)
class Regexp:
    """A compiled pattern; `groups` are the names of groups by number, empty for those that have none."""

    text: str
    groups: tuple[str, ...]
    program: tuple[tuple[int, Any], ...]

    def search(self, text: str, at: int, spend: Spend) -> Spans | None:
        """Begin and end of the leftmost match from a place on and of its groups, -1 for those that took no part."""
        threads: list[tuple[int, Spans]] = []
        found: Spans | None = None
        start: Spans = (-1,) * (2 * len(self.groups))
        for place in range(at, len(text) + 1):
            following: list[tuple[int, Spans]] = []
            added: set[int] = set()
            current: list[tuple[int, Spans]] = []
            for step, spans in threads:
                self._follow(step, spans, text, place, current, added)
            if found is None:
                self._follow(0, (place, *start[1:]), text, place, current, added)
            spend(1 + len(added))
            for step, spans in current:
                kind, argument = self.program[step]
                if kind == _MATCH:
                    found = (spans[0], place, *spans[2:])
                    break
                if place < len(text) and argument.holds(text[place]):
                    following.append((step + 1, spans))
            threads = following
            if not threads and found is not None:
                break
        return found

    def _follow(
        self, step: int, spans: Spans, text: str, place: int, threads: list[tuple[int, Spans]], added: set[int]
    ) -> None:
        """Add a thread, and wherever it goes without a character."""
        waiting = [(step, spans)]
        while waiting:
            step, spans = waiting.pop()
            if step in added:
                continue
            added.add(step)
            kind, argument = self.program[step]
            if kind == _JUMP:
                waiting.append((argument, spans))
            elif kind == _SPLIT:
                waiting += [(argument[1], spans), (argument[0], spans)]
            elif kind == _SAVE:
                waiting.append((step + 1, (*spans[:argument], place, *spans[argument + 1 :])))
            elif kind == _PLACE:
                if _holds(argument, text, place):
                    waiting.append((step + 1, spans))
            else:
                threads.append((step, spans))


def _is_word(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


def _holds(kind: str, text: str, place: int) -> bool:
    before, behind = text[place - 1 : place] if place else "", text[place : place + 1]
    if kind in ("word", "no-word"):
        return (_is_word(before) != _is_word(behind)) == (kind == "word")
    edge = before if kind.endswith("begin") else behind
    return not edge or (kind.startswith("line-") and edge == "\n")


@lru_cache(maxsize=1024)
def compile_regexp(text: str) -> Regexp:
    """A pattern, ready to run; raises RegexpError."""
    pattern = read_pattern(text)
    writer = _Writer()
    writer.write(pattern.node)
    writer.add(_MATCH)
    return Regexp(text, pattern.groups, tuple(writer.program))


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Letters):
        return False
    if isinstance(node, Place):
        return True
    if isinstance(node, Repeat):
        return not node.least or _may_be_empty(node.part)
    if isinstance(node, Group):
        return _may_be_empty(node.part)
    return (all if isinstance(node, Sequence) else any)(map(_may_be_empty, node.parts))


class _Writer:
    """Writes a tree as steps."""

    def __init__(self) -> None:
        self.program: list[tuple[int, Any]] = []

    def add(self, kind: int, argument: Any = None) -> int:
        """One step; raises RegexpError when there are too many."""
        if len(self.program) >= MAX_PROGRAM:
            raise RegexpError("pattern-too-large", "the pattern repeats too much", hint="Repeat less.")
        self.program.append((kind, argument))
        return len(self.program) - 1

    def write(self, node: Node) -> None:
        """All steps of a node."""
        if isinstance(node, Letters):
            self.add(_LETTER, node)
        elif isinstance(node, Place):
            self.add(_PLACE, node.kind)
        elif isinstance(node, Sequence):
            for part in node.parts:
                self.write(part)
        elif isinstance(node, Group):
            self.add(_SAVE, 2 * node.number)
            self.write(node.part)
            self.add(_SAVE, 2 * node.number + 1)
        elif isinstance(node, Choice):
            self._choice(node)
        else:
            self._repeat(node)

    def _choice(self, node: Choice) -> None:
        ends = []
        for part in node.parts[:-1]:
            split = self.add(_SPLIT)
            self.write(part)
            ends.append(self.add(_JUMP))
            self.program[split] = (_SPLIT, (split + 1, len(self.program)))
        self.write(node.parts[-1])
        for end in ends:
            self.program[end] = (_JUMP, len(self.program))

    def _repeat(self, node: Repeat) -> None:
        for _ in range(node.least - (node.most is None)):
            self.write(node.part)
        if node.most is None:
            self._without_end(node)
            return
        splits = []
        for _ in range(node.most - node.least):
            splits.append(self.add(_SPLIT))
            self.write(node.part)
        for split in splits:
            self._split(split, len(self.program), node.greedy)

    def _without_end(self, node: Repeat) -> None:
        """A part once and again, or not at all. What may be empty is tried once before it is left, as RE2 does."""
        skip = self.add(_SPLIT) if not node.least else None
        begin = len(self.program)
        self.write(node.part)
        if skip is not None and not _may_be_empty(node.part):
            self.add(_JUMP, skip)
        else:
            again = self.add(_SPLIT)
            self.program[again] = (_SPLIT, (begin, again + 1) if node.greedy else (again + 1, begin))
        if skip is not None:
            self._split(skip, len(self.program), node.greedy)

    def _split(self, split: int, end: int, greedy: bool) -> None:
        self.program[split] = (_SPLIT, (split + 1, end) if greedy else (end, split + 1))
