"""Connections: each request has one to itself, taken from those that are free.

The pool of the HTTP library looks at every connection for every request and hands the same idle one to several requests that then
queue anew: with 16 requests in flight that was half of the CPU of a request. It also closes idle connections as soon as it holds
more than its keepalive limit in all, busy ones included, so that open watches would make every request pay for a handshake.

So a lane is a pool of one connection. Requests take the lane that was used last and give it back; at most `MOST` are in flight,
more of them wait. Streams are long and few: each has a lane of its own beyond that number, closed with it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import httpx

from fastness.kube.client.https import HttpsLines, SocketOptions

STREAM = "fastness.stream"
MOST = 32
PATIENCE = 30.0


class Lanes(httpx.AsyncBaseTransport):
    """A transport over many connections."""

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make = make
        self._free: list[httpx.AsyncBaseTransport] = []
        self._all: set[httpx.AsyncBaseTransport] = set()
        self._ended: set[httpx.AsyncBaseTransport] = set()
        self._room = asyncio.Semaphore(MOST)

    async def renew(self) -> None:
        """Use no connection of now for another request; busy ones end with the answer that they carry."""
        free, self._free = self._free, []
        self._all.difference_update(free)
        self._ended |= self._all
        for lane in free:
            await lane.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send over a lane that is free; it is taken until the answer is closed. Raises PoolTimeout, TransportError."""
        single = bool(request.extensions.get(STREAM))
        if not single:
            await self._wait(request)
        lane = self._make() if single or not self._free else self._free.pop()
        self._all.add(lane)
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            await self._leave(lane, single)
            raise
        body = cast("httpx.AsyncByteStream", response.stream)
        response.stream = _Body(body, lambda: self._leave(lane, single))
        return response

    async def _wait(self, request: httpx.Request) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._room.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout(f"{MOST} requests are in flight", request=request) from error

    async def _leave(self, lane: httpx.AsyncBaseTransport, single: bool) -> None:
        if not single:
            self._room.release()
        if single or lane in self._ended:
            self._all.discard(lane)
            self._ended.discard(lane)
            await lane.aclose()
        else:
            self._free.append(lane)

    async def aclose(self) -> None:
        """Close every connection, busy ones too."""
        lanes, self._all, self._free, self._ended = [*self._all], set(), [], set()
        for lane in lanes:
            await lane.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of an answer; its end gives the lane back, once."""

    def __init__(self, inner: httpx.AsyncByteStream, leave: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._leave: Callable[[], Awaitable[None]] | None = leave

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield chunk

    async def aclose(self) -> None:
        """End the answer."""
        leave, self._leave = self._leave, None
        if leave is not None:
            try:
                await self._inner.aclose()
            finally:
                await leave()


def over_tls(context: ssl.SSLContext, options: SocketOptions) -> Lanes:
    """Lanes of HTTP/1.1 connections with this trust."""
    return Lanes(lambda: HttpsLines(context, options, kept=1, plain=True))
