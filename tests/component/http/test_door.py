"""What doors share around their applications: the names of their certificates, and tasks that run beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastness.http.certificates import LoopListener
from fastness.http.listener import Listener
from fastness.http.opening import ListenOptions, listener_of
from fastness.runtime.tasks import background, news_or_time
from tests.patience import PATIENCE
from tests.virtual import VirtualClock


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # nothing is bound
def test_an_address_that_means_all_is_no_name_of_a_certificate(host: str) -> None:
    assert ListenOptions(host, names=("door.example",)).hosts == ["door.example", "127.0.0.1", "localhost"]


def test_the_own_address_is_a_name_once() -> None:
    assert ListenOptions("10.0.0.7").hosts == ["10.0.0.7", "127.0.0.1", "localhost"]
    assert ListenOptions("127.0.0.1", names=("localhost",)).hosts == ["localhost", "127.0.0.1"]


async def test_a_door_stays_in_our_loop_unless_the_other_listener_is_asked_for() -> None:
    async def app(_scope: object, _receive: object, _send: object) -> None:
        """Nobody comes. uvicorn calls what it can call without arguments, and would take this for a factory."""

    listener = listener_of(app, VirtualClock(), ListenOptions())
    assert isinstance(listener, LoopListener)
    await listener.stop()


async def test_a_listener_that_cannot_start_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def startup(*_: Any, **__: Any) -> None:
        raise OSError("too many open files")

    listener = Listener(lambda *_: None)
    monkeypatch.setattr(listener._server, "startup", startup)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(OSError, match="too many open files"):
            await listener.start()
    listener._socket.close()


async def test_waiting_ends_with_news_and_with_time() -> None:
    clock, news = VirtualClock(), asyncio.Event()
    waiting = asyncio.create_task(news_or_time(news, clock, 30.0))
    await clock.advance(29.0)
    assert not waiting.done()
    await clock.advance(1.0)
    assert await waiting is False
    news.set()
    assert await news_or_time(news, clock, 30.0) is True


async def test_waiting_that_is_cancelled_as_it_ends_is_cancelled() -> None:
    clock, news = VirtualClock(), asyncio.Event()
    waiting = asyncio.create_task(news_or_time(news, clock, 30.0))
    await clock.advance(0.0)
    news.set()
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_runs_beside_a_block_ends_with_it_and_ends_it_when_it_fails() -> None:
    ended = list[str]()

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("lasting")

    async def failing() -> None:
        raise OSError("the disk is gone")

    async with background("door", lasting=lasting):
        await asyncio.sleep(0)
    assert ended == ["lasting"]
    with pytest.raises(ExceptionGroup) as raised:
        async with background("door", lasting=lasting, failing=failing):
            await asyncio.Event().wait()
    assert ended == ["lasting", "lasting"]
    assert isinstance(raised.value.exceptions[0], OSError)
