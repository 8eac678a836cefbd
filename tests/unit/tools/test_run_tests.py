"""How a run of all lanes is summed up: what failed, what took long, who needed a second chance, and what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from tools.lanes import Lane
from tools.run_tests import CHANCES, COSTLY, EndedLane, costliest, environment, good, recorded, summary


def ended(code: int = 0, chances: int = 0, long: list[dict[str, Any]] | None = None) -> EndedLane:
    entries = [
        {"test": f"test_{number}.py::test_it", "failure": f"it.py:{number}: timed out"} for number in range(chances)
    ]
    books = {"seconds": {"test_a.py": 4.56}, "processor": {}, "second_chances": entries, "long": long or []}
    return EndedLane(Lane("lane 1", ("test_a.py",), 7), code, 8.4, "....\n4 passed in 8 s\n", books)


def test_a_run_is_as_good_as_its_worst_lane() -> None:
    assert good([ended(), ended()])
    assert good([ended(), ended(code=5)])  # nothing selected in that lane
    assert not good([ended(), ended(code=1)])


def test_a_lane_that_wrote_no_ledger_is_judged_by_its_code() -> None:
    assert not good([EndedLane(Lane("lane 1", (), 0), -9, 1, "")])
    assert summary([EndedLane(Lane("lane 1", (), 0), -9, 1, "killed")])[0].startswith("FAILED lane 1")


@pytest.mark.parametrize("lanes", [[CHANCES], [CHANCES - 1, 1]])
def test_a_run_with_few_second_chances_is_good(lanes: list[int]) -> None:
    assert good(ended(chances=count) for count in lanes)


@pytest.mark.parametrize("lanes", [[CHANCES + 1], [CHANCES, 1]])
def test_a_run_with_too_many_second_chances_has_failed_and_says_so(lanes: list[int]) -> None:
    assert not good(ended(chances=count) for count in lanes)
    assert "more than 5 second chances" in summary(ended(chances=count) for count in lanes)[-1]


def test_second_chances_are_listed_by_name_with_the_first_failure() -> None:
    assert summary([ended(chances=1)]) == [
        "ok     lane 1      8 s, 7 expected  4 passed in 8 s",
        "1 needed a second chance:",
        "  test_0.py::test_it\n    it.py:0: timed out",
    ]


def test_long_tests_are_listed_with_their_reason_the_longest_first() -> None:
    entries = [
        {"test": "test_a.py::test_it", "seconds": 61.0, "reason": ""},
        {"test": "test_b.py::test_it", "seconds": 90.0, "reason": "boots a machine twice"},
    ]
    assert summary([ended(long=entries)])[1:] == [
        "    90 s  test_b.py::test_it: boots a machine twice",
        "    61 s  test_a.py::test_it: does not say why",
    ]


def test_files_are_named_by_what_they_took_of_the_processor_the_costliest_first() -> None:
    took = {f"test_{number}.py": float(number) for number in range(COSTLY + 1)}
    lane = EndedLane(Lane("lane 1", (), 0), 0, 1, "", {"processor": took})
    lines = costliest([lane])
    assert lines[0] == "    15 s of a processor  test_15.py"
    assert len(lines) == COSTLY


def test_what_ran_is_recorded_and_what_did_not_stays_as_it_was() -> None:
    before = {"test_a.py": 1.0, "test_b.py": 2.0, "test_gone.py": 3.0}
    run = [ended(), EndedLane(Lane("lane 2", (), 0), -9, 1, "")]
    assert recorded(run, before, ["test_b.py", "test_a.py", "test_new.py"]) == {"test_a.py": 4.6, "test_b.py": 2.0}


def test_a_lane_keeps_what_it_compiled() -> None:
    assert environment({"PATH": "/bin", "PYTHONDONTWRITEBYTECODE": "1"}) == {"PATH": "/bin"}
