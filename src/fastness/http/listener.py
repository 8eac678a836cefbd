"""A listener: uvicorn as a task of our loop, with TLS and bounds.

What a stranger may take is in `bounds.py`, who may hold a connection in `arrivals.py`, what may come over one in `protocol.py`.
Here are the life of the port and of its TLS:

* connections are accepted here and not by the loop, so that each is counted before its handshake begins;
* the handshake of TLS has a bound in time, like the head of a request;
* doors speak TLS 1.3 only. The API speaks 1.2 too: it serves any client of Kubernetes. A port may show another face under further
  names (`faces.py`);
* shutdown tells every connection to end, waits a few seconds, then cuts what is left;
* certificates are replaced on the live context: handshakes from then on use the new one, connections stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from fastness.http.arrivals import Arrival, Arrivals
from fastness.http.bounds import Bounds, Share
from fastness.http.faces import Faces
from fastness.http.protocol import Protocol
from fastness.observe import logs

BACKLOG = 1024
# A flood that is accepted without a pause would keep the loop from those who are connected already.
AT_ONCE = 64
POLL_SECONDS = 0.02
REST_SECONDS = 0.2
_log = logs.logger("listener")


class Listener:
    """One port with one application behind it."""

    def __init__(
        self,
        app: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        bounds: Bounds | None = None,
        faces: Faces | None = None,
    ) -> None:
        self._socket = _bind(host, port)
        bounds = bounds or Bounds()
        self._server = _Server(_config(app, tls, bounds), bounds, faces)
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is bound, also when any free one was asked for."""
        return int(self._socket.getsockname()[1])

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._server.server_state.connections)

    @property
    def arrivals(self) -> Arrivals:
        """All that were accepted, also those whose handshake is not done."""
        return self._server.arrivals

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
    """uvicorn's server with our protocol, and without its signal handlers: signals belong to the process."""

    def __init__(self, config: uvicorn.Config, bounds: Bounds, faces: Faces | None) -> None:
        super().__init__(config)
        self._bounds = bounds
        self._faces = faces
        self._share = Share(bounds)
        self.arrivals = Arrivals(bounds, lambda: self._share.places)
        self._listening: list[socket.socket] = []
        self._greeted: set[asyncio.Task[None]] = set()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for bound in sockets or ():
            bound.listen(BACKLOG)
            bound.setblocking(False)
            self._listening.append(bound)
            self._attend(bound)
        self.started = True

    def _attend(self, bound: socket.socket) -> None:
        if bound in self._listening:
            asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def _accept(self, bound: socket.socket) -> None:
        """Take what waits, a few at a time: those who are connected already come first."""
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                accepted, address = bound.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # No descriptor is left, or no memory: those who wait go on waiting, and the loop does not spin.
                _log.warning("listener.full", error=error, connections=len(self.arrivals))
                loop.remove_reader(bound)
                loop.call_later(REST_SECONDS, self._attend, bound)
                return
            accepted.setblocking(False)
            arrival = self.arrivals.come(str(address[0]), partial(_end, accepted))
            task = loop.create_task(self._greet(accepted, arrival))
            self._greeted.add(task)
            task.add_done_callback(self._greeted.discard)

    async def _greet(self, accepted: socket.socket, arrival: Arrival) -> None:
        """The handshake; what comes over the connection afterwards is the protocol's."""
        waits: dict[str, Any] = {}
        loop = asyncio.get_running_loop()
        # Whoever opens a connection and says nothing holds a descriptor; TLS must not give it longer than plain HTTP would.
        seconds = min(self._bounds.handshake_seconds, self._bounds.head_seconds)
        try:
            face = await self._faces.of(accepted, seconds) if self._faces is not None else None
            config = self.config if face is None else _config(face.app, face.tls, self._bounds)
            if config.ssl is not None:
                waits = {
                    "ssl": config.ssl, "ssl_handshake_timeout": seconds,
                    "ssl_shutdown_timeout": self._bounds.shutdown_seconds,
                }  # fmt: skip
            await loop.connect_accepted_socket(partial(self._protocol, config, arrival), accepted, **waits)
        except OSError:  # of TLS or of the connection, or its time was over
            arrival.gone()
            _end(accepted)
        except BaseException:
            arrival.gone()
            _end(accepted)
            raise

    def _protocol(self, config: uvicorn.Config, arrival: Arrival) -> Protocol:
        return Protocol(self._bounds, arrival, config=config, server_state=self.server_state, app_state={})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        for bound in self._listening:
            loop.remove_reader(bound)
        self._listening.clear()
        self._share.close()
        # Handshakes first: one that ends after the connections were counted would be left open.
        for task in list(self._greeted):
            task.cancel()
        await asyncio.gather(*self._greeted, return_exceptions=True)
        connections, tasks = self.server_state.connections, self.server_state.tasks
        for connection in list(connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._bounds.shutdown_seconds):
                while connections or tasks:  # noqa: ASYNC110  # uvicorn's sets tell nobody when they become empty
                    await asyncio.sleep(POLL_SECONDS)
        for connection in list(connections):
            connection.transport.abort()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _config(app: Any, tls: ssl.SSLContext | None, bounds: Bounds) -> uvicorn.Config:
    config = uvicorn.Config(
        # No version in answers, and no paths of requests in a log of uvicorn's: ours knows what may be written there.
        app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False, date_header=False,
        proxy_headers=False,  # nobody stands in front, and a header must not say where a client is
        timeout_keep_alive=bounds.keep_alive_seconds,  # type: ignore[arg-type]  # a delay of the loop
    )  # fmt: skip
    config.load()
    config.ssl = tls
    return config


def _end(accepted: socket.socket) -> None:
    """End a connection from outside of whoever reads it, who sees it close."""
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    # A restart must not wait for the TIME_WAIT of connections of before.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bind_to(bound, host, port)
    except OSError:
        bound.close()
        raise
    return bound


def bind_to(unbound: socket.socket, host: str, port: int) -> None:
    """Bind a socket; raises OSError with the address, which whoever gave it looks for."""
    try:
        unbound.bind((host, port))
    except UnicodeError as error:
        raise OSError(errno.EINVAL, "not the name of a host", f"{host}:{port}") from error
    except OSError as error:
        error.filename = f"{host}:{port}"
        raise


def server_context(
    certificate: Path | None = None,
    key: Path | None = None,
    client_ca: Path | None = None,
    *,
    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> ssl.SSLContext:
    """TLS as a server, of this version or a later one; with `client_ca` a peer may show a certificate of that authority.

    Without a certificate the caller gives it one before it is used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = oldest
    # Clients here come back over connections that stay open: tickets would only cost (12 % of a new connection).
    context.num_tickets = 0
    # Named, so that a client of another protocol fails in the handshake; connections cannot be moved between protocols (ALPACA).
    context.set_alpn_protocols(["http/1.1"])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        # TLS only verifies what is shown; that something is shown is each route's `Auth` to demand. Keylime's registrar left it
        # at this line, and anybody without a certificate administered it (CVE-2026-1709).
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
