"""One HTTP client per API server: identity, time-outs, retries, and refusals as `ApiError`.

- Requests carry the token of the moment, the impersonation headers and our correlation id as `Audit-ID`, so that the server's
  audit log and our logs can be read together. 401 makes us read the token's file again, once.
- What may be sent twice is decided in `retry.py`. A write whose outcome is unknown ends in `Timeout`, one that never left in
  `Unavailable`.
- Keepalive probes find a dead peer within half a minute also on a watch, where silence is normal. `pool.py` has the connections.
- Neither environment proxies nor redirects are followed: a credential goes to the server that the configuration names.
- Requests go to the connections without the HTTP library's own client, which costs more than they do: it would look for proxies,
  cookies, passwords and redirects that there are none of, and read the address anew for every request.

`client.py` builds the calls, `watching.py` reads the streams.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

import httpx
import msgspec

from fastness.kube.client.connection import Connection, context_for
from fastness.kube.client.pool import MOST_IN_FLIGHT, STREAM, ConnectionPool, certificate_problem
from fastness.kube.client.renewed_certificate import RenewedCertificate, RenewingPool
from fastness.kube.client.retry import ATTEMPTS, Safety, pause_after
from fastness.kube.client.tokens import Token
from fastness.kube.errors import ApiError, Timeout, Unavailable, from_status
from fastness.observe import logs
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import Backoff, retry, retry_after

SECONDS, CONNECT_SECONDS = 60.0, 10.0
BACKOFF = Backoff(first=0.2, most=5.0)
MAX_REFUSAL = 1024 * 1024
REMEMBERED = 256
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Broken(Unavailable):
    """A stream that had begun ended without an end."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and how often it may be sent."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    media: str = "application/json"
    safety: Safety = Safety.READ
    patience: float | None = None


def pool_for(connection: Connection, clock: Clock, read: Callable[[Path], bytes]) -> httpx.AsyncBaseTransport:
    """Connections to this server; raises BadConfig."""
    trust = context_for(connection)
    pool = ConnectionPool(trust, _keepalive(), MOST_IN_FLIGHT, most=MOST_IN_FLIGHT, plain=True)
    if connection.certificate_files is None:
        return pool
    return RenewingPool(pool, RenewedCertificate(connection, trust, clock, read))


def _keepalive() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    if hasattr(socket, "TCP_KEEPIDLE"):
        # Half a minute until a dead peer is told; the kernel's default is two hours, which a watch would spend believing old
        # state.
        probes = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
        options += [(socket.IPPROTO_TCP, name, value) for name, value in probes]
    return options


class Transport:
    """Sends calls to one API server."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        entropy: Entropy,
        *,
        pool: httpx.AsyncBaseTransport | None = None,
        read: Callable[[Path], bytes] = Path.read_bytes,
    ) -> None:
        self._pool = pool or pool_for(connection, clock, read)
        self._server = connection.server.rstrip("/")
        self._address = lru_cache(maxsize=REMEMBERED)(httpx.URL)
        self._clock = clock
        self._entropy = entropy
        self._token = Token(connection.token, connection.token_file, clock, read)
        self._headers = [
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),  # the network is near, compression costs both sides more than it saves
            ("User-Agent", "fastness"),
            *connection.impersonation.headers(),
        ]
        self._extensions = {"sni_hostname": connection.server_name} if connection.server_name else {}

    async def close(self) -> None:
        """Close all connections; open streams end."""
        await self._pool.aclose()

    async def send(self, call: Call) -> bytes:
        """The body of the answer; raises ApiError."""
        async with self._answered(call, stream=False) as response:
            return response.content

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[AsyncIterator[bytes]]:
        """Chunks of the answer as they come; raises ApiError, and Broken when the stream does."""
        async with self._answered(call, stream=True) as response, aclosing(_chunks(response)) as chunks:
            yield chunks

    async def pause(self, attempt: int) -> None:
        """Wait as long as this many failures in a row ask for."""
        await self._clock.sleep(BACKOFF.delay(attempt, self._entropy.fraction()))

    @asynccontextmanager
    async def _answered(self, call: Call, *, stream: bool) -> AsyncIterator[httpx.Response]:
        """An answer of success, after as many attempts as the call allows."""
        failures, renewed = 0, False

        def pause(error: Exception) -> float:
            nonlocal failures, renewed
            if isinstance(error, _Refused) and error.status == 401 and not renewed and self._token.renewed():
                renewed = True  # a token that was exchanged on the disk meanwhile: no failure, and no second time
                return 0.0
            failures += 1
            backoff = BACKOFF.delay(failures - 1, self._entropy.fraction())
            if isinstance(error, _Refused):
                seconds = pause_after(error.status, error.retry_after, call.safety, backoff)
                if seconds is None or failures >= ATTEMPTS:
                    raise error.refusal from None
                return seconds
            if failures >= ATTEMPTS or not _may_repeat(error, call.safety):
                _give_up(error, call, self._server)
            return backoff

        response = await retry(
            lambda: self._response(call, stream), (httpx.TransportError, _Refused), pause, self._clock
        )
        try:
            yield response
        finally:
            await response.aclose()

    async def _response(self, call: Call, stream: bool) -> httpx.Response:
        """One attempt: an answer whose body was read, unless it is a stream's; raises httpx.TransportError, _Refused."""
        response = await self._pool.handle_async_request(self._request(call, stream))
        if not response.is_success:
            raise _Refused(response, await _refusal(response))
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    def _request(self, call: Call, stream: bool) -> httpx.Request:
        headers = list(self._headers)
        if token := self._token.current():
            headers.append(("Authorization", f"Bearer {token.reveal()}"))
        if correlation := logs.current_correlation():
            headers.append(("Audit-ID", correlation))
        if call.content is not None:
            headers.append(("Content-Type", call.media))
        read = SECONDS if call.patience is None else call.patience
        timeouts = {"connect": CONNECT_SECONDS, "read": read, "write": read}
        query = f"?{urlencode(call.params)}" if call.params else ""
        return httpx.Request(
            call.method, self._address(f"{self._server}{call.path}{query}"), headers=headers, content=call.content,
            extensions={**self._extensions, STREAM: stream, "timeout": timeouts},
        )  # fmt: skip


class _Refused(Exception):
    """An answer that is no success: what it stands for, and what decides whether the call is repeated."""

    def __init__(self, response: httpx.Response, refusal: ApiError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.status = response.status_code
        self.retry_after = retry_after(response.headers.get("retry-after"))


async def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except (httpx.TransportError, httpx.StreamError) as error:
        raise Broken(f"the stream broke: {_words(error)}") from error


def _may_repeat(error: Exception, safety: Safety) -> bool:
    # A certificate that is not believed now is not believed in a second either, and asking again would hide whom we talk to.
    if certificate_problem(error) is not None or isinstance(error, httpx.UnsupportedProtocol):
        return False
    # A write that may have arrived is not sent again: a create would answer AlreadyExists for what we made ourselves.
    return safety is Safety.READ or isinstance(error, _NEVER_SENT)


def _give_up(error: Exception, call: Call, server: str) -> NoReturn:
    distrust = certificate_problem(error)
    if distrust is not None:
        raise Unavailable(f"the server's certificate is not trusted: {distrust.verify_message}") from error
    if call.safety is Safety.READ or isinstance(error, _NEVER_SENT):
        raise Unavailable(f"the API server cannot be reached at {urlsplit(server).netloc}: {_words(error)}") from error
    raise Timeout(f"{call.method} {call.path}: no answer, the outcome is unknown: {_words(error)}") from error


def _words(error: Exception) -> str:
    """httpx leaves many messages empty: the type says it then."""
    return str(error) or type(error).__name__


class _Details(msgspec.Struct):
    group: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    causes: list[dict[str, str]] | None = None
    retryAfterSeconds: int | None = None  # noqa: N815  # the API's spelling


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


async def _refusal(response: httpx.Response) -> ApiError:
    """The error that an answer stands for; whatever its body is."""
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            # The message of a Status is short; a proxy in between may answer with anything.
            if len(body) > MAX_REFUSAL:
                break
    except (httpx.TransportError, httpx.StreamError):
        body.clear()
    finally:
        await response.aclose()
    error = refusal_of(response.status_code, bytes(body))
    if error.retry_after is None and (seconds := retry_after(response.headers.get("retry-after"))) is not None:
        error.retry_after = int(seconds)
    return error


def refusal_of(code: int, body: bytes) -> ApiError:
    """An error from a code and a body that should be a `Status`, and is plain text when something stands in between."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, msgspec.ValidationError):
        text = body[:500].decode(errors="replace").strip()
        return from_status(code, {"message": f"the server answered {code}: {text}" if text else ""})
    error = from_status(code, msgspec.to_builtins(status))
    error.continue_token = str(status.metadata.get("continue") or "")
    return error
