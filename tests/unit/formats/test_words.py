"""How a number of things is said."""

from __future__ import annotations

import pytest

from fastness.formats.words import counted


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("machine",), "1 machine"),
        (2, ("machine",), "2 machines"),
        (0, ("machine",), "0 machines"),
        (1, ("entry", "entries"), "1 entry"),
        (7, ("entry", "entries"), "7 entries"),
        (1, ("machine is", "machines are"), "1 machine is"),
    ],
)
def test_only_one_thing_is_said_in_the_singular(number: int, words: tuple[str, ...], text: str) -> None:
    assert counted(number, *words) == text
