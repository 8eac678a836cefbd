"""What tests say about growth can fail: something quadratic is noticed, something linear is not, and lines are counted."""

from __future__ import annotations

import re

from tests.growth import in_proportion, lines

TRAILING = re.compile("a+$")  # looks on from every place of a long run that does not end the text


def test_work_in_proportion_to_its_input_is_told_from_work_that_is_not() -> None:
    assert in_proportion(lambda size: ("a" * size).count("b"), 2_000_000)
    assert not in_proportion(lambda size: TRAILING.search("a" * size + "b"), 6_000)


def test_lines_are_counted_with_those_of_what_is_called() -> None:
    def called() -> int:
        total = 0
        for number in range(10):
            total += number
        return total

    assert lines(lambda: None) < lines(called) < 40
    assert lines(called) == lines(called)
