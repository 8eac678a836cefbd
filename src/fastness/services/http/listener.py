"""A listener: uvicorn as a task of our loop, with TLS and bounds.

uvicorn gives neither the peer's certificate nor bounds on what a stranger may send before the application is asked, so its
protocol is extended by exactly that:

* the certificate that the peer showed is in the scope under `fastness.peer` (DER);
* headers above `MAX_HEADER_BYTES` are answered with 431;
* a connection that has not sent a complete head after `HEAD_SECONDS` is closed; more than `max_connections` are closed at once.

Certificates are replaced on the live context: handshakes from then on use the new one, connections stay.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 1024
HEAD_SECONDS = 20.0
KEEP_ALIVE_SECONDS = 90
SHUTDOWN_SECONDS = 3
MAX_CONNECTIONS = 10_000
BACKLOG = 1024

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with the peer's certificate and bounds on the head of a request."""

    max_connections = MAX_CONNECTIONS
    peer: bytes | None = None
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
        secure = transport.get_extra_info("ssl_object")
        self.peer = secure.getpeercert(binary_form=True) if secure is not None else None
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_late)
        self.scope["fastness.peer"] = self.peer  # type: ignore[typeddict-unknown-key]

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_late(self) -> None:
        self._head_timer = None
        self.transport.abort()


class Listener:
    """One port with one application behind it."""

    def __init__(self, app: Any, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._socket = _bind(host, port)
        config = uvicorn.Config(
            app, http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            date_header=False, timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            backlog=BACKLOG,
        )  # fmt: skip
        config.load()
        if tls is not None:
            config.ssl = tls
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is bound, also when any free one was asked for."""
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Begin to accept; returns when connections are accepted."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name=f"listener:{self.port}")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise OSError(f"the listener on port {self.port} did not start")
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Stop accepting, let running requests end within a few seconds, close what is left."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: signals belong to the process, not to a listener."""

    def capture_signals(self) -> Any:
        import contextlib

        return contextlib.nullcontext()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def server_context(certificate: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS 1.2 and 1.3 as a server; with `client_ca` a peer may show a certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Clients here come back over connections that stay open: tickets would only cost (12 % of a new connection).
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
