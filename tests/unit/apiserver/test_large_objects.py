"""Large work leaves the loop, small work stays, and only so much may wait."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fastness.apiserver.large_objects import HEAVY_BYTES, HeavyWork
from fastness.kube.errors import TooManyRequests
from fastness.observe import logs


async def test_small_work_is_done_here_and_large_work_elsewhere_in_the_same_context() -> None:
    heavy, here = HeavyWork(), threading.get_ident()
    logs.begin_correlation("c-7")
    assert await heavy.run(HEAVY_BYTES, threading.get_ident) == here
    assert await heavy.run(HEAVY_BYTES + 1, threading.get_ident) != here
    assert await heavy.run(HEAVY_BYTES + 1, logs.current_correlation) == "c-7"
    heavy.close()


async def test_the_loop_goes_on_while_large_work_is_done() -> None:
    heavy, goes_on = HeavyWork(), threading.Event()
    asyncio.get_running_loop().call_soon(goes_on.set)
    assert await heavy.run(HEAVY_BYTES + 1, lambda: goes_on.wait(30))
    heavy.close()


async def test_more_than_may_wait_are_asked_to_come_again() -> None:
    heavy, release = HeavyWork(most=2), threading.Event()
    working = [asyncio.create_task(heavy.run(HEAVY_BYTES + 1, lambda: release.wait(30))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await heavy.run(HEAVY_BYTES + 1, lambda: None)
    assert await heavy.run(1, lambda: "small work is not held up") == "small work is not held up"
    release.set()
    assert await asyncio.gather(*working) == [True, True]
    assert await heavy.run(HEAVY_BYTES + 1, lambda: "and later there is room") == "and later there is room"
    heavy.close()


async def test_what_the_work_raises_is_raised() -> None:
    heavy = HeavyWork()

    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await heavy.run(HEAVY_BYTES + 1, fails)
    heavy.close()
