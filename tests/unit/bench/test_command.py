"""The command line of the benchmark: what can be chosen, and what is refused."""

from __future__ import annotations

import pytest

from bench.__main__ import FAMILIES, arguments, sizes_of
from bench.cases import CASES, OBJECT


def test_everything_is_measured_unless_something_is_named() -> None:
    assert arguments([]).family == []
    assert arguments(["create", "list"]).family == ["create", "list"]


@pytest.mark.parametrize("given", [["crate"], ["--rounds", "0"]])
def test_what_cannot_be_measured_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(given)
    assert ended.value.code == 2
    assert given[0] in capsys.readouterr().err


def test_sizes_are_sorted_and_full_goes_to_a_hundred_thousand() -> None:
    assert sizes_of(arguments(["--sizes", "1000,100,1000"])) == [100, 1000]
    assert sizes_of(arguments([]))[-1] == 10_000
    assert sizes_of(arguments(["--full"]))[-1] == 100_000


def test_every_row_belongs_to_a_family_that_can_be_chosen() -> None:
    assert {family for _, family, _ in CASES.values()} < set(FAMILIES)


def test_the_object_is_as_small_as_the_page_says() -> None:
    assert 300 <= len((OBJECT % "blue").replace("{n}", "000001")) <= 360
