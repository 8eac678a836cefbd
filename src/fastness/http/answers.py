"""Answers: finished bytes, or a stream of chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
# Answers depend on who asks: a cache in between must not give one caller's to another (RFC 9111 §5.2.2.7).
NOT_SHARED: Headers = ((b"cache-control", b"no-cache, private"),)
NOWHERE: AbstractContextManager[None] = nullcontext()


def _nothing() -> None:
    """For a stream that holds nothing before its first chunk is asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer."""

    code: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose chunks come over time; `place` is what it takes up while it is sent.

    `close` lets go of what the chunks come from, and is called also when none was asked for: a generator that never began does
    not come to its `finally`.
    """

    code: int
    chunks: AsyncIterator[bytes]
    content_type: bytes = JSON
    headers: Headers = ()
    place: AbstractContextManager[None] = NOWHERE
    close: Callable[[], None] = _nothing


def caching(answer: Answer | Stream) -> Headers:
    """What nobody else may keep, unless the answer says itself how long it may be kept."""
    return () if any(name == b"cache-control" for name, _ in answer.headers) else NOT_SHARED


async def send_answer(answer: Answer, send: Send, headers: Headers = (), *, head: bool = False) -> None:
    """Write a finished answer; `head` leaves the body out."""
    await send({
        "type": "http.response.start", "status": answer.code,
        "headers": [
            (b"content-type", answer.content_type), (b"content-length", b"%d" % len(answer.body)),
            *caching(answer), *answer.headers, *headers,
        ],
    })  # fmt: skip
    await send({"type": "http.response.body", "body": b"" if head else answer.body})
