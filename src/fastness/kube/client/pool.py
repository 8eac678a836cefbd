"""The one pool of connections: for the Kubernetes client, the agent and the gate.

    httpx.AsyncClient(base_url=…, transport=ConnectionPool(tls), trust_env=False)
    answer = await HttpsClient(origin, tls, seconds).ask("GET", "/", {}, b"", lambda status: 4096)

`ConnectionPool` is a transport for the HTTP library's own client, in place of the one that it brings along, which costs about
twice the CPU per request: that one looks at every connection for every request, and hands the same idle one to several requests
that then queue anew. Ours speaks to servers that TLS has proved and nothing else: no proxies, no HTTP/2, no environment. What the
client sees is the same: its timeouts, its errors, its streams. `HttpsClient` is for those who want whole answers and no client.

* A request has a connection to itself, the one that was used last. At most `most` requests are in flight; more of them wait.
* Streams are long and few: each has a connection of its own beyond that number, dropped with it, so that open watches do not make
  requests pay for handshakes.
* A connection is kept when its answer was read to the end, for a while, and dropped in every other case. One that the server
  closed meanwhile is not used again. One that dies later is an error: only the caller knows whether asking twice does harm.
* Where a door of a certain role is dialled, its certificate must name that role, or nothing is sent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

import httpx

from fastness.kube.client.http1 import MAX_HEAD, AnswerStream, HttpConnection, Origin, send
from fastness.protocol.door import DoorRole, role_named

MOST_KEPT: Final = 8
MOST_IN_FLIGHT: Final = 32
PATIENCE: Final = 30.0
STREAM: Final = "fastness.stream"
SocketOptions = Sequence[tuple[int, int, int]]
_CERTIFICATE: Final = {  # X509_V_ERR_…, RFC 5280 §6.1.3
    9: "its certificate is not yet valid: its clock was ahead when it was issued, or ours is behind",
    10: "its certificate has expired: it was not renewed, or our clock is ahead",
}


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
        self._pool = ConnectionPool(tls, role=role)
        self._extensions = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), seconds)}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await self._pool.aclose()

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, most: Callable[[int], int]
    ) -> Answered:
        """The answer, with at most as many bytes as `most` says for its status; raises TooLong, httpx.HTTPError."""
        # Not compressed: the bound below counts bytes as they come, and few of them can unpack to many.
        sent = {"accept-encoding": "identity", "user-agent": "fastness", **headers}
        extensions = self._extensions
        request = httpx.Request(method, self.origin + path, headers=sent, content=body or None, extensions=extensions)
        answer = await self._pool.handle_async_request(request)
        limit, content = most(answer.status_code), bytearray()
        try:
            async for piece in answer.stream:  # type: ignore[union-attr]  # what `ConnectionPool` gives is asynchronous
                content += piece
                if len(content) > limit:
                    raise TooLong(f"the answer has more than {limit} bytes")
        finally:
            await answer.aclose()
        return Answered(answer.status_code, answer.headers, bytes(content))


class ConnectionPool(httpx.AsyncBaseTransport):
    """Keeps connections and sends requests over them."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        options: SocketOptions = (),
        most_idle: int = MOST_KEPT,
        *,
        most: int | None = None,
        plain: bool = False,
        role: DoorRole | None = None,
    ) -> None:
        """Believe what this context believes, and of our doors those of `role` alone.

        `most` bounds the requests in flight; `plain` allows addresses that say http, for servers that others guard.
        """
        self._tls = tls
        self._role = role
        self._plain = plain
        self._options = options
        self._most_idle = most_idle
        self._most = most
        self._places = asyncio.Semaphore(most) if most is not None else None
        self._generation = 0
        self._free: list[HttpConnection] = []
        self._all: dict[int, HttpConnection] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the answer's body is read by whoever has it. Raises httpx.TransportError."""
        # Before a connection is taken: a token must not leave in the clear because somebody left an `s` out of an address.
        if request.url.scheme != "https" and not (self._plain and request.url.scheme == "http"):
            raise httpx.UnsupportedProtocol("only https is spoken here", request=request)
        timeouts = request.extensions.get("timeout", {})
        connection = await self._taken(request, timeouts.get("connect"))
        try:
            await send(connection, request, timeouts.get("write"))
            return await AnswerStream(connection, request, timeouts.get("read"), self._give_back, self._drop).begun()
        except BaseException:
            self._drop(connection)
            raise

    async def renew(self) -> None:
        """Use no connection of now for another request; busy ones end with the answer that they carry."""
        self._generation += 1
        for connection in [*self._free]:
            self._drop(connection)
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        """End every connection, busy ones too."""
        for connection in [*self._all.values()]:
            self._drop(connection)
        await asyncio.sleep(0)

    async def _taken(self, request: httpx.Request, seconds: float | None) -> HttpConnection:
        """A connection for this request alone, with a place of the pool unless it is a stream's."""
        origin = _origin(request)
        if request.extensions.get(STREAM):
            connection = await self._dialled(origin, request, seconds)
            connection.generation = -1  # of no generation: it is dropped with its answer
            return connection
        if self._places is None:
            return self._idle(origin) or await self._dialled(origin, request, seconds)
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout(f"{self._most} requests are in flight", request=request) from error
        try:
            connection = self._idle(origin) or await self._dialled(origin, request, seconds)
        except BaseException:
            self._places.release()
            raise
        connection.placed = True
        return connection

    def _idle(self, origin: Origin) -> HttpConnection | None:
        """The free connection that was used last."""
        now = asyncio.get_running_loop().time()
        # The youngest first: the others grow old and go, so that a burst does not leave its connections open for ever.
        for connection in reversed(self._free):
            if connection.origin == origin:
                if connection.usable(now):
                    self._free.remove(connection)
                    return connection
                self._drop(connection)
        return None

    async def _dialled(self, origin: Origin, request: httpx.Request, seconds: float | None) -> HttpConnection:
        host, port, name = origin
        proved: dict[str, Any] = {"ssl": self._tls, "server_hostname": name} if name else {}
        generation = self._generation  # of before TLS: a certificate that is replaced meanwhile may not have been shown
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(host, port, limit=MAX_HEAD, **proved)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection in {seconds} seconds", request=request) from error
        except (OSError, ssl.CertificateError) as error:
            raise httpx.ConnectError(str(error), request=request) from error
        # Before a byte is sent: a door that was taken over has a good certificate of its own, and could ask for another's
        # secrets.
        if self._role is not None and (named := _role_of(writer)) is not self._role:
            writer.transport.abort()
            other = f"of the role {named}" if named else "without a role"
            raise WrongDoor(f"it shows a certificate {other}, and {self._role} was dialled", request=request)
        bare = writer.get_extra_info("socket")
        for option in self._options:
            with suppress(OSError):
                bare.setsockopt(*option)
        connection = HttpConnection(origin, reader, writer, generation=generation)
        self._all[id(connection)] = connection
        return connection

    def _give_back(self, connection: HttpConnection) -> None:
        # Of an earlier generation: it was opened with a certificate that has been replaced since, and the server still knows it
        # by that one.
        stale = id(connection) not in self._all or connection.generation != self._generation
        if stale or len(self._free) >= self._most_idle:
            self._drop(connection)
            return
        connection.freed = asyncio.get_running_loop().time()
        self._free.append(connection)
        self._leave(connection)

    def _drop(self, connection: HttpConnection) -> None:
        if self._all.pop(id(connection), None) is not None and connection in self._free:
            self._free.remove(connection)
        connection.drop()
        self._leave(connection)

    def _leave(self, connection: HttpConnection) -> None:
        """Give the place back, once: an answer may end and then be closed."""
        if connection.placed and self._places is not None:
            connection.placed = False
            self._places.release()


def _role_of(writer: asyncio.StreamWriter) -> DoorRole | None:
    """The role in the certificate that TLS has just verified."""
    certificate = writer.get_extra_info("peercert") or {}
    return role_named([value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"])


def _origin(request: httpx.Request) -> Origin:
    """Host, port, and the name that the server's certificate must have; no name without TLS."""
    url = request.url
    if url.scheme == "http":
        return url.host, url.port or 80, ""
    return url.host, url.port or 443, str(request.extensions.get("sni_hostname") or url.host)
