"""Sending a stream until it ends or the client has gone.

Two tasks: one sends chunks, one waits for the disconnect. Whichever ends first ends the other, so that a client that leaves an
idle watch frees it at once. A client that stops reading holds one chunk in the transport's buffer and nothing else: the stream is
not asked for the next one before the last was taken, and the protocol cuts a connection on which nothing moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from fastness.http.answers import Headers, Stream, caching
from fastness.http.request import Request

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


async def send_stream(request: Request, stream: Stream, send: Send, headers: Headers = ()) -> None:
    """Write a stream until it ends or the client has gone; the head goes out at once, before the first chunk."""
    await send({
        "type": "http.response.start", "status": stream.code,
        "headers": [
            (b"content-type", stream.content_type), *caching(stream), *stream.headers, *headers,
        ],
    })  # fmt: skip
    # The head now: client-go takes a watch for established by it, and would wait for the first change otherwise.
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    await until_gone(request, stream.chunks, send)


async def until_gone(request: Request, chunks: AsyncIterator[bytes], send: Send) -> None:
    """Send every chunk; returns when they end or the client goes, raises what the chunks raise."""
    sender = asyncio.create_task(_send_all(chunks, send))
    leaver = asyncio.create_task(request.disconnected())
    try:
        await asyncio.wait((sender, leaver), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sender, leaver):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await leaver
        with suppress(asyncio.CancelledError):
            await sender


async def _send_all(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]  # an async generator
