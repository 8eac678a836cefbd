"""Two shapes of waiting that everything long-running has: for news or for a time, and for a block with tasks beside it.

    await news_or_time(changed, clock, 30.0)
    async with beside("gate", rotation=rotation.run, events=events.run): ...

Both must not swallow a cancellation that comes at the very moment when they end: whoever does that goes on for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fastness.runtime.clock import Clock


async def news_or_time(news: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait until there is news, at most so long; whether there was."""
    told, slept = asyncio.ensure_future(news.wait()), asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((told, slept), return_when=asyncio.FIRST_COMPLETED)
        return told.done()
    finally:
        told.cancel()
        slept.cancel()
        await asyncio.wait((told, slept))  # not by awaiting each: their cancellation would hide one of our own


@asynccontextmanager
async def background(name: str, **tasks: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run tasks for the time of the block; one that fails ends the block."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(task(), name=f"{name}:{what}") for what, task in tasks.items()]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
