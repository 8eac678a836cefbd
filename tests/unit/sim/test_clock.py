"""The clock of a simulated cluster leaps: sleepers wake, the time of day comes back, monotonic time never does."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from fastness.kube.errors import BadRequest
from fastness.sim.clock import FARTHEST, LeapingClock
from fastness.sim.faults.clocks import leap_of
from tests.virtual import START, VirtualClock, settle

HOUR = timedelta(hours=1)


async def test_a_leap_wakes_whoever_slept_long_enough_and_nobody_else() -> None:
    clock = LeapingClock(VirtualClock())
    short, long = (asyncio.ensure_future(clock.sleep(seconds)) for seconds in (1800.0, 7200.0))
    await settle()
    clock.leap(HOUR)
    await settle()
    assert (short.done(), long.done()) == (True, False)
    clock.leap(HOUR)
    await settle()
    assert long.done()


async def test_a_sleep_that_was_cancelled_is_forgotten() -> None:
    clock = LeapingClock(VirtualClock())
    sleeper = asyncio.ensure_future(clock.sleep(1000.0))
    await settle()
    sleeper.cancel()
    await settle()
    clock.leap(HOUR)
    assert sleeper.cancelled()


async def test_a_sleep_of_no_time_gives_others_a_turn() -> None:
    clock, turns = LeapingClock(VirtualClock()), list[str]()

    async def other() -> None:
        turns.append("other")

    task = asyncio.ensure_future(other())
    await clock.sleep(0)
    turns.append("sleeper")
    await task
    assert turns == ["other", "sleeper"]


def test_the_time_of_day_goes_back_and_monotonic_time_does_not() -> None:
    clock = LeapingClock(VirtualClock())
    clock.leap(HOUR)
    assert (clock.now(), clock.monotonic(), clock.ahead) == (START + HOUR, 3600.0, HOUR)
    clock.back(HOUR)
    assert (clock.now(), clock.monotonic()) == (START, 3600.0)
    clock.back(HOUR)
    assert clock.now() == START


@pytest.mark.parametrize("by", [timedelta(), -HOUR, FARTHEST + timedelta(seconds=1)])
def test_a_leap_back_or_too_far_is_refused_and_changes_nothing(by: timedelta) -> None:
    clock = LeapingClock(VirtualClock())
    with pytest.raises(ValueError, match="never further than 45 days"):
        clock.leap(by)
    assert clock.now() == START


def test_what_an_earlier_run_leapt_is_taken_up() -> None:
    clock = LeapingClock(VirtualClock())
    clock.resume(HOUR)
    assert (clock.now(), clock.monotonic()) == (START + HOUR, 0.0)
    with pytest.raises(ValueError, match="leaps forward"):
        clock.leap(FARTHEST)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("+15m", 900), ("45m", 2700), ("1h30m", 5400), ("+90s", 90), ("+7d", 604800), ("1d12h", 129600)],
)
def test_leaps_are_written_as_durations(text: str, seconds: int) -> None:
    assert leap_of(text).total_seconds() == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "soon",
        "-15m",
        "0s",
        "9" * 400 + "h",
        "1081h",
        "46d",
        "d",
        "7dd",
        "1h2d",
        "9" * 5000 + "d",
        "++5m",
        "5m ",
    ],
)
def test_what_is_no_leap_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadRequest, match=r"15m|45 days"):
        leap_of(text)
