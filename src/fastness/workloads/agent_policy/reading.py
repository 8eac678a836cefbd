"""The statements of a policy text, with their lines, without running it.

Only the outer shape is read: package, defaults, and rules with their spans. Comments and texts are blanked first, so that nothing
inside them looks like a statement. A rule is unconditional when it has no body, or one that is plainly true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# What the agent in the guest refuses to load.
MAX_POLICY: Final = 16 * 1024 * 1024
MAX_LINE: Final = 64 * 1024
MAX_LINES: Final = 200_000
_HIDDEN: Final = re.compile(r"#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`")
_DEFAULT: Final = re.compile(r"default\s+([A-Za-z_]\w*)\s*(?::=|=)\s*(.*)", re.DOTALL)
_RULE: Final = re.compile(r"([A-Za-z_]\w*)(\s*(?::=|=|\{|\[|\(|if\b|contains\b)|\s*\Z)", re.DOTALL)
_PACKAGE: Final = re.compile(r"package\s+([\w.]+)")
_HEAD: Final = re.compile(
    r"[A-Za-z_]\w*\s*(?:(?::=|=)\s*(?P<value>true|false|\{[^{}]*\}))?\s*(?P<body>.*)\Z", re.DOTALL
)
_PLAINLY_TRUE: Final = re.compile(r"(?:if\s+)?(?:\{\s*)?(?:true|1\s*==\s*1)?(?:\s*\})?\s*\Z")


@dataclass(frozen=True, slots=True)
class Statement:
    """A default or a rule: its name, its line, where it stands, and what it says."""

    name: str
    line: int
    start: int
    end: int
    is_default: bool
    value: str
    unconditional: bool

    @property
    def allows(self) -> bool:
        """Whether it says yes when it applies."""
        return self.value != "false" and not re.search(r"allowed\"?\s*:\s*false", self.value)


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The statements of a text."""

    text: str
    package: str
    statements: tuple[Statement, ...]

    def named(self, name: str) -> list[Statement]:
        """The statements about one name, in order."""
        return [statement for statement in self.statements if statement.name == name]

    def default(self, name: str) -> Statement | None:
        """The default that counts: the agent takes the first."""
        # As regorus does, the engine in the agent; OPA refuses a text with two.
        return next((statement for statement in self.named(name) if statement.is_default), None)

    def duplicates(self) -> list[tuple[Statement, Statement]]:
        """Defaults that were said before, each with the first."""
        defaults = [statement for statement in self.statements if statement.is_default]
        first: dict[str, Statement] = {}
        pairs = [(first.setdefault(statement.name, statement), statement) for statement in defaults]
        return [(before, again) for before, again in pairs if before is not again]

    def without(self, *statements: Statement) -> str:
        """The text with some statements blanked; lines stay where they are."""
        text = self.text
        for statement in statements:
            text = (
                text[: statement.start]
                + re.sub(r"[^\n]", " ", text[statement.start : statement.end])
                + text[statement.end :]
            )
        return text

    def loadable(self) -> str:
        """The text as the agent understands it: of several defaults only the first is left."""
        return self.without(*(again for _, again in self.duplicates()))


def read_policy(text: str) -> PolicyText:
    """The statements of a text; total."""
    hidden = blanked(text)
    package = _PACKAGE.search(hidden)
    statements = []
    for start, end in _spans(hidden):
        statement = _statement(text, hidden, start, end)
        if statement is not None:
            statements.append(statement)
    return PolicyText(text, package[1] if package else "", tuple(statements))


def blanked(text: str) -> str:
    """The text with comments and quoted texts made harmless; every character stays at its place."""
    return _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " " if match[0].startswith("#") else "_", match[0]), text)


def _spans(hidden: str) -> Iterator[tuple[int, int]]:
    """From each line that begins a statement to the next such line."""
    depth, begin, at = 0, None, 0
    for line in hidden.splitlines(keepends=True):
        # An else belongs to the rule before it.
        if depth == 0 and line[:1].isalpha() and not line.startswith("else"):
            if begin is not None:
                yield begin, at
            begin = at
        depth = max(0, depth + sum(line.count(c) for c in "{[(") - sum(line.count(c) for c in "}])"))
        at += len(line)
    if begin is not None:
        yield begin, at


def _statement(text: str, hidden: str, start: int, end: int) -> Statement | None:
    shape = hidden[start:end].rstrip()
    line = text.count("\n", 0, start) + 1
    if match := _DEFAULT.match(shape):
        value = text[start + match.start(2) : start + match.end(2)].strip()
        return Statement(match[1], line, start, end, True, value, True)
    match = _RULE.match(shape)
    if match is None or match[1] in ("package", "import", "default"):
        return None
    head = _HEAD.match(shape)
    value, body = (head["value"] or "true", head["body"]) if head else ("true", shape)
    value = text[start + head.start("value") : start + head.end("value")] if head and head["value"] else value
    return Statement(match[1], line, start, end, False, value, _PLAINLY_TRUE.match(body.strip()) is not None)
