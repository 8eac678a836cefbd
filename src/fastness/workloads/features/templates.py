"""Templates of rules: the small safe part of Go's template language.

    {{ range .pci.device }}vendor-{{ .vendor }}=true
    {{ end }}

Known: text, `range … else end`, `if … else if … else end`, fields (`.pci.device`, `$.kernel.version`), variables of a range
(`range $i, $one := …`), `index`, `len`, `eq`, `ne`, `not`, `and`, `or`, literals, parentheses, comments, and the trimming dashes.
Everything else (functions of sprig, definitions, pipelines) is refused by name, so that nobody believes it ran.

A field that does not exist is an error. Texts, steps and output are bounded. The result is lines `key=value`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fastness.workloads.features.errors import BadTemplate

# Whoever may write rules must not be able to hold up the control plane: ranges nest, and each repeats what is inside.
MAX_TEXT: Final = 64 * 1024
MAX_STEPS: Final = 500_000
MAX_DEPTH: Final = 40
_COMMENT: Final = re.compile(r"-?\s*/\*")
_STOP: Final = re.compile(r"\}\}|[\"`]")
_REST_OF_STRING: Final = re.compile(r"(?:[^\"\\\n]|\\.)*\"")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`)|(?P<number>-?[0-9]{1,18})"
    r"|(?P<field>\$?[A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+|\$[A-Za-z0-9_]*|\.)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>:=|[(),|=]))",
    re.ASCII,
)  # fmt: skip
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_HINT: Final = "Use range, if, index, len, eq and fields; everything else is left out on purpose."


def run(template: str, data: Mapping[str, Any]) -> dict[str, str]:
    """The lines of a template as a mapping; raises BadTemplate."""
    out = _Run()
    _emit(parsed(template), data, {"$": data}, out)
    return lines("".join(out.parts))


def lines(text: str) -> dict[str, str]:
    """`key=value` per line, blank lines left out; raises BadTemplate."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        key, separator, value = line.partition("=")
        if not separator:
            raise BadTemplate("not-a-line", f"{line[:80]!r} has no '='", "Each line of the result is key=value.")
        entries[key.strip()] = value.strip()
    return entries


@dataclass(slots=True)
class _Run:
    """The output of a run, bounded: whoever may write rules must not fill the memory of the control plane."""

    parts: list[str] = field(default_factory=list)
    size: int = 0
    steps: int = 0

    def write(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_TEXT:
            raise BadTemplate("result-too-large", f"the result has more than {MAX_TEXT} characters", "Match less.")
        self.parts.append(text)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise BadTemplate("too-many-steps", f"the template takes more than {MAX_STEPS} steps", "Nest less.")


Ask = Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class _Show:
    ask: Ask


@dataclass(frozen=True, slots=True)
class _Each:
    names: tuple[str, ...]
    ask: Ask
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _When:
    ask: Ask
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...]


Nodes = tuple[Any, ...]  # str, _Show, _Each, _When


def _emit(nodes: Nodes, dot: Any, names: Mapping[str, Any], out: _Run) -> None:
    for node in nodes:
        out.step()
        if isinstance(node, str):
            out.write(node)
        elif isinstance(node, _Show):
            out.write(_printed(node.ask(dot, names)))
        elif isinstance(node, _When):
            _emit(node.body if node.ask(dot, names) else node.otherwise, dot, names, out)
        else:
            _repeat(node, dot, names, out)


def _repeat(node: _Each, dot: Any, names: Mapping[str, Any], out: _Run) -> None:
    values = node.ask(dot, names)
    if not isinstance(values, list | tuple | dict):
        raise BadTemplate("not-a-list", "range needs a list", _HINT)
    pairs: Sequence[tuple[Any, Any]] = sorted(values.items()) if isinstance(values, dict) else list(enumerate(values))
    for key, value in pairs:
        bound = dict(zip(node.names, (key, value) if len(node.names) == 2 else (value,), strict=False))
        _emit(node.body, value, {**names, **bound}, out)
    if not pairs:
        _emit(node.otherwise, dot, names, out)


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise BadTemplate("not-text", "a list cannot be printed", "Use range over it, or index.")


@lru_cache(maxsize=1024)
def parsed(template: str) -> Nodes:
    """The template as a tree; raises BadTemplate."""
    if len(template) > MAX_TEXT:
        raise BadTemplate("template-too-large", f"a template has at most {MAX_TEXT} characters", "Shorten it.")
    pieces = list(_pieces(template))
    nodes, rest, ended = _block(pieces, 0, 0)
    if ended or rest != len(pieces):
        raise BadTemplate("stray-end", f"{ended or 'end'} without range or if", _HINT)
    return nodes


def _pieces(template: str) -> Iterator[tuple[bool, str]]:
    """Text and actions in turn, the trimming done."""
    at, trim = 0, False
    while (begin := template.find("{{", at)) >= 0:
        end = _end_of_action(template, begin + 2)
        inside = template[begin + 2 : end]
        text = template[at:begin]
        before, after = inside[:1] == "-" and inside[1:2].isspace(), inside[-1:] == "-" and inside[-2:-1].isspace()
        text = text.lstrip() if trim else text
        yield False, text.rstrip() if before else text
        trim, at = after, end + 2
        action = inside[1 if before else 0 : -1 if after else None].strip()
        if not action.startswith("/*"):
            yield True, action
    yield False, template[at:].lstrip() if trim else template[at:]


def _end_of_action(template: str, at: int) -> int:
    """Where the `}}` stands that ends an action; raises BadTemplate."""
    if (comment := _COMMENT.match(template, at)) is not None:
        closed = template.find("*/", comment.end())
        at = closed if closed >= 0 else len(template)
    while (stop := _STOP.search(template, at)) is not None:
        if stop[0] == "}}":
            return stop.start()
        if stop[0] == "`":
            at = template.find("`", stop.end()) + 1
        else:
            rest = _REST_OF_STRING.match(template, stop.end())
            at = rest.end() if rest else 0
        if not at:
            break
    raise BadTemplate("open-action", "an action '{{' has no end", "Close it with '}}'.")


def _block(pieces: Sequence[tuple[bool, str]], at: int, depth: int) -> tuple[Nodes, int, str]:
    """Nodes up to an `end` or `else` (returned with the place behind it), or to the end of the text."""
    if depth > MAX_DEPTH:
        raise BadTemplate("too-deep", f"blocks are nested more than {MAX_DEPTH} deep", "Nest less.")
    nodes: list[Any] = []
    while at < len(pieces):
        action, text = pieces[at]
        at += 1
        if not action:
            nodes.append(text)
            continue
        word, _, rest = text.partition(" ")
        if word in ("end", "else"):
            return tuple(nodes), at, text
        if word in ("range", "if"):
            node, at = _compound(word, rest, pieces, at, depth)
            nodes.append(node)
        elif word in ("with", "define", "template", "block", "break", "continue"):
            raise BadTemplate("unknown-action", f"{word} is not known here", _HINT)
        else:
            nodes.append(_Show(_Reader(text).whole()))
    return tuple(nodes), at, ""


def _compound(word: str, head: str, pieces: Sequence[tuple[bool, str]], at: int, depth: int) -> tuple[Any, int]:
    reader = _Reader(head)
    names = reader.names() if word == "range" else ()
    ask = reader.whole()
    body, at, ended = _block(pieces, at, depth + 1)
    otherwise: Nodes = ()
    if ended.startswith("else if ") and word == "if":
        nested, at = _compound("if", ended.removeprefix("else if "), pieces, at, depth + 1)
        return _When(ask, body, (nested,)), at
    if ended == "else":
        otherwise, at, ended = _block(pieces, at, depth + 1)
    if ended != "end":
        raise BadTemplate("no-end", f"{word} has no end", "Close it with {{ end }}.")
    return (_Each(names, ask, body, otherwise) if word == "range" else _When(ask, body, otherwise)), at


class _Reader:
    """The expression inside one action."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        place, text = 0, text.strip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise BadTemplate("bad-expression", f"{text[place : place + 40]!r} cannot be read", _HINT)
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()

    def names(self) -> tuple[str, ...]:
        """The variables of a range, if it has some."""
        words = [text for _, text in self._tokens]
        if ":=" not in words:
            return ()
        head = [word for word in words[: words.index(":=")] if word != ","]
        if not 1 <= len(head) <= 2 or not all(re.fullmatch(r"\$[A-Za-z]\w*", word) for word in head):
            raise BadTemplate("bad-variable", "a range has one or two variables like $one", _HINT)
        self._at = words.index(":=") + 1
        return tuple(head)

    def whole(self) -> Ask:
        """The expression, which must be everything."""
        ask = self._call(0)
        if self._at != len(self._tokens):
            raise BadTemplate("bad-expression", f"{self._tokens[self._at][1]!r} does not belong there", _HINT)
        return ask

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _call(self, depth: int) -> Ask:
        kind, text = self._peek()
        if kind != "word" or text in ("true", "false"):
            return self._operand(depth)
        function = FUNCTIONS.get(text)
        if function is None:
            raise BadTemplate("unknown-function", f"the function {text} is not known here", _HINT)
        self._at += 1
        arguments: list[Ask] = []
        while self._peek()[0] and self._peek()[1] not in (")", "|"):
            arguments.append(self._operand(depth))
        if not function.least <= len(arguments) <= function.most:
            raise BadTemplate(
                "bad-arguments",
                f"{text} does not take {len(arguments)} argument{'s' if len(arguments) != 1 else ''}",
                _HINT,
            )
        return lambda dot, names: function.call(*(ask(dot, names) for ask in arguments))

    def _operand(self, depth: int) -> Ask:
        kind, text = self._peek()
        self._at += 1
        if kind == "string":
            literal = _unquoted(text)
            return lambda dot, names: literal
        if kind == "number":
            number = int(text)
            return lambda dot, names: number
        if kind == "word" and text in ("true", "false"):
            return lambda dot, names: text == "true"
        if kind == "field":
            return _field(text)
        if text == "(" and depth < MAX_DEPTH:
            inner = self._call(depth + 1)
            if self._peek()[1] != ")":
                raise BadTemplate("open-parenthesis", "a parenthesis is not closed", _HINT)
            self._at += 1
            return self._fields_behind(inner)
        raise BadTemplate("bad-expression", f"{text or 'nothing'!r} does not belong there", _HINT)

    def _fields_behind(self, inner: Ask) -> Ask:
        kind, text = self._peek()
        if kind != "field" or not text.startswith(".") or text == ".":
            return inner
        self._at += 1
        path = text[1:].split(".")
        return lambda dot, names: _walk(inner(dot, names), path)


def _field(text: str) -> Ask:
    if text == ".":
        return lambda dot, names: dot
    head, *path = text.split(".")
    if not head:
        return lambda dot, names: _walk(dot, path)
    if not head.startswith("$"):
        raise BadTemplate("bad-expression", f"{text!r} does not begin with a dot or a variable", _HINT)
    return lambda dot, names: _walk(_variable(names, head), path)


def _variable(names: Mapping[str, Any], name: str) -> Any:
    if name not in names:
        raise BadTemplate("unknown-variable", f"there is no variable {name}", _HINT)
    return names[name]


def _walk(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            raise BadTemplate("missing-key", f"there is no {name!r} here", "Match it in the rule, or test it with if.")
        value = value[name]
    return value


def _unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    return re.sub(r"\\(.)", lambda match: _escape(match[1]), text[1:-1])


def _escape(letter: str) -> str:
    if letter not in _ESCAPES:
        raise BadTemplate("bad-escape", f"\\{letter} is not known here", 'Known are \\n, \\t, \\" and \\\\.')
    return _ESCAPES[letter]


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        by_name = isinstance(value, dict) and isinstance(key, str) and key in value
        by_place = isinstance(value, list | tuple | str) and isinstance(key, int) and 0 <= key < len(value)
        if not by_name and not by_place:
            raise BadTemplate("missing-key", f"there is no {key!r} here", "Match it in the rule, or test it with if.")
        value = value[key]
    return value


def _len(value: Any) -> int:
    if isinstance(value, list | tuple | dict | str):
        return len(value)
    raise BadTemplate("bad-arguments", "len needs a list or a text", _HINT)


@dataclass(frozen=True, slots=True)
class _Function:
    call: Callable[..., Any]
    least: int
    most: int


def _first(stop: bool, values: Sequence[Any]) -> Any:
    return next((value for value in values if bool(value) is stop), values[-1])


FUNCTIONS: Final[Mapping[str, _Function]] = {
    "index": _Function(_index, 1, 8),
    "len": _Function(_len, 1, 1),
    "eq": _Function(lambda first, *others: any(first == other for other in others), 2, 16),
    "ne": _Function(lambda first, second: first != second, 2, 2),
    "not": _Function(lambda value: not value, 1, 1),
    "and": _Function(lambda *values: _first(False, values), 1, 16),
    "or": _Function(lambda *values: _first(True, values), 1, 16),
}
