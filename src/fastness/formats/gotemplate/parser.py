"""From words to the tree.

A parser by recursive descent, as deep as `MAX_DEPTH` allows. Variables are checked here: a name counts from its declaration to
the end of the block that it stands in, as in Go. Names of functions are the caller's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NoReturn

from fastness.formats.gotemplate import lexer, literals
from fastness.formats.gotemplate.lexer import Lexeme, lexemes, refused
from fastness.formats.gotemplate.tree import (
    Branch,
    Chain,
    Command,
    Dot,
    Field,
    Include,
    Leave,
    Literal,
    Nil,
    Node,
    Nodes,
    Operand,
    Pipe,
    Show,
    Template,
    Text,
    Variable,
    Word,
)

MAX_TEXT: Final = 64 * 1024
MAX_DEPTH: Final = 40
_CONTROL: Final = frozenset({"if", "with", "range"})
_KEYWORDS: Final = _CONTROL | {"block", "break", "continue", "define", "else", "end", "template"}
_STARTS: Final = frozenset({
    lexer.WORD, lexer.FIELD, lexer.DOT, lexer.VARIABLE, lexer.NUMBER, lexer.CHARACTER, lexer.STRING,
})  # fmt: skip


def parse_template(text: str, functions: Collection[str]) -> Template:
    """The tree of a template that may call these functions; raises TemplateError."""
    if len(text) > MAX_TEXT:
        raise refused(text, 0, "template-too-large", f"a template has at most {MAX_TEXT} characters", "Shorten it.")
    return _Parser(text, functions).template()


class _Parser:
    """One pass over the words of a text."""

    def __init__(self, text: str, functions: Collection[str]) -> None:
        self._text = text
        self._functions = functions
        self._words = list(lexemes(text))
        self._next = 0
        self._names = ["$"]
        self._depth = 0
        self._ranges = 0
        self._defined: dict[str, Nodes] = {}

    def template(self) -> Template:
        """The whole text."""
        nodes: list[Node] = []
        while self._peek().kind != lexer.END:
            if self._opens("define"):
                self._define()
            else:
                nodes.append(self._node())
        return Template(self._text, tuple(nodes), self._defined)

    # Words.

    def _peek(self) -> Lexeme:
        return self._words[self._next]

    def _take(self) -> Lexeme:
        word = self._words[self._next]
        self._next = min(self._next + 1, len(self._words) - 1)
        return word

    def _skip(self) -> Lexeme:
        """The next word that is no space, not taken yet."""
        while self._peek().kind == lexer.SPACE:
            self._next += 1
        return self._peek()

    def _after(self) -> Lexeme:
        """The next word that is no space, taken."""
        self._skip()
        return self._take()

    def _opens(self, *names: str) -> bool:
        """Whether an action begins here whose first word is one of these."""
        if self._peek().kind != lexer.OPEN:
            return False
        place = self._next + 1
        while self._words[place].kind == lexer.SPACE:
            place += 1
        word = self._words[place]
        return word.kind == lexer.WORD and word.text in names

    def _close(self) -> None:
        word = self._after()
        if word.kind != lexer.CLOSE:
            self._unexpected(word)

    def _unexpected(self, word: Lexeme) -> NoReturn:
        named = {lexer.CLOSE: "the end of the action", lexer.END: "the end of the template"}.get(
            word.kind, repr(word.text)
        )
        raise refused(self._text, word.at, "unexpected", f"{named} does not belong there")

    def _deeper(self, by: int, at: int) -> None:
        self._depth += by
        if self._depth > MAX_DEPTH:
            raise refused(self._text, at, "too-deep", f"more than {MAX_DEPTH} things inside each other", "Nest less.")

    # Nodes.

    def _nodes(self) -> Nodes:
        """Nodes up to an `end` or an `else`, which stay where they are."""
        nodes: list[Node] = []
        while not self._opens("end", "else"):
            if self._peek().kind == lexer.END:
                raise refused(self._text, len(self._text), "no-end", "a block has no end", "Close it with {{ end }}.")
            nodes.append(self._node())
        return tuple(nodes)

    def _node(self) -> Node:
        opened = self._take()
        if opened.kind == lexer.TEXT:
            return Text(opened.at, opened.text)
        word = self._skip()
        if word.kind != lexer.WORD or word.text not in _KEYWORDS:
            return Show(opened.at, self._pipe("command", lexer.CLOSE))
        word = self._take()._replace(at=opened.at)
        if word.text in _CONTROL:
            return self._control(word)
        if word.text in ("break", "continue"):
            self._close()
            if not self._ranges:
                raise refused(
                    self._text, word.at, "outside-range", f"{word.text} stands outside of a range", "Remove it."
                )
            return Leave(word.at, word.text)
        if word.text == "template":
            return self._include(word)
        if word.text != "block":
            self._unexpected(word)
        return self._block(word)

    def _control(self, word: Lexeme) -> Branch:
        self._deeper(1, word.at)
        scope = len(self._names)
        pipe = self._pipe(word.text, lexer.CLOSE)
        self._ranges += word.text == "range"
        body = self._nodes()
        self._ranges -= word.text == "range"
        otherwise = self._otherwise(word)
        del self._names[scope:]
        self._deeper(-1, word.at)
        return Branch(word.at, word.text, pipe, body, otherwise)

    def _otherwise(self, word: Lexeme) -> Nodes:
        self._take()
        ended = self._after()
        if ended.text == "end":
            self._close()
            return ()
        # `else if` goes on with a branch that has the same end.
        again = self._skip()
        if again.kind == lexer.WORD and again.text == word.text and word.text != "range":
            self._take()
            return (self._control(again),)
        self._close()
        nodes = self._nodes()
        self._take()
        end = self._after()
        if end.text != "end":
            self._unexpected(end)
        self._close()
        return nodes

    def _include(self, word: Lexeme) -> Include:
        name = self._name()
        pipe = None if self._skip().kind == lexer.CLOSE else self._pipe("template", lexer.CLOSE)
        if pipe is None:
            self._close()
        return Include(word.at, name, pipe)

    def _block(self, word: Lexeme) -> Include:
        self._deeper(1, word.at)
        name, pipe = self._name(), self._pipe("block", lexer.CLOSE)
        names, ranges, self._names, self._ranges = self._names, self._ranges, ["$"], 0
        self._define_as(name)
        self._names, self._ranges = names, ranges
        self._deeper(-1, word.at)
        return Include(word.at, name, pipe)

    def _define(self) -> None:
        self._take()
        self._after()
        name = self._name()
        self._close()
        self._names = ["$"]
        self._define_as(name)
        self._names = ["$"]

    def _define_as(self, name: str) -> None:
        nodes = self._nodes()
        self._take()
        end = self._after()
        if end.text != "end":
            self._unexpected(end)
        self._close()
        # As in Go, an empty one does not take the place of another.
        empty = all(isinstance(node, Text) and not node.text.strip(lexer.SPACES) for node in nodes)
        if not empty or name not in self._defined:
            self._defined[name] = nodes

    def _name(self) -> str:
        word = self._after()
        name = literals.unquoted(word.text) if word.kind == lexer.STRING else None
        if name is None:
            self._unexpected(word)
        return name

    # Pipelines.

    def _pipe(self, context: str, end: str) -> Pipe:
        begin = self._skip()
        names, assigns = self._declared(context)
        commands: list[Command] = []
        while True:
            word = self._skip()
            if word.kind == end and (end != lexer.MARK or word.text == ")"):
                self._take()
                break
            if word.kind not in _STARTS and word.text != "(":
                self._unexpected(word)
            commands.append(self._command())
        self._check(context, begin, commands)
        return Pipe(begin.at, tuple(commands), tuple(names), assigns)

    def _check(self, context: str, begin: Lexeme, commands: list[Command]) -> None:
        if not commands:
            raise refused(self._text, begin.at, "no-value", f"a value is missing for {context}", "Write one.")
        for command in commands[1:]:
            first = command.operands[0]
            if isinstance(first, Dot | Nil | Literal):
                raise refused(self._text, first.at, "not-a-function", "a pipeline leads into a function", "Name one.")

    def _declared(self, context: str) -> tuple[list[str], bool]:
        """Variables that the pipeline is given to; the words are taken only if there are some."""
        names: list[str] = []
        while self._skip().kind == lexer.VARIABLE:
            before, word = self._next, self._take()
            mark = self._skip()
            if mark.text in (":=", "=") and mark.kind == lexer.MARK:
                self._take()
                self._names.append(word.text)
                return [*names, word.text], mark.text == "="
            if mark.text != "," or mark.kind != lexer.MARK:
                self._next = before
                break
            self._take()
            if context != "range" or names:
                raise refused(
                    self._text, word.at, "too-many-variables", f"{context} has too many variables", "Use one."
                )
            if self._skip().kind not in (lexer.VARIABLE, lexer.CLOSE):
                raise refused(
                    self._text, word.at, "bad-variable", "a range gives to variables alone", "Write $i, $x :="
                )
            names.append(word.text)
            self._names.append(word.text)
        return names, False

    def _command(self) -> Command:
        begin, operands = self._skip(), []
        while True:
            word = self._skip()
            if word.kind in _STARTS or word.text == "(":
                operands.append(self._operand())
            behind = self._peek()
            if behind.kind == lexer.SPACE:
                if self._skip().kind in _STARTS or (self._peek().kind == lexer.MARK and self._peek().text == "("):
                    continue
                behind = self._peek()
            if behind.kind == lexer.MARK and behind.text == "|":
                self._take()
                break
            if behind.kind == lexer.CLOSE or (behind.kind == lexer.MARK and behind.text == ")"):
                break
            self._unexpected(behind)
        return Command(begin.at, tuple(operands))

    def _operand(self) -> Operand:
        term = self._term()
        names: list[str] = []
        while self._peek().kind == lexer.FIELD:
            names.append(self._take().text[1:])
        if not names:
            return term
        if isinstance(term, Field):
            return Field(term.at, (*term.names, *names))
        if isinstance(term, Variable):
            return Variable(term.at, term.name, (*term.names, *names))
        if isinstance(term, Dot | Nil | Literal):
            raise refused(self._text, term.at, "bad-field", "this has no fields", "Put it into a variable.")
        return Chain(term.at, term, tuple(names))

    def _term(self) -> Operand:
        word = self._take()
        if word.kind == lexer.DOT:
            return Dot(word.at)
        if word.kind == lexer.FIELD:
            return Field(word.at, (word.text[1:],))
        if word.kind == lexer.VARIABLE:
            if word.text not in self._names:
                raise refused(
                    self._text, word.at, "unknown-variable", f"there is no variable {word.text}", "Declare it."
                )
            return Variable(word.at, word.text)
        if word.kind == lexer.WORD:
            return self._word(word)
        if word.text == "(":
            self._deeper(1, word.at)
            pipe = self._pipe("parenthesized pipeline", lexer.MARK)
            self._deeper(-1, word.at)
            return pipe
        return self._literal(word)

    def _word(self, word: Lexeme) -> Operand:
        if word.text in ("true", "false"):
            return Literal(word.at, word.text == "true")
        if word.text == "nil":
            return Nil(word.at)
        if word.text in _KEYWORDS:
            self._unexpected(word)
        if word.text not in self._functions:
            raise refused(
                self._text, word.at, "unknown-function", f"there is no function {word.text}",
                "Known are those of text/template and sprig that neither look at the world nor make anything up.",
            )  # fmt: skip
        return Word(word.at, word.text)

    def _literal(self, word: Lexeme) -> Literal:
        read = {
            lexer.STRING: literals.unquoted, lexer.CHARACTER: literals.character, lexer.NUMBER: literals.number,
        }[word.kind]  # fmt: skip
        value = read(word.text)
        if value is None:
            raise refused(
                self._text, word.at, "bad-literal", f"{word.text[:40]} is no {word.kind} of Go", "Write it otherwise."
            )
        return Literal(word.at, value)
