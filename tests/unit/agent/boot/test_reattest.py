"""When a machine proves itself again: spread, never later than the interval, longer waits only while nobody can judge."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.boot.reattest import SHORTEST, SPREAD, Rounds
from tests.virtual import SeededEntropy

MINUTES = timedelta(minutes=15)
EVENTS = st.lists(st.sampled_from(["proved", "missed", "refused", "busy"]), min_size=1, max_size=40)


@given(EVENTS, st.integers(0, 2**32), st.integers(1, 86_400))
def test_no_wait_is_longer_than_the_interval_or_shorter_than_a_second(
    events: list[str], seed: int, seconds: int
) -> None:
    rounds = Rounds(SeededEntropy(seed), timedelta(seconds=seconds))
    for event in events:
        if event == "refused":
            wait, _ = rounds.refused("policy-denied")
        else:
            wait = rounds.proved() if event == "proved" else rounds.missed(120.0 if event == "busy" else 0.0)
        assert 1.0 <= wait <= rounds.interval
        if event in ("proved", "refused"):
            assert wait >= rounds.interval * (1 - SPREAD)


def test_a_refusal_is_news_once_and_again_after_a_good_round() -> None:
    rounds = Rounds(SeededEntropy(), MINUTES)
    assert [rounds.refused("policy-denied")[1] for _ in range(3)] == [True, False, False]
    assert rounds.refused("revoked")[1] is True
    rounds.proved()
    assert rounds.refused("revoked")[1] is True


def test_waits_grow_while_nobody_can_judge_and_begin_anew_after_a_good_round() -> None:
    rounds = Rounds(SeededEntropy(), MINUTES)
    waits = [rounds.missed() for _ in range(8)]
    assert waits[0] < 3
    assert 60 <= waits[-1] <= 120
    rounds.proved()
    assert rounds.missed() < 3


def test_the_door_says_when_to_come_back() -> None:
    assert Rounds(SeededEntropy(), MINUTES).missed(30.0) >= 30.0


def test_the_interval_is_the_clusters_and_never_nothing() -> None:
    rounds = Rounds(SeededEntropy(), MINUTES)
    assert rounds.proved(timedelta(minutes=1)) <= 60
    assert rounds.proved(timedelta(0)) >= SHORTEST * (1 - SPREAD)
