"""Durations as people write them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("0s", 0), ("1.5m", 90), ("250ms", 0.25)])
def test_durations(text: str, seconds: float) -> None:
    assert duration(text, "f") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "-5m", "5 m", "m", "1h 30m", "٣m", None, 5])
def test_what_is_no_duration_is_an_error(text: object) -> None:
    with pytest.raises(DurationError, match="is not a duration") as refused:
        duration(text, "spec.f")
    assert (refused.value.path, refused.value.code) == ("spec.f", "duration-syntax")


@pytest.mark.parametrize("text", ["9" * 31 + "h", "9" * 400 + "h"])
def test_more_time_than_can_be_counted_is_an_error(text: str) -> None:
    with pytest.raises(DurationError) as refused:
        duration(text, "spec.f")
    assert refused.value.code == "duration-range"


@given(st.text(alphabet="0123456789.hms -", max_size=40))
def test_any_text_is_a_duration_or_the_one_error(text: str) -> None:
    with suppress(DurationError):
        assert duration(text, "spec.f") >= timedelta()
