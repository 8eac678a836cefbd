"""Ages as kubectl users know them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.tables.ages import age, human_duration, parse_time
from tests.unit.apiserver.samples import NOW

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (-2, "<invalid>"), (-1, "0s"), (0, "0s"), (1, "1s"), (119, "119s"), (120, "2m"), (121, "2m1s"), (599, "9m59s"),
        (600, "10m"), (179 * MINUTE, "179m"), (3 * HOUR, "3h"), (3 * HOUR + 5 * MINUTE, "3h5m"), (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"), (47 * HOUR, "47h"), (48 * HOUR, "2d"), (51 * HOUR, "2d3h"), (8 * DAY - 1, "7d23h"), (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"), (2 * YEAR, "2y"), (2 * YEAR + DAY, "2y1d"), (8 * YEAR, "8y"), (9 * YEAR + 90 * DAY, "9y"),
    ],
)  # fmt: skip
def test_durations_have_two_or_three_figures(seconds: int, printed: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2026-03-01T11:55:00Z", "5m"),
        ("2026-03-01T11:55:00.123456Z", "4m59s"),
        ("2026-03-01T11:55:00.123456789Z", "4m59s"),
        ("2026-03-01T13:55:00+02:00", "5m"),
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("yesterday", "<invalid>"),
        ("2026-02-30T00:00:00Z", "<invalid>"),
        ("2026-03-01", "<invalid>"),
    ],
)
def test_age_of_a_timestamp(text: str | None, printed: str) -> None:
    assert age(text, NOW) == printed


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_none(text: str) -> None:
    assert parse_time(text) is None or text.endswith(("Z", *"0123456789"))
