"""HTTP/1.1 on one connection: a request out, and its answer read strictly.

One framing, a bounded head, no folded lines: what two readers could understand in two ways is an error (RFC 9112 §6.3).
The body is a stream; its end tells the pool that the connection is free, and leaving early that it is to be dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import httpx

MAX_HEAD: Final = 64 * 1024
MAX_LINE: Final = 4096
CHUNK: Final = 256 * 1024
KEPT_SECONDS: Final = 60.0
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: |\Z)")
# Eight digits: a size that needs more is no chunk of ours, and Python would read a number of any length.
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n\Z")
_WITHOUT_BODY: Final = frozenset({204, 304})
_INFORMATION: Final = 200
Header = tuple[bytes, bytes]
Origin = tuple[str, int, str]
"""Host, port, and the name that the certificate must have; no name without TLS."""


@dataclass(slots=True, eq=False)
class HttpConnection:
    """One connection, since when it is free, whether it has a place of its pool, and of which generation it is."""

    origin: Origin
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    freed: float = 0.0
    placed: bool = False
    generation: int = 0

    def usable(self, now: float) -> bool:
        """Whether another request may go out on it."""
        closing = self.reader.at_eof() or self.writer.transport.is_closing()
        return not closing and now - self.freed < KEPT_SECONDS

    def drop(self) -> None:
        """End it at once."""
        self.writer.transport.abort()


async def send(connection: HttpConnection, request: httpx.Request, seconds: float | None) -> None:
    """Write a request; raises httpx.TransportError."""
    head = [request.method.encode("ascii"), b" ", request.url.raw_path, b" HTTP/1.1\r\n"]
    for name, value in request.headers.raw:
        head += (name, b": ", value, b"\r\n")
    body = await request.aread()
    # RFC 9110 §5.5: a line break in a value would begin a header, or a request, of the value's author.
    if any(b"\r" in part or b"\n" in part for header in request.headers.raw for part in header):
        raise httpx.LocalProtocolError("a header has a line break", request=request)
    try:
        connection.writer.write(b"".join((*head, b"\r\n", body)))
        async with asyncio.timeout(seconds):
            await connection.writer.drain()
    except TimeoutError as error:
        raise httpx.WriteTimeout(f"the request could not be sent in {seconds} seconds", request=request) from error
    except OSError as error:
        raise httpx.WriteError(str(error), request=request) from error


class AnswerStream(httpx.AsyncByteStream):
    """The body of an answer; its end gives the connection back, and leaving early drops it."""

    def __init__(
        self,
        connection: HttpConnection,
        request: httpx.Request,
        seconds: float | None,
        give_back: Callable[[HttpConnection], None],
        drop: Callable[[HttpConnection], None],
    ) -> None:
        self._connection = connection
        self._request = request
        self._seconds = seconds
        self._give_back = give_back
        self._drop = drop
        self._left: int | None = 0
        self._chunked = False
        self._keep = True
        self._over = False

    async def begun(self) -> httpx.Response:
        """The answer with its head; raises httpx.TransportError."""
        while True:
            head = await self._read(self._connection.reader.readuntil(b"\r\n\r\n"))
            status, recent, headers = _head(head, self._request)
            # 1xx answers come before the real one (RFC 9110 §15.2) and have no body; taken for it, every later answer would be
            # off by one.
            if status >= _INFORMATION:
                break
        self._keep = recent and not _says_close(headers)
        if self._request.method != "HEAD" and status not in _WITHOUT_BODY:
            self._left, self._chunked = _framing(headers, self._request)
        if self._left == 0 and not self._chunked:
            self._end()
        return httpx.Response(status, headers=headers, stream=self, extensions={"http_version": b"HTTP/1.1"})

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._over:
            return
        pieces = self._chunks() if self._chunked else self._counted(self._left)
        async for piece in pieces:
            yield piece
        self._end()

    async def aclose(self) -> None:
        """End the answer; what was not read is not waited for."""
        if not self._over:
            self._over = True
            # Bytes that were not read are still coming: the next request on this connection would take them for its answer.
            self._drop(self._connection)

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        (self._give_back if self._keep else self._drop)(self._connection)

    async def _counted(self, left: int | None) -> AsyncIterator[bytes]:
        """So many bytes, or all until the end of the connection."""
        # RFC 9112 §6.3, rule 8: the end of the connection ends the body, so there is none left to keep.
        if left is None:
            self._keep = False
        while left is None or left > 0:
            piece = await self._read(self._connection.reader.read(CHUNK if left is None else min(left, CHUNK)))
            if not piece:
                if left is None:
                    return
                raise httpx.RemoteProtocolError("the answer ended too early", request=self._request)
            left = None if left is None else left - len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            size = _SIZE.match(await self._text_line())
            if size is None:
                raise httpx.RemoteProtocolError("the answer has a chunk without a size", request=self._request)
            length = int(size[1], 16)
            if not length:
                break
            async for piece in self._counted(length):
                yield piece
            if await self._read(self._connection.reader.readexactly(2)) != b"\r\n":
                raise httpx.RemoteProtocolError("a chunk of the answer does not end", request=self._request)
        while (await self._text_line()).strip():
            pass

    async def _text_line(self) -> bytes:
        text = await self._read(self._connection.reader.readline())
        if not text.endswith(b"\n") or len(text) > MAX_LINE:
            raise httpx.RemoteProtocolError("the answer ended too early", request=self._request)
        return text

    async def _read(self, reading: Awaitable[bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                return await reading
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer in {self._seconds} seconds", request=self._request) from error
        except asyncio.IncompleteReadError as error:
            raise httpx.RemoteProtocolError("the server ended the connection", request=self._request) from error
        except (asyncio.LimitOverrunError, ValueError) as error:
            raise httpx.RemoteProtocolError(f"a head of more than {MAX_HEAD} bytes", request=self._request) from error
        except OSError as error:
            raise httpx.ReadError(str(error), request=self._request) from error


def _head(head: bytes, request: httpx.Request) -> tuple[int, bool, list[Header]]:
    """Status, whether it is HTTP/1.1, and headers."""
    first, *lines = head[:-4].split(b"\r\n")
    status = _STATUS.match(first)
    if status is None:
        raise httpx.RemoteProtocolError("the answer is not HTTP/1.1", request=request)
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        # RFC 9112 §5.1 and §5.2: no space before the colon, no folded lines; some readers join them, others do not.
        if not colon or not name or name.strip() != name or any(bad in line for bad in (b"\0", b"\r", b"\n")):
            raise httpx.RemoteProtocolError("the answer has a header that is none", request=request)
        headers.append((name, value.strip(b" \t")))
    return int(status[2]), status[1] == b"1", headers


def _says_close(headers: Sequence[Header]) -> bool:
    return any(name.lower() == b"connection" and b"close" in value.lower() for name, value in headers)


def _framing(headers: Sequence[Header], request: httpx.Request) -> tuple[int | None, bool]:
    """How many bytes follow, None for all until the end; whether they come in chunks instead."""
    coding = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    # A set: the same length said twice is harmless, and two different ones are refused below.
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    if coding:
        # RFC 9112 §6.3, rule 3: both at once is how responses are split between two readers.
        if coding != [b"chunked"] or lengths:
            raise httpx.RemoteProtocolError("the answer says in two ways where it ends", request=request)
        return None, True
    if not lengths:
        return None, False
    (length, *others) = lengths
    if others or not length.isdigit() or len(length) > 18:
        raise httpx.RemoteProtocolError("the answer does not say how long it is", request=request)
    return int(length), False
