"""Shapes of waiting that everything long-running has: for news or a time, for a block with tasks beside it, for work or a stop.

    await news_or_time(changed, clock, 30.0)
    async with background("gate", rotation=rotation.run, events=events.run): ...
    await work_until(stop, serve(), leave=8.0)
    await uninterrupted(lambda: path.write_bytes(content))

None may swallow a cancellation that comes at the very moment when it ends: whoever does that goes on for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastness.runtime.clock import Clock

T = TypeVar("T")


async def news_or_time(news: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait until there is news, at most so long; whether there was."""
    arrived, slept = asyncio.ensure_future(news.wait()), asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((arrived, slept), return_when=asyncio.FIRST_COMPLETED)
        return arrived.done()
    finally:
        arrived.cancel()
        slept.cancel()
        await asyncio.wait((arrived, slept))  # not by awaiting each: their cancellation would hide one of our own


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


async def work_until(stop: asyncio.Event, work: Coroutine[Any, Any, None], leave: float | None = None) -> None:
    """Work until asked to stop; what the work raises is raised, and being cancelled ends the work too.

    Work that is not over `leave` seconds after that is cut short, with whatever else this process does.
    """
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopping.cancel()
        # `wait` passes a cancellation of this task on; awaiting the work itself would have to tell the two apart.
        while (await asyncio.wait((working, stopping), timeout=leave))[1]:
            # Something waits for an API that does not answer. A group that is being left passes no second cancellation on.
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
    if not working.cancelled():
        working.result()


async def uninterrupted(work: Callable[[], T]) -> T:
    """Do blocking work in a thread and wait for its end, also when cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
