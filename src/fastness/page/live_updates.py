"""What changed, told to pages that are open, and whether the API answers.

A page holds one stream (Server-Sent Events) and is told topics, never content: it then asks for itself again, as its user, so
there is nothing to leak and nothing to merge. Topics that come in quick succession are told together.

`Pulse` asks the cluster for one object at an interval. While it does not answer, every page says since when what it shows may
be old; caches come back by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import Any, Final

from fastness.kube.errors import ApiError
from fastness.kube.port import Cluster
from fastness.page.view_scope import CLUSTERS, SEEN, Stock
from fastness.runtime.clock import Clock

GATHER_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 15.0
PULSE_SECONDS: Final = 2.0
# Each holds a connection, and its login is looked at every quarter of a minute.
MAX_LISTENERS: Final = 200
API: Final = "api"


class _Listener:
    """One open page: what it was not told yet."""

    __slots__ = ("news", "topics")

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.news = asyncio.Event()


class News:
    """Everything that open pages are told."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: set[_Listener] = set()
        self.silent_since: datetime | None = None

    @property
    def full(self) -> bool:
        """Whether no further page can listen."""
        return len(self._listeners) >= MAX_LISTENERS

    def tell(self, topic: str) -> None:
        """Something of this topic changed."""
        for listener in self._listeners:
            listener.topics.add(topic)
            listener.news.set()

    async def stream(self, still: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
        """Events for one page, until it goes or `still` says that its login ended."""
        listener = _Listener()
        self._listeners.add(listener)
        try:
            yield b"retry: 2000\nevent: hello\ndata: listening\n\n"
            # Looked at before each event: a stream must not go on telling a browser whose login ended.
            while await still():
                with suppress(TimeoutError):
                    async with asyncio.timeout(QUIET_SECONDS):
                        await listener.news.wait()
                if not listener.topics:
                    yield b": still here\n\n"
                    continue
                await self._clock.sleep(GATHER_SECONDS)
                topics, listener.topics = sorted(listener.topics), set()
                listener.news.clear()
                yield b"event: change\ndata: %b\n\n" % " ".join(topics).encode()
            yield b"event: bye\ndata: the login ended\n\n"
        finally:
            self._listeners.discard(listener)

    def follow(self, stock: Stock) -> ExitStack:
        """Tell every change of the caches until the stack is closed."""
        stack = ExitStack()
        for resource, topic in SEEN.items():
            stack.callback(stock.informers[resource].subscribe(self._teller(topic)))
        return stack

    def _teller(self, topic: str) -> Callable[[Any, Any], None]:
        return lambda _old, _new: self.tell(topic)

    async def pulse(self, cluster: Cluster) -> None:
        """Ask whether the API answers, until cancelled."""
        while True:
            try:
                await cluster.list(CLUSTERS, limit=1)
                self._heard(None)
            except ApiError:
                self._heard(self.silent_since or self._clock.now())
            await self._clock.sleep(PULSE_SECONDS)

    def _heard(self, silent_since: datetime | None) -> None:
        if (silent_since is None) != (self.silent_since is None):
            self.silent_since = silent_since
            self.tell(API)
