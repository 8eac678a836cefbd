"""Tables for people."""

from __future__ import annotations

from fastness.cli.output import table


def test_columns_line_up_and_the_last_is_not_padded() -> None:
    assert table([["A", "LONG"], ["wide", "x"]]) == "A     LONG\nwide  x"


def test_no_rows_print_nothing() -> None:
    assert table([]) == ""
