"""The command line of the benchmark: what can be chosen, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as command
from bench.__main__ import FAMILIES, arguments, sizes_of
from bench.cases import CASES, OBJECT
from bench.figures import Single, Spread
from bench.report import Results
from bench.targets import TargetError


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


def test_what_was_measured_before_a_failure_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(_options: object, results: Results) -> None:
        results.singles.append(Single("agent", Spread.of([40.0]), "MiB"))
        raise TargetError("fastness up ended")

    monkeypatch.setattr(command, "measure", half)
    output = tmp_path / "results.json"
    assert command.main(["agent", "--output", str(output)]) == 2
    assert [single.name for single in Results.from_bytes(output.read_bytes()).singles] == ["agent"]
    assert "fastness up ended" in capsys.readouterr().err


def test_a_failure_at_once_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_options: object, _results: Results) -> None:
        raise TargetError("there is no nginx")

    monkeypatch.setattr(command, "measure", none)
    assert command.main(["serve", "--output", str(tmp_path / "results.json")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [["--output", "/x/y.json", "list"], ["list", "--output=/x/y.json"]])
def test_the_page_does_not_say_where_results_went(given: list[str]) -> None:
    assert command.command_line(given) == "python -m bench list"
