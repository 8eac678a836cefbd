"""What tests say about growth can fail: something quadratic is noticed, something linear is not, and lines are counted."""

from __future__ import annotations

import pytest

from tests import growth
from tests.growth import in_proportion, lines


def test_work_in_proportion_to_its_input_is_told_from_work_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that goes by what a work says that it took: real ones would make this test the one that depends on them."""
    monkeypatch.setattr(growth, "_seconds", lambda work, size: work(size))
    assert in_proportion(lambda size: size * 1e-5, 10_000)
    assert not in_proportion(lambda size: size**2 * 1e-7, 10_000)
    noise = iter([0.001, 0.9, 0.001, 0.1])
    assert in_proportion(lambda _size: next(noise), 10_000), "a slow look beside others counts for nothing"


def test_lines_are_counted_with_those_of_what_is_called() -> None:
    def called() -> int:
        total = 0
        for number in range(10):
            total += number
        return total

    assert lines(lambda: None) < lines(called) < 40
    assert lines(called) == lines(called)
