"""HTTPS connections for clients that ask often: HTTP/1.1, one request at a time on each connection.

    httpx.AsyncClient(base_url=…, transport=HttpsLines(tls), trust_env=False)
    answer = await HttpsClient(origin, tls, seconds).ask("GET", "/", {}, b"", lambda status: 4096)

`HttpsLines` is a transport for the HTTP library's own client, in place of the one that it brings along, which costs about twice
the CPU per request. It speaks to servers that TLS has proved and nothing else: no proxies, no HTTP/2, no environment. What the
client sees is the same: its timeouts, its errors, its streams. `HttpsClient` is for those who want whole answers and no client.

* A connection is kept when its answer was read to the end, for a while, and dropped in every other case.
* A connection that the server closed meanwhile is not used again. One that dies later is an error: only the caller knows whether
  asking twice does harm.
* Where a door of a certain role is dialled, its certificate must name that role, or nothing is sent.
* Answers are read strictly: one framing, a bounded head, no folded lines.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import httpx

from fastness.protocol.door_role import DoorRole, role_named

MAX_HEAD: Final = 64 * 1024
MAX_LINE: Final = 4096
CHUNK: Final = 256 * 1024
KEPT_SECONDS: Final = 60.0
MOST_KEPT: Final = 8
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: |\Z)")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n\Z")
_WITHOUT_BODY: Final = frozenset({204, 304})
_INFORMATION: Final = 200
SocketOptions = Sequence[tuple[int, int, int]]
Header = tuple[bytes, bytes]
Origin = tuple[str, int, str]
_CERTIFICATE: Final = {  # X509_V_ERR_…, RFC 5280 §6.1.3
    9: "its certificate is not yet valid: its clock was ahead when it was issued, or ours is behind",
    10: "its certificate has expired: it was not renewed, or our clock is ahead",
}


@dataclass(slots=True)
class _Line:
    """One connection, and since when it is free."""

    origin: Origin
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    freed: float = 0.0

    def usable(self, now: float) -> bool:
        """Whether another request may go out on it."""
        closing = self.reader.at_eof() or self.writer.transport.is_closing()
        return not closing and now - self.freed < KEPT_SECONDS

    def drop(self) -> None:
        """End it at once."""
        self.writer.transport.abort()


class Answered(NamedTuple):
    """A whole answer."""

    status: int
    headers: httpx.Headers
    body: bytes


def unreachable(error: BaseException) -> str:
    """Why a server could not be asked, in words for an operator: what is wrong with its certificate, or the kind of error."""
    if isinstance(error, WrongDoor):
        return f"is not trusted, {error}"
    distrust = certificate_problem(error)
    if distrust is None:
        return f"cannot be reached: {type(error).__name__}"
    why = _CERTIFICATE.get(distrust.verify_code, distrust.verify_message or "it does not verify")
    return f"is not trusted, {why}"


def certificate_problem(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """The complaint about a certificate that is behind an error, if there is one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


class WrongDoor(httpx.ConnectError):
    """The certificate is good and names another role than the one that was dialled: nothing was sent."""


class TooLong(httpx.HTTPError):
    """The answer has more bytes than the caller takes."""


class HttpsClient:
    """Asks one server, or one after the other, for whole answers of a bounded size.

    Nothing comes from the environment: neither proxies nor passwords of a user decide how a machine shows itself. Redirects are
    answers, cookies are headers, and bodies are asked for as they are: a small one that grows when it is unpacked is no answer.
    """

    def __init__(self, origin: str, tls: ssl.SSLContext, seconds: float, role: DoorRole | None = None) -> None:
        self.origin = origin.rstrip("/")
        self._lines = HttpsLines(tls, role=role)
        self._extensions = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), seconds)}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await self._lines.aclose()

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, most: Callable[[int], int]
    ) -> Answered:
        """The answer, with at most as many bytes as `most` says for its status; raises TooLong, httpx.HTTPError."""
        asked = {"accept-encoding": "identity", "user-agent": "fastness", **headers}
        extensions = self._extensions
        request = httpx.Request(method, self.origin + path, headers=asked, content=body or None, extensions=extensions)
        answer = await self._lines.handle_async_request(request)
        limit, found = most(answer.status_code), bytearray()
        try:
            async for piece in answer.stream:  # type: ignore[union-attr]  # what `HttpsLines` gives is asynchronous
                found += piece
                if len(found) > limit:
                    raise TooLong(f"the answer has more than {limit} bytes")
        finally:
            await answer.aclose()
        return Answered(answer.status_code, answer.headers, bytes(found))


class HttpsLines(httpx.AsyncBaseTransport):
    """Keeps connections and sends requests over them."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        options: SocketOptions = (),
        kept: int = MOST_KEPT,
        *,
        plain: bool = False,
        role: DoorRole | None = None,
    ) -> None:
        """Believe what this context believes, and of our doors those of `role` alone.

        `plain` allows addresses that say http, for servers that others guard.
        """
        self._tls = tls
        self._role = role
        self._plain = plain
        self._options = options
        self._kept = kept
        self._free: list[_Line] = []
        self._lines: dict[int, _Line] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the answer's body is read by whoever has it. Raises httpx.TransportError."""
        if request.url.scheme != "https" and not (self._plain and request.url.scheme == "http"):
            raise httpx.UnsupportedProtocol("only https is spoken here", request=request)
        timeouts = request.extensions.get("timeout", {})
        line = await self._line(_origin(request), request, timeouts.get("connect"))
        try:
            await _sent(line, request, timeouts.get("write"))
            answer = _Answer(line, request, timeouts.get("read"), self._give_back, self._drop)
            return await answer.begun()
        except BaseException:
            self._drop(line)
            raise

    async def aclose(self) -> None:
        """End every connection, busy ones too."""
        for line in [*self._lines.values()]:
            self._drop(line)
        self._free.clear()
        await asyncio.sleep(0)

    async def _line(self, origin: Origin, request: httpx.Request, seconds: float | None) -> _Line:
        now = asyncio.get_running_loop().time()
        for line in reversed(self._free):
            if line.origin == origin:
                self._free.remove(line)
                if line.usable(now):
                    return line
                self._drop(line)
        host, port, name = origin
        proved: dict[str, Any] = {"ssl": self._tls, "server_hostname": name} if name else {}
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(host, port, limit=MAX_HEAD, **proved)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection in {seconds} seconds", request=request) from error
        except (OSError, ssl.CertificateError) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        if self._role is not None and (shown := _role_shown(writer)) is not self._role:
            writer.transport.abort()
            other = f"of the role {shown}" if shown else "without a role"
            raise WrongDoor(f"it shows a certificate {other}, and {self._role} was dialled", request=request)
        bare = writer.get_extra_info("socket")
        for option in self._options:
            with suppress(OSError):
                bare.setsockopt(*option)
        line = _Line(origin, reader, writer)
        self._lines[id(line)] = line
        return line

    def _give_back(self, line: _Line) -> None:
        if id(line) not in self._lines or len(self._free) >= self._kept:
            self._drop(line)
            return
        line.freed = asyncio.get_running_loop().time()
        self._free.append(line)

    def _drop(self, line: _Line) -> None:
        self._lines.pop(id(line), None)
        line.drop()


def _role_shown(writer: asyncio.StreamWriter) -> DoorRole | None:
    """The role in the certificate that TLS has just verified."""
    certificate = writer.get_extra_info("peercert") or {}
    return role_named([value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"])


def _origin(request: httpx.Request) -> Origin:
    """Host, port, and the name that the server's certificate must have; no name without TLS."""
    url = request.url
    if url.scheme == "http":
        return url.host, url.port or 80, ""
    return url.host, url.port or 443, str(request.extensions.get("sni_hostname") or url.host)


async def _sent(line: _Line, request: httpx.Request, seconds: float | None) -> None:
    head = [request.method.encode("ascii"), b" ", request.url.raw_path, b" HTTP/1.1\r\n"]
    for name, value in request.headers.raw:
        head += (name, b": ", value, b"\r\n")
    body = await request.aread()
    if any(b"\r" in part or b"\n" in part for header in request.headers.raw for part in header):
        raise httpx.LocalProtocolError("a header has a line break", request=request)
    try:
        line.writer.write(b"".join((*head, b"\r\n", body)))
        async with asyncio.timeout(seconds):
            await line.writer.drain()
    except TimeoutError as error:
        raise httpx.WriteTimeout(f"the request could not be sent in {seconds} seconds", request=request) from error
    except OSError as error:
        raise httpx.WriteError(str(error), request=request) from error


class _Answer(httpx.AsyncByteStream):
    """The body of an answer; its end gives the connection back, and leaving early drops it."""

    def __init__(
        self,
        line: _Line,
        request: httpx.Request,
        seconds: float | None,
        give_back: Callable[[_Line], None],
        drop: Callable[[_Line], None],
    ) -> None:
        self._line = line
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
            head = await self._read(self._line.reader.readuntil(b"\r\n\r\n"))
            status, recent, headers = _head(head, self._request)
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
            self._drop(self._line)

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        (self._give_back if self._keep else self._drop)(self._line)

    async def _counted(self, left: int | None) -> AsyncIterator[bytes]:
        """So many bytes, or all until the end of the connection."""
        if left is None:
            self._keep = False
        while left is None or left > 0:
            piece = await self._read(self._line.reader.read(CHUNK if left is None else min(left, CHUNK)))
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
            if await self._read(self._line.reader.readexactly(2)) != b"\r\n":
                raise httpx.RemoteProtocolError("a chunk of the answer does not end", request=self._request)
        while (await self._text_line()).strip():
            pass

    async def _text_line(self) -> bytes:
        found = await self._read(self._line.reader.readline())
        if not found.endswith(b"\n") or len(found) > MAX_LINE:
            raise httpx.RemoteProtocolError("the answer ended too early", request=self._request)
        return found

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
        if not colon or not name or name.strip() != name or any(bad in line for bad in (b"\0", b"\r", b"\n")):
            raise httpx.RemoteProtocolError("the answer has a header that is none", request=request)
        headers.append((name, value.strip(b" \t")))
    return int(status[2]), status[1] == b"1", headers


def _says_close(headers: Sequence[Header]) -> bool:
    return any(name.lower() == b"connection" and b"close" in value.lower() for name, value in headers)


def _framing(headers: Sequence[Header], request: httpx.Request) -> tuple[int | None, bool]:
    """How many bytes follow, None for all until the end; whether they come in chunks instead."""
    coding = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    if coding:
        if coding != [b"chunked"] or lengths:
            raise httpx.RemoteProtocolError("the answer says in two ways where it ends", request=request)
        return None, True
    if not lengths:
        return None, False
    (length, *others) = lengths
    if others or not length.isdigit() or len(length) > 18:
        raise httpx.RemoteProtocolError("the answer does not say how long it is", request=request)
    return int(length), False
