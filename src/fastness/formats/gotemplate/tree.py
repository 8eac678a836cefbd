"""The tree that a template becomes. `at` is the place in the text, for complaints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dot:
    """The value at hand."""

    at: int


@dataclass(frozen=True, slots=True)
class Nil:
    """The word nil."""

    at: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a truth value, or a number; a float that is whole may stand where an integer is wanted."""

    at: int
    value: str | bool | int | float


@dataclass(frozen=True, slots=True)
class Field:
    """Names below the value at hand: `.pci.device`."""

    at: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable and names below it: `$x.vendor`; the name of the root is `$`."""

    at: int
    name: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Word:
    """The name of a function."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Names below a parenthesis or a function: `(index . 0).vendor`."""

    at: int
    inner: Operand
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One step of a pipeline: a value, or a function with its arguments."""

    at: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands, each fed with the result of the one before, and the variables that the last result is given to."""

    at: int
    commands: tuple[Command, ...]
    names: tuple[str, ...] = ()
    assigns: bool = False


Operand = Dot | Nil | Literal | Field | Variable | Word | Chain | Pipe


@dataclass(frozen=True, slots=True)
class Text:
    """What is written as it stands."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Show:
    """A pipeline whose result is written, unless it is given to a variable."""

    at: int
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, `with` and `range`, by their `word`."""

    at: int
    word: str
    pipe: Pipe
    body: Nodes
    otherwise: Nodes


@dataclass(frozen=True, slots=True)
class Leave:
    """`break` and `continue`, by their `word`."""

    at: int
    word: str


@dataclass(frozen=True, slots=True)
class Include:
    """Another template of the same text, run with a value."""

    at: int
    name: str
    pipe: Pipe | None


Node = Text | Show | Branch | Leave | Include
Nodes = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A whole text: what is run, and the templates that it defines by name."""

    text: str
    nodes: Nodes
    defined: Mapping[str, Nodes]

    def place(self, at: int) -> str:
        """Where a place in the text is, for people: line and column count from 1."""
        return place_in(self.text, at)


def place_in(text: str, at: int) -> str:
    """Line and column of a place in a text, both from 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
