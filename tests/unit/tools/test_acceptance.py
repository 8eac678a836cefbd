"""Rows of the acceptance tables and the markers that claim them, on trees of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import acceptance

ROOT = Path(__file__).resolve().parents[3]
TABLE = "| row | a user does | a user must see | open |\n| --- | --- | --- | --- |\n"


def tree(root: Path, rows: str, test: str = "") -> Path:
    """A repository with one table and one test file."""
    (root / "docs/acceptance").mkdir(parents=True)
    (root / "docs/acceptance/000.md").write_text(TABLE + rows)
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text(test)
    return root


def problems(root: Path) -> list[str]:
    return acceptance.problems(acceptance.rows(root), acceptance.proved(root))


CLAIM = '@pytest.mark.row("000-01")\ndef test_it(): ...\n'


def test_a_row_that_a_test_proves_is_in_order(tmp_path: Path) -> None:
    root = tree(tmp_path, "| 000-01 | boots | a node |  |\n", CLAIM)
    assert problems(root) == []
    assert acceptance.proved(root) == {"000-01": ["tests/test_it.py::test_it"]}


def test_a_marker_without_a_row_is_refused(tmp_path: Path) -> None:
    root = tree(tmp_path, "| 000-02 | boots | a node | missing: all of it |\n", CLAIM)
    assert problems(root) == ["tests/test_it.py::test_it: there is no row 000-01 in docs/acceptance"]


def test_a_row_without_a_test_must_say_why(tmp_path: Path) -> None:
    root = tree(tmp_path, "| 000-01 | boots | a node |  |\n")
    assert problems(root) == ["000-01: no test carries it, so its column `open` must say why"]


def test_a_row_is_not_both_proved_and_open(tmp_path: Path) -> None:
    root = tree(tmp_path, "| 000-01 | boots | a node | missing |\n", CLAIM)
    assert problems(root) == ["000-01: tests/test_it.py::test_it proves it, so its column `open` must be empty"]


@pytest.mark.parametrize(
    "test",
    [
        '@pytest.mark.row("000-01", "000-02")\ndef test_it(): ...\n',
        "@pytest.mark.row(ROW)\ndef test_it(): ...\n",
        'pytestmark = pytest.mark.row("000-01")\n',
        'param = pytest.param(1, marks=pytest.mark.row("000-01"))\n',
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(tmp_path: Path, test: str) -> None:
    root = tree(tmp_path, "| 000-01 | boots | a node |  |\n", test)
    with pytest.raises(acceptance.BadRow):
        acceptance.proved(root)


@pytest.mark.parametrize(
    "rows", ["| 000-01 | boots | a node |\n", "| 001-01 | boots | a node | missing |\n", "| 000-01 | a | b | c |\n" * 2]
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(acceptance.BadRow):
        acceptance.rows(tree(tmp_path, rows))


def test_every_row_of_the_five_documents_is_there() -> None:
    assert [row[:2] for row in acceptance.summary(acceptance.rows(ROOT), {})] == [
        ("000", "98"), ("001", "197"), ("002", "36"), ("003", "99"), ("004", "99"),
    ]  # fmt: skip
