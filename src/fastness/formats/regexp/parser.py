"""From a pattern to a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import RegexpError

MAX_PATTERN: Final = 1024
MAX_DEPTH: Final = 40
MAX_REPEAT: Final = 1000
_MOST: Final = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Letters:
    """One character out of some ranges, or outside of them; `folded` looks at neither case."""

    ranges: Ranges
    negated: bool = False
    folded: bool = False

    def holds(self, letter: str) -> bool:
        """Whether a character is one of them."""
        forms = {letter, letter.lower(), letter.upper()} if self.folded else {letter}
        return (
            any(low <= ord(form) <= high for form in forms if len(form) == 1 for low, high in self.ranges)
            != self.negated
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A condition on a place of the text: `begin`, `end`, `line-begin`, `line-end`, `word`, `no-word`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first that leads to a match."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something several times; without a most, without an end."""

    part: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A part whose place is remembered."""

    number: int
    part: Node


Node = Letters | Place | Sequence | Choice | Repeat | Group


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read: its tree, and the names of its groups by number."""

    node: Node
    groups: tuple[str, ...]


_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),), "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)), "digit": _DIGIT, "graph": ((33, 126),), "lower": ((97, 122),), "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)), "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_ESCAPES: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_PLACES: Final = {"A": "begin", "z": "end", "b": "word", "B": "no-word"}
_REPEAT: Final = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}", re.A)
_HEX: Final = re.compile(r"x(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{2}))", re.A)
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", re.A)
_NAMED: Final = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>", re.A)
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])", re.A)
_POSIX_NAME: Final = re.compile(r"\[:(\^?)([a-z]+):\]", re.A)
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def read_pattern(text: str) -> Pattern:
    """The tree of a pattern; raises RegexpError."""
    if len(text) > MAX_PATTERN:
        raise RegexpError("pattern-too-long", f"a pattern has at most {MAX_PATTERN} characters", hint="Shorten it.")
    reader = _Reader(text)
    node = reader.choice()
    if reader.at < len(text):
        raise reader.refused("an unexpected )")
    return Pattern(node, tuple(reader.groups))


def _outside(ranges: Ranges) -> Ranges:
    """All characters that are not in some ranges, which are in order."""
    edges = [-1, *(edge for low, high in ranges for edge in (low, high)), _MOST + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


class _Reader:
    """One pass over a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._flags = frozenset[str]()
        self._depth = 0
        self.at = 0
        self.groups = [""]

    def refused(self, why: str) -> RegexpError:
        """The error about the place at hand."""
        return RegexpError("bad-pattern", f"{why} at character {self.at + 1}", hint="Use RE2 syntax.")

    def _peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def choice(self) -> Node:
        """Alternatives, up to a closing parenthesis or the end."""
        flags = self._flags
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RegexpError("too-deep", f"groups are nested more than {MAX_DEPTH} deep", hint="Nest less.")
        parts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence())
        self._flags = flags
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (letter := self._peek()) and letter not in "|)":
            atom = self._quoted(parts) if self._text.startswith("\\Q", self.at) else self._atom()
            if atom is not None:
                parts.append(self._repeated(atom))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self, parts: list[Node]) -> Node | None:
        """Characters that mean themselves, up to `\\E`: all but the last are done, a repetition is about that one."""
        end = self._text.find("\\E", self.at)
        quoted = self._text[self.at + 2 : end if end >= 0 else len(self._text)]
        self.at = end + 2 if end >= 0 else len(self._text)
        letters = [self._letters(((ord(letter), ord(letter)),)) for letter in quoted]
        parts += letters[:-1]
        return letters[-1] if letters else None

    def _repeated(self, part: Node) -> Node:
        last = -1
        while True:
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
            width = 1
            if counts is None and (match := _REPEAT.match(self._text, self.at)) is not None:
                least = int(match[1])
                most = least if not match[2] else int(match[3]) if match[3] else None
                if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
                    raise self.refused("a repetition that cannot be")
                counts, width = (least, most), len(match[0])
            if counts is None:
                return part
            if last == self.at:
                raise self.refused("a repetition of a repetition")
            self.at += width
            lazy = self._peek() == "?"
            self.at += lazy
            last = self.at
            part = Repeat(part, *counts, greedy=lazy == ("U" in self._flags))

    def _atom(self) -> Node | None:
        letter = self._peek()
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class()
        if letter == "\\":
            return self._escape()
        if letter in "*+?" or _REPEAT.match(self._text, self.at) is not None:
            raise self.refused("a repetition of nothing")
        self.at += 1
        if letter == ".":
            return Letters(((10, 10),) if "s" not in self._flags else (), negated=True)
        if letter in "^$":
            kind = "begin" if letter == "^" else "end"
            return Place(f"line-{kind}" if "m" in self._flags else kind)
        return self._letters(((ord(letter), ord(letter)),))

    def _letters(self, ranges: Ranges, *, negated: bool = False) -> Letters:
        return Letters(ranges, negated, "i" in self._flags)

    def _group(self) -> Node | None:
        number = 0
        flags = self._flags
        if (named := _NAMED.match(self._text, self.at)) is not None:
            number = self._opened(named[1], len(named[0]))
        elif (flagged := _FLAGS.match(self._text, self.at)) is not None:
            self.at += len(flagged[0])
            self._flags = flags | set(flagged[1]) - set(flagged[2] or "")
            if flagged[3] == ")":
                return None
        elif self._text.startswith("(?", self.at):
            raise self.refused("a sort of group that RE2 does not have")
        else:
            number = self._opened("", 1)
        inner = self.choice()
        self._flags = flags
        if self._peek() != ")":
            raise self.refused("a missing )")
        self.at += 1
        return Group(number, inner) if number else inner

    def _opened(self, name: str, width: int) -> int:
        self.at += width
        self.groups.append(name)
        return len(self.groups) - 1

    def _escape(self) -> Node:
        letter = self._text[self.at + 1 : self.at + 2]
        if letter in _PLACES and letter:
            self.at += 2
            return Place(_PLACES[letter])
        return self._letters(self._escaped())

    def _escaped(self) -> Ranges:
        """The characters behind a backslash."""
        letter = self._text[self.at + 1 : self.at + 2]
        self.at += 1
        if letter.lower() in _CLASSES and letter:
            self.at += 1
            ranges = _CLASSES[letter.lower()]
            return ranges if letter.islower() else _outside(ranges)
        if (match := _HEX.match(self._text, self.at)) is not None:
            code = int(match[1] or match[2], 16)
        elif (match := _OCTAL.match(self._text, self.at)) is not None:
            code = int(match[0], 8)
        else:
            code = _ESCAPES.get(letter, ord(letter) if letter in _PUNCTUATION else -1) if letter else -1
        if not 0 <= code <= _MOST:
            raise self.refused("an escape that is none")
        self.at += len(match[0]) if match is not None else 1
        return ((code, code),)

    def _class(self) -> Letters:
        self.at += 1
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while self._peek() != "]" or first:
            if not self._peek():
                raise self.refused("a missing ]")
            ranges += self._member(first=first)
            first = False
        self.at += 1
        return self._letters(tuple(ranges), negated=negated)

    def _member(self, *, first: bool) -> Ranges:
        if (posix := _POSIX_NAME.match(self._text, self.at)) is not None:
            if posix[2] not in _POSIX:
                raise self.refused("a class of no name")
            self.at += len(posix[0])
            return _outside(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
        if self._peek() == "-" and not first and self._text[self.at + 1 : self.at + 2] != "]":
            raise self.refused("a range without a beginning")
        low = self._one()
        single = len(low) == 1 and low[0][0] == low[0][1]
        if not single or self._peek() != "-" or self._text[self.at + 1 : self.at + 2] in ("]", ""):
            return low
        self.at += 1
        high = self._one()
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise self.refused("a range that runs backwards")
        return ((low[0][0], high[0][0]),)

    def _one(self) -> Ranges:
        if self._peek() == "\\":
            return self._escaped()
        letter = self._peek()
        if not letter:
            raise self.refused("a missing ]")
        self.at += 1
        return ((ord(letter), ord(letter)),)
