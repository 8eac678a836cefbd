"""A network without sockets: names lead to replicas of doors, and what goes over the wire can be lost, cut and watched.

Doors listen here instead of on ports and machines ask through the client that they always use; all between, routes, limits and
answers included, is the product. Of TLS there is only whether the door's certificate is valid now, by a clock that is right: who
may speak to whom is tested where there are sockets.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch

import httpx

from fastness.crypto.x509 import Certificate, Credential
from fastness.kube.client.pool import ConnectionPool
from tests.simulation.loop import OWNER, LoopClock

CALLER: ContextVar[str] = ContextVar("caller", default="")
TAIL = 40
"""So much of the end of a credential is like no other."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and what came back, as the wire saw it; `whole` says whether all of the answer arrived."""

    caller: str
    door: str
    path: str
    status: int
    body: bytes
    whole: bool


class Listener:
    """What a door believes to be a port."""

    def __init__(self, network: Network, app: Any) -> None:
        self._network, self._app, self._name = network, app, OWNER.get()
        self.port = 443

    async def show(self, credential: Credential, *_: object) -> None:
        """Listen, with this certificate."""
        self._network.open(self._name, self._app, credential.certificate)

    async def renew(self) -> None:
        """Nobody shows a certificate here."""

    async def stop(self) -> None:
        """Listen no more."""
        self._network.close(self._name)


def _nothing(_caller: str) -> None:
    """Let a request pass."""


class Network:
    """All names, and who answers behind them. `meet` is called with the caller of every request that is under way."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._apps: dict[str, Any] = {}
        self._certificates: dict[str, Certificate] = {}
        self._running: dict[str, set[asyncio.Task[Any]]] = {}
        self.cuts = self.unbelieved = 0
        self.watchers: list[Callable[[Exchange], None]] = []
        self.credentials: set[bytes] = set()
        self.meet: Callable[[str], None] = _nothing

    def open(self, name: str, app: Any, certificate: Certificate) -> None:
        """A replica `role-letter` answers for its role from now on, and shows this certificate."""
        self._apps[name], self._certificates[name] = app, certificate

    def close(self, name: str) -> None:
        """A replica is gone, with everything that it was about to answer."""
        self._apps.pop(name, None)
        for task in self._running.pop(name, set()):
            task.cancel()

    async def ask(self, request: httpx.Request) -> httpx.Response:
        """One request to any replica of the role that the host names."""
        role = request.url.host.partition(".")[0]
        alive = sorted(name for name in self._apps if name.rpartition("-")[0] == role)
        if not alive:
            raise httpx.ConnectError(f"nobody listens for {role}", request=request)
        name = self._random.choice(alive)
        for header in ("authorization", "cookie"):
            if credential := request.headers.get(header):
                self.credentials.add(credential[-TAIL:].encode())
        content = await request.aread()
        self._check_certificate(name, request)
        process = copy_context()
        process.run(OWNER.set, name)
        work = _answered(self._apps[name], request, content)
        task = asyncio.get_running_loop().create_task(work, context=process)
        self._running.setdefault(name, set()).add(task)
        self.meet(CALLER.get())
        try:
            async with asyncio.timeout((request.extensions.get("timeout") or {}).get("read")):
                status, headers, body = await asyncio.shield(task)
        except TimeoutError:
            raise httpx.ReadTimeout(f"{name} does not answer", request=request) from None
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            raise httpx.ReadError(f"{name} went away", request=request) from None
        finally:
            self._running.get(name, set()).discard(task)
        cut = self.cuts > 0 and bool(body)
        self.cuts -= cut
        path = request.url.raw_path.decode()
        exchange = Exchange(CALLER.get(), name, path, status, body, not cut)
        for watcher in self.watchers:
            watcher(exchange)
        if cut:
            return httpx.Response(status, headers=headers, stream=_Half(body, request), request=request)
        return httpx.Response(status, headers=headers, content=body, request=request)

    def unbelievable(self) -> list[str]:
        """Doors that listen with a certificate that is not valid now."""
        return [name for name in sorted(self._apps) if not self._valid(name)]

    def _valid(self, name: str) -> bool:
        certificate = self._certificates[name]
        return certificate.not_before <= LoopClock().now() <= certificate.not_after

    def _check_certificate(self, name: str, request: httpx.Request) -> None:
        """As the client's TLS does; raises httpx.ConnectError."""
        certificate, now = self._certificates[name], LoopClock().now()
        if not self._valid(name):
            self.unbelieved += 1
            wrong = ssl.SSLCertVerificationError(1, "certificate verify failed")
            wrong.verify_code, wrong.verify_message = (
                (9, "not yet valid") if now < certificate.not_before else (10, "expired")
            )
            raise httpx.ConnectError(str(wrong), request=request) from wrong

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Doors listen here and clients ask here, for the time of the block."""
        network = self

        async def ask(_: ConnectionPool, request: httpx.Request) -> httpx.Response:
            return await network.ask(request)

        def listener(app: Any, *_: object, **__: object) -> Listener:
            return Listener(network, app)

        with (
            patch("fastness.http.opening.LoopListener", listener),
            patch.object(ConnectionPool, "handle_async_request", ask),
        ):
            yield


class _Half(httpx.AsyncByteStream):
    """An answer that ends in the middle."""

    def __init__(self, body: bytes, request: httpx.Request) -> None:
        self._body, self._request = body, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body[: len(self._body) // 2]
        raise httpx.RemoteProtocolError("the connection ended in the middle", request=self._request)


async def _answered(app: Any, request: httpx.Request, content: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Call an application as a server does."""
    sent: list[Any] = []
    given = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Any:
        return given.pop() if given else await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": request.method, "raw_path": request.url.raw_path.partition(b"?")[0],
        "path": request.url.path, "query_string": request.url.query, "client": (f"10.0.0.{CALLER.get() or 'x'}", 1),
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
    }  # fmt: skip
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], list(sent[0]["headers"]), body
