"""From text to words.

Text between actions comes as one word, with what dashes (`{{-`, `-}}`) trim already gone. Inside an action spaces are words too,
because they separate arguments. Go's rules are followed to the letter where they show: a comment must touch its delimiters, a
dash must be followed or preceded by a space, what follows a name must be able to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fastness.formats.errors import TemplateError
from fastness.formats.gotemplate.tree import place_in

TEXT, SPACE, WORD, FIELD, DOT, VARIABLE, NUMBER, CHARACTER, STRING, MARK, OPEN, CLOSE, END = (
    "text", "space", "word", "field", "dot", "variable", "number", "character", "string", "mark", "open", "close", "end",
)  # fmt: skip
SPACES: Final = " \t\r\n"
_LEFT, _RIGHT = "{{", "}}"
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_NAME: Final = re.compile(r"[^\W]+")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_CHARACTER: Final = re.compile(r"'(?:[^'\\\n]|\\[^\n])*'")
_RAW: Final = re.compile(r"`[^`]*`")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*|0[bB][01_]*"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?",
    re.ASCII,
)
# What may follow a name: anything else would read as part of it.
_AFTER_NAME: Final = frozenset(f"{SPACES}.,|:)(")


class Lexeme(NamedTuple):
    """One word: what it is, its text, and where it begins."""

    kind: str
    text: str
    at: int


def lexemes(template: str) -> Iterator[Lexeme]:
    """The words of a template, with an `END` behind the last; raises TemplateError."""
    at, trim = 0, False
    while True:
        begin = template.find(_LEFT, at)
        text = template[at : begin if begin >= 0 else len(template)]
        shown = text.lstrip(SPACES) if trim else text
        at += len(text) - len(shown)
        if begin < 0:
            break
        inside = begin + len(_LEFT)
        dash = template[inside : inside + 1] == "-" and template[inside + 1 : inside + 2] in tuple(SPACES)
        if dash:
            shown, inside = shown.rstrip(SPACES), inside + 2
        if shown:
            yield Lexeme(TEXT, shown, at)
        if template.startswith("/*", inside):
            at, trim = _comment(template, begin, inside)
            continue
        yield Lexeme(OPEN, _LEFT, begin)
        action = _Action(template, inside, begin)
        yield from action.lexemes()
        at, trim = action.at, action.trims
    if shown:
        yield Lexeme(TEXT, shown, at)
    yield Lexeme(END, "", len(template))


def _comment(template: str, begin: int, inside: int) -> tuple[int, bool]:
    """Where the text goes on behind a comment, and whether it is trimmed there."""
    closed = template.find("*/", inside)
    if closed < 0:
        raise refused(template, begin, "open-comment", "a comment has no end", "Close it with */}}.")
    width, trims = _right(template, closed + 2)
    if not width:
        raise refused(template, closed, "open-comment", "a comment ends before its action does", "Write {{/* … */}}.")
    return closed + 2 + width, trims


def _right(template: str, at: int) -> tuple[int, bool]:
    """How long the end of an action at a place is, zero if none is there; and whether it trims."""
    if template[at : at + 1] in tuple(SPACES) and template.startswith(f"-{_RIGHT}", at + 1):
        return 2 + len(_RIGHT), True
    return (len(_RIGHT), False) if template.startswith(_RIGHT, at) else (0, False)


class _Action:
    """The inside of one action."""

    def __init__(self, template: str, at: int, begin: int) -> None:
        self._template = template
        self._begin = begin
        self._open = 0
        self.at = at
        self.trims = False

    def lexemes(self) -> Iterator[Lexeme]:
        """Its words, the last of them `CLOSE`."""
        template = self._template
        while True:
            width, self.trims = _right(template, self.at)
            if width:
                if self._open:
                    raise self._refused("open-parenthesis", "a parenthesis is not closed")
                yield Lexeme(CLOSE, _RIGHT, self.at)
                self.at += width
                return
            if self.at >= len(template):
                raise refused(template, self._begin, "open-action", "an action '{{' has no end", "Close it with '}}'.")
            lexeme = self._next(template[self.at])
            self.at += len(lexeme.text)
            yield lexeme

    def _next(self, first: str) -> Lexeme:
        if first in SPACES:
            return self._space()
        if first in "\"`'":
            return self._quoted(first)
        if first in "+-0123456789" or (first == "." and self._template[self.at + 1 : self.at + 2].isdecimal()):
            return self._number()
        if first == ".":
            return self._named(FIELD, 1)
        if first == "$":
            return self._named(VARIABLE, 1)
        if first == "_" or first.isalnum():
            return self._named(WORD, 0)
        return self._mark(first)

    def _space(self) -> Lexeme:
        run = _SPACE.match(self._template, self.at)
        text = run[0] if run else ""
        # The last space belongs to the dash that ends the action.
        if self._template.startswith(f"-{_RIGHT}", self.at + len(text)) and len(text) > 1:
            text = text[:-1]
        return Lexeme(SPACE, text, self.at)

    def _quoted(self, first: str) -> Lexeme:
        pattern, kind = {'"': (_QUOTED, STRING), "`": (_RAW, STRING), "'": (_CHARACTER, CHARACTER)}[first]
        match = pattern.match(self._template, self.at)
        if match is None:
            raise self._refused("open-quote", "a quoted text has no end")
        return Lexeme(kind, match[0], self.at)

    def _number(self) -> Lexeme:
        match = _NUMBER.match(self._template, self.at)
        text = match[0] if match else ""
        behind = self._template[self.at + len(text) : self.at + len(text) + 1]
        if not text or behind == "_" or behind.isalnum() or behind in ("+", "-"):
            raise self._refused("bad-number", "this is not a number")
        return Lexeme(NUMBER, text, self.at)

    def _named(self, kind: str, skip: int) -> Lexeme:
        match = _NAME.match(self._template, self.at + skip)
        text = self._template[self.at : match.end() if match else self.at + skip]
        behind = self.at + len(text)
        if kind == FIELD and text == ".":
            kind = DOT
        elif (
            behind < len(self._template)
            and self._template[behind] not in _AFTER_NAME
            and not _right(self._template, behind)[0]
        ):
            raise self._refused("bad-character", f"{self._template[behind]!r} cannot follow {text!r}")
        return Lexeme(kind, text, self.at)

    def _mark(self, first: str) -> Lexeme:
        if first == ":" and not self._template.startswith(":=", self.at):
            raise self._refused("bad-character", "':' stands alone")
        self._open += (first == "(") - (first == ")")
        if self._open < 0:
            raise self._refused("stray-parenthesis", "a parenthesis is closed that was not opened")
        if not (first.isascii() and first.isprintable()):
            raise self._refused("bad-character", f"{first!r} means nothing here")
        return Lexeme(MARK, ":=" if first == ":" else first, self.at)

    def _refused(self, code: str, message: str) -> TemplateError:
        return refused(self._template, self.at, code, message)


def refused(template: str, at: int, code: str, message: str, hint: str = "") -> TemplateError:
    """The error about one place of a template."""
    hint = hint or "Compare with Go's text/template."
    return TemplateError(code, f"{place_in(template, at)}: {message}", hint=hint, at=at)
