"""Templates mean here what they mean to Go: the real text/template and sprig run each of them too.

The table has what people write and what they get wrong; generated calls try every function with arguments of every type.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastness.workloads.features.errors import BadTemplate
from fastness.workloads.features.templates import FUNCTIONS, output, parsed
from tests.component.workloads.template_table import DATA, TABLES, templates
from tests.patience import PATIENCE
from tests.realkube.fixtures import binaries_or_skip
from tools.realkube import TEMPLATES

GENERATED = 3000
POOL = (
    "1", "0", "-3", "2.5", '"a"', '"Hello World"', '""', '"1.2.3"', '"10"', '"é1"', "true", "false", "nil", ".pci", ".pci.device",
    "(index .pci.device 0)", '(list 1 "a" nil)', "(list)", '(dict "a" 1 "b" "x")', "(dict)", "(add 1 2)", "(addf 1.5 1)",
    '(splitList "," "b,a")', "(until 3)", '(semver "1.2.3")', '(index "a" 0)', ".cpu.cpuid", '"%d %s"', '">=1.2"', '(len "abc")',
    '(dict "a" (dict "b" 2))', '"0x1f"', '"-"',
)  # fmt: skip
# Where ours differs, on purpose: what sprig answers with the words of an error is an error here, keys have an order, parts have a
# size, a version is copied whole, nothing is copied as nothing, and the first letter of a word is a letter and not a byte.
ELSEWISE = frozenset({
    "b64dec", "b32dec", "keys", "values", "chunk", "mustChunk", "deepCopy", "mustDeepCopy", "initials",
})  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Path:
    """The program that runs templates with the real engine."""
    return binaries_or_skip(os.environ, TEMPLATES) / "run-template"


def real(engine: Path, asked: Sequence[str]) -> list[dict[str, Any]]:
    """What the real engine makes of templates."""
    lines = "\n".join(json.dumps({"template": template, "data": DATA}) for template in asked)
    done = subprocess.run([engine], input=lines, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(template: str) -> str | None:
    """What ours makes of a template; None for an error."""
    try:
        return output(template, DATA)
    except BadTemplate:
        return None


def differences(engine: Path, asked: Sequence[str]) -> list[tuple[str, object, str | None]]:
    """Templates that one takes and the other does not, or that come out otherwise."""
    answers = real(engine, asked)
    assert len(answers) == len(asked)
    expected = [None if "error" in answer else answer["output"] for answer in answers]
    return [
        (template, answer, mine)
        for template, answer, mine in zip(asked, expected, map(ours, asked), strict=True)
        if answer != mine
    ]


@pytest.mark.parametrize("table", TABLES)
def test_the_table_comes_out_the_same_or_is_refused_by_both(engine: Path, table: str) -> None:
    assert differences(engine, templates(table)) == []


def test_what_go_does_not_parse_is_refused_before_it_is_run(engine: Path) -> None:
    """Admission refuses what cannot be parsed, and must not refuse what only fails on some nodes."""
    asked = [template for table in TABLES for template in templates(table)]
    unlike = []
    for template, answer in zip(asked, real(engine, asked), strict=True):
        refused = False
        try:
            parsed(template)
        except BadTemplate:
            refused = True
        # A number that does not fit fails on every node, so there is no reason to wait.
        if refused != answer.get("parse", "overflows int" in answer.get("error", "")):
            unlike.append((template, answer))
    assert unlike == []


class Calls:
    """Random calls of all functions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = sorted(FUNCTIONS.keys() - ELSEWISE - {"call"})

    def expression(self, depth: int = 0) -> str:
        """A call, mostly with as many arguments as the function takes."""
        name = self._random.choice(self._names)
        takes = FUNCTIONS[name].takes
        count = len(takes.rstrip("*")) if self._random.random() < 0.8 else self._random.randint(0, 4)
        if takes.endswith("*"):
            count = max(0, count - 1) + self._random.randint(0, 2)
        words = [name, *(self._argument(depth) for _ in range(count))]
        into = f" | {self.expression(depth + 1)}" if depth < 2 and self._random.random() < 0.2 else ""
        return f"{' '.join(words)}{into}"

    def _argument(self, depth: int) -> str:
        if depth > 1 or self._random.random() < 0.8:
            return self._random.choice(POOL)
        return f"({self.expression(depth + 1)})"


def test_generated_calls_come_out_the_same_or_are_refused_by_both(engine: Path) -> None:
    calls = Calls(seed=59)
    asked = [f"{{{{ {calls.expression()} }}}}" for _ in range(GENERATED)]
    assert differences(engine, asked) == []


PIECES = (
    "a", "b", "c", ".", "[ab]", "[^a]", "\\d", "\\w", "(", ")", "(?:", "|", "*", "+", "?", "*?", "+?", "{1,2}", "{0,2}", "{2}",
    "^", "$", "\\b", "é", "[a-c]", "(?i:", "x", "A",
)  # fmt: skip
FORMS = (
    "{{ mustRegexFindAll %s %s -1 | join `;` }}", "{{ mustRegexReplaceAll %s %s `<$1>` }}",
    "{{ mustRegexSplit %s %s -1 | join `;` }}", "{{ mustRegexFind %s %s }}",
)  # fmt: skip


def test_generated_patterns_find_the_same_places_or_are_refused_by_both(engine: Path) -> None:
    generator = random.Random(60)

    def text(pieces: Sequence[str], most: int) -> str:
        return json.dumps("".join(generator.choices(pieces, k=generator.randint(0, most))), ensure_ascii=False)

    asked = [generator.choice(FORMS) % (text(PIECES, 7), text("abcAx é1\n", 8)) for _ in range(GENERATED)]
    assert differences(engine, asked) == []
