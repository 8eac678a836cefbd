"""Processes that can be killed: each has its own way to the API, its own clock, its own caches, and loses all of them at once.

A `Line` is that way. While it is down, every call fails; `torn` lets writes happen and loses the answer, which is what a
connection that breaks at the wrong moment does. While it hangs it is half open: nothing comes, neither an answer nor an error nor
an event, until the client's own time is over. A killed process writes nothing any more, also not while it is being cleaned up. A
stopped one (`freeze`) goes on later with what it knew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from random import Random
from typing import Any

from fastness.apiserver import LocalCluster
from fastness.kinds.kind import Resource
from fastness.kube.client.transport import SECONDS
from fastness.kube.errors import Unavailable
from fastness.kube.port import EVERYWHERE, Event, Scope
from tests.simulation.loop import OWNER, LoopClock, virtual_loop
from tests.simulation.network import Network


class Line:
    """One process's connection to the API."""

    def __init__(self, cluster: LocalCluster, random: Random) -> None:
        self._cluster, self._random = cluster, random
        self.down = False
        self.torn = 0.0
        self.hung = False
        self._broken = asyncio.Event()

    @property
    def reachable(self) -> bool:
        """Whether anything gets through now."""
        return not self.down

    def break_off(self) -> None:
        """Nothing gets through from now on, and watches end."""
        self.down = True
        self._broken.set()

    def hang(self) -> None:
        """Nothing gets through from now on, and nobody is told."""
        self.hung = True

    def mend(self) -> None:
        """Everything gets through again; what hung is an error now."""
        self._broken.set()
        self.down, self.hung, self.torn, self._broken = False, False, 0.0, asyncio.Event()

    async def get(self, *args: Any, **named: Any) -> Any:
        """A read."""
        return await self._call(self._cluster.get, args, named)

    async def list(self, *args: Any, **named: Any) -> Any:
        """A read."""
        return await self._call(self._cluster.list, args, named)

    async def create(self, *args: Any, **named: Any) -> Any:
        """A write."""
        return await self._call(self._cluster.create, args, named, writes=True)

    async def patch(self, *args: Any, **named: Any) -> Any:
        """A write."""
        return await self._call(self._cluster.patch, args, named, writes=True)

    async def delete(self, *args: Any, **named: Any) -> Any:
        """A write."""
        return await self._call(self._cluster.delete, args, named, writes=True)

    async def connect(self, *args: Any, **named: Any) -> Any:
        """A write."""
        return await self._call(self._cluster.connect, args, named, writes=True)

    async def _call(self, verb: Callable[..., Any], args: Any, named: Any, *, writes: bool = False) -> Any:
        if not self.reachable:
            raise Unavailable("the API cannot be reached")
        if self.hung:
            if writes and self._random.random() < 0.5:
                await verb(*args, **named)  # it arrived; only the answer does not
            await self._silence()
        if self.torn and self._random.random() < self.torn / 2:
            raise Unavailable("the connection broke before the request")
        answer = await verb(*args, **named)
        lost = bool(writes and self.torn and self._random.random() < self.torn / 2)
        if lost or not self.reachable:
            raise Unavailable("the connection broke before the answer")
        return answer

    async def _silence(self) -> None:
        """Wait as long as the client of the product does; raises Unavailable."""
        with suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it loses the cancellation of whoever is killed just as the line breaks.
            async with asyncio.timeout(SECONDS):
                await self._broken.wait()
        raise Unavailable("the API did not answer in time")

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """A watch that ends with the line."""
        if self.down:
            raise Unavailable("the API cannot be reached")
        if self.hung:
            await self._silence()
        async with self._cluster.watch(resource, scope, since=since, initial=initial) as events:
            yield self._until_broken(events)

    async def _until_broken(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        broken = asyncio.ensure_future(self._broken.wait())
        connection = self._broken
        try:
            while True:
                nearest = asyncio.ensure_future(anext(events))
                try:
                    await asyncio.wait((nearest, broken), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not nearest.done():
                        # Whoever is cancelled while it waits here must hear of it: suppressing that would swallow both.
                        nearest.cancel()
                        await asyncio.wait((nearest,))
                if self.hung:
                    await broken
                if connection.is_set():
                    raise Unavailable("the watch broke")
                try:
                    yield nearest.result()
                except StopAsyncIteration:
                    return
        finally:
            broken.cancel()


Opened = Callable[[Line, LoopClock], AbstractAsyncContextManager[Any]]


class Process:
    """Something that runs until it is killed, and can be started again."""

    def __init__(self, name: str, cluster: LocalCluster, network: Network, random: Random, opened: Opened) -> None:
        self.name = name
        self._cluster, self._network, self._random, self._opened = cluster, network, random, opened
        self.clock = LoopClock()
        self.line = Line(cluster, random)
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it has been started and not killed."""
        return self._task is not None

    def check(self) -> None:
        """Raise what ended it, if that was anything but a kill."""
        if self._task is not None and self._task.done():
            self._task.result()

    def start(self) -> None:
        """Start it; a process that cannot open is started again after a second, as a service manager does."""
        self.line = Line(self._cluster, self._random)
        self._task = asyncio.ensure_future(self._run(self.line))

    async def kill(self) -> None:
        """No warning, no goodbye."""
        task, self._task = self._task, None
        if task is None:
            return
        self.line.break_off()
        self._network.close(self.name)
        self.thaw()
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def freeze(self) -> None:
        """SIGSTOP."""
        virtual_loop().freeze(self.name)

    def thaw(self) -> None:
        """SIGCONT."""
        virtual_loop().thaw(self.name)

    async def _run(self, line: Line) -> None:
        OWNER.set(self.name)
        while True:
            try:
                async with self._opened(line, self.clock):
                    await asyncio.Event().wait()
            except* Unavailable:
                await asyncio.sleep(1)
