"""The work queue: each key once, one worker per key, later and later after failures."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kube.controllers.queue import QueueClosed, WorkQueue
from fastness.runtime.retries import Backoff
from tests.virtual import SeededEntropy, VirtualClock


def queue(clock: VirtualClock | None = None) -> WorkQueue[str]:
    return WorkQueue(clock or VirtualClock(), SeededEntropy(), Backoff(first=1.0, most=8.0))


async def test_a_key_that_waits_is_not_added_twice() -> None:
    work = queue()
    for _ in range(5):
        work.add("a")
    work.add("b")
    assert [await work.next(), await work.next()] == ["a", "b"]
    assert len(work) == 0


async def test_a_key_that_is_worked_on_comes_back_when_that_is_done() -> None:
    work = queue()
    work.add("a")
    key = await work.next()
    work.add("a")
    work.add("a")
    assert len(work) == 0, "nobody else may take it"
    work.done(key)
    assert await work.next() == "a"
    work.done("a")
    assert work.idle


async def test_a_delayed_key_comes_when_its_time_has_come() -> None:
    clock = VirtualClock()
    work = queue(clock)
    work.add_after("a", 10)
    waiting = asyncio.ensure_future(work.next())
    await clock.advance(9.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert await waiting == "a"


async def test_the_earlier_of_two_appointments_counts() -> None:
    clock = VirtualClock()
    work = queue(clock)
    work.add_after("a", 10)
    work.add_after("a", 2)
    work.add_after("a", 5)
    waiting = asyncio.ensure_future(work.next())
    await clock.advance(2.1)
    assert waiting.done()
    work.done("a")
    await clock.advance(20)
    assert len(work) == 0, "the later ones were for the same work"


async def test_failures_wait_longer_and_success_starts_over() -> None:
    work = queue()
    delays = [work.retry("a") for _ in range(6)]
    fulls = [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert all(full / 2 <= delay <= full for delay, full in zip(delays, fulls, strict=True))
    work.forget("a")
    assert work.retry("a") <= 1.0


async def test_closing_tells_whoever_waits() -> None:
    work = queue()
    waiting = asyncio.ensure_future(work.next())
    await asyncio.sleep(0)
    work.close()
    with pytest.raises(QueueClosed):
        await waiting


@given(
    st.lists(st.tuples(st.sampled_from(["add", "after", "take", "done", "retry"]), st.sampled_from("abc")), max_size=60)
)
def test_no_key_is_ever_in_two_hands_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    async def play() -> None:
        clock = VirtualClock()
        work = queue(clock)
        hands: set[str] = set()
        pending: set[str] = set()
        for action, key in steps:
            if action == "add":
                work.add(key)
                pending.add(key)
            elif action == "after":
                work.add_after(key, 1)
                pending.add(key)
            elif action == "retry":
                work.retry(key)
                pending.add(key)
            elif action == "take" and len(work):
                taken = await work.next()
                assert taken not in hands
                hands.add(taken)
                pending.discard(taken)
            elif action == "done" and hands:
                done = sorted(hands)[0]
                hands.discard(done)
                work.done(done)
        for key in sorted(hands):
            work.done(key)
        await clock.advance(1000)
        work.release_due()
        rest = set()
        while len(work):
            rest.add(await work.next())
        assert pending <= rest

    asyncio.run(play())
