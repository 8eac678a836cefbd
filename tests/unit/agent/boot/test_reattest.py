"""When a machine proves itself again: spread, never later than the interval, longer waits only while nobody can judge."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.boot import reattest as module
from fastness.agent.boot.reattest import SHORTEST, SPREAD, Rounds, Staying
from fastness.agent.boot.volumes import DiskRefused
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.virtual import SeededEntropy, VirtualClock

NOW = datetime(2026, 11, 1, tzinfo=UTC)

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


class Answering:
    """A broker that believes everybody."""

    machine, reattest = "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab", None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def attest(self, keys: object) -> None:
        pass


async def test_a_good_round_is_told_with_the_address_and_a_note_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[tuple[str, str]] = []

    def noted(machine: str, broker: str) -> None:
        rounds.append((machine, broker))
        raise DiskRefused("bad-note", "the device is gone")

    monkeypatch.setattr(module, "BrokerClient", lambda *_: Answering())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    attester = SimAttester(SimVendor(SeededEntropy(), NOW).chip("snp").boot())
    staying = Staying(attester, lambda: "https://b.example", lambda: tls, VirtualClock(), SeededEntropy(), proved=noted)
    assert await staying.round() > 60
    assert await staying.round() > 60
    assert rounds == [(Answering.machine, "https://b.example")] * 2
