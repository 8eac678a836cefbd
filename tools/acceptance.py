"""The rows of docs/acceptance and the tests that prove them.

    known = rows(root)                     # every row: what a user does, what a user must see, why no test proves it
    proofs = proved(root)                  # row id → the tests that carry it
    problems(known, proofs)                # what `make check` refuses
    summary(known, proofs)                 # the figures of docs/reference/acceptance.md

A test claims a row by `@pytest.mark.row("000-51")`, which is read from the source, so that no test has to be imported for it.

* A marker names a row that exists; a marker whose id is not a plain string could claim anything and is refused.
* A row is either proved by a test or says why it is not: never both, never neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROWS = Path("docs/acceptance")
TESTS = Path("tests")
_ROW = re.compile(r"\| (\d{3}-\d{2,3}) \|")
_CELL = re.compile(r"(?<!\\)\|")
_COLUMNS = 4
_MARKER = "pytest.mark.row"


class BadRow(Exception):
    """A table or a marker that cannot be read."""


class Row(NamedTuple):
    """One thing that a source document has somebody do or see; `open` says why no test proves it."""

    id: str
    does: str
    sees: str
    open: str


def rows(root: Path) -> list[Row]:
    """All rows, in the order of their tables; raises BadRow."""
    parsed = [row for path in sorted((root / ROWS).glob("[0-9]*.md")) for row in _table(path)]
    ids = [row.id for row in parsed]
    if twice := sorted({identifier for identifier in ids if ids.count(identifier) > 1}):
        raise BadRow(f"{ROWS}: rows that stand there twice: {', '.join(twice)}")
    return parsed


def _table(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not _ROW.match(line):
            continue
        cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
        if len(cells) != _COLUMNS or not cells[0].startswith(f"{path.stem}-"):
            raise BadRow(f"{ROWS / path.name}:{number}: a row has {_COLUMNS} cells and a number of its own table")
        yield Row(*cells)


def proved(root: Path) -> dict[str, list[str]]:
    """The tests that claim each row, as pytest names them; raises BadRow."""
    claims: dict[str, list[str]] = {}
    for path in sorted((root / TESTS).rglob("test_*.py")):
        text = path.read_text()
        if "mark.row" not in text:
            continue
        place, tree = path.relative_to(root), ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        here = [(row, function.name) for function in functions for row in _claimed(function, place)]
        for row, name in here:
            claims.setdefault(row, []).append(f"{place}::{name}")
        if len(here) != sum(
            isinstance(node, ast.Attribute) and ast.unparse(node) == _MARKER for node in ast.walk(tree)
        ):
            raise BadRow(f"{place}: a row is claimed by a decorator of a test function, and by nothing else")
    return claims


def _claimed(function: ast.FunctionDef | ast.AsyncFunctionDef, place: Path) -> Iterator[str]:
    for decorator in function.decorator_list:
        if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == _MARKER):
            continue
        named = [
            argument.value
            for argument in decorator.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        if len(named) != 1 or len(decorator.args) != 1 or decorator.keywords:
            raise BadRow(f'{place}:{decorator.lineno}: a marker names one row as text: pytest.mark.row("000-51")')
        yield named[0]


def problems(all_rows: Sequence[Row], proofs: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong between rows and markers, a line each."""
    ids = {row.id for row in all_rows}
    wrong = [
        f"{test}: there is no row {row} in {ROWS}" for row, tests in proofs.items() if row not in ids for test in tests
    ]
    for row in all_rows:
        if row.id in proofs and row.open:
            wrong.append(f"{row.id}: {proofs[row.id][0]} proves it, so its column `open` must be empty")
        elif row.id not in proofs and not row.open:
            wrong.append(f"{row.id}: no test carries it, so its column `open` must say why")
    return wrong


def summary(all_rows: Sequence[Row], proofs: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """Per table: its number, how many rows it has, how many are proved."""
    tables = sorted({row.id[:3] for row in all_rows})
    counted = [(table, [row for row in all_rows if row.id.startswith(table)]) for table in tables]
    return [(table, str(len(of)), str(sum(row.id in proofs for row in of))) for table, of in counted]
