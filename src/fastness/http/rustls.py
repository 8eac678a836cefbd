"""A listener whose TLS and HTTP run in Rust threads (granian, rustls), for a stand-alone config server.

A new TLS connection with 200 KiB costs about 0.7 of nginx's CPU here and 1.5 of it in OpenSSL under Python. It cannot show the
certificate of a peer, so doors that need one stay with `http.listener`.

Its certificate cannot be replaced while it runs, so a new listener takes the place of the old one on the same port:

* both have a socket of their own with SO_REUSEPORT, the port is never without one;
* a one-line filter (classic BPF) makes the kernel give new connections to the newest socket only;
* an older one serves what it has accepted for `GRACE` seconds and ends. Nobody sees a refused or a cut connection.

The private half of a certificate is handed over in anonymous memory and never lies on a disk.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from granian import _futures, _granian
from granian.http import HTTP1Settings

from fastness.crypto.x509 import Certificate, Credential
from fastness.http.bounds import Bounds, Share
from fastness.http.certificates import anonymous
from fastness.runtime.clock import Clock

GRACE: Final = 60.0
BACKLOG: Final = 1024
BLOCKING_THREADS: Final = 16  # for files and names, which this application does not ask for
# What granian's own embedded server (`granian.server.embed`, called experimental there) is made of. That one was tried, 2.8.7:
# two of them share a port, but neither takes a socket nor gives its own away, so the kernel cannot be told which of them is the
# newer one (`_prefer`), and whatever the older accepts last would be cut at its end. Its type stubs are of another version.
# `tests/component/http/test_rust.py` pins all of it.
_python: Final[Any] = _futures
_native: Final[Any] = _granian
_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_BPF_RETURN_CONSTANT: Final = 0x06

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Running:
    """One generation: a socket and the worker behind it."""

    bound: socket.socket
    end: Any
    ended: asyncio.Future[None]


class RustListener:
    """One port with one application behind it; starts with its first certificate."""

    def __init__(
        self,
        app: App,
        clock: Clock,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        bounds: Bounds | None = None,
        grace: float = GRACE,
    ) -> None:
        self._app = app
        self._clock = clock
        self._host = host
        self._bounds = bounds or Bounds()
        self._share = Share(self._bounds)
        self._grace = grace
        # Bound and never listening: the port is ours from now on, and stays ours between two generations.
        self._held = _bound(host, port)
        # The generations in the order in which the kernel counts the sockets of a port; the newest one is `_running`.
        self._counted: list[_Running] = []
        self._running: _Running | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that is bound, also when any free one was asked for."""
        return int(self._held.getsockname()[1])

    async def show(self, credential: Credential, trusted: Sequence[Certificate] = ()) -> None:
        """Accept with this certificate from now on; connections that exist stay as they are."""
        fresh, before = self._started(credential), self._running
        self._running = fresh
        self._counted.append(fresh)
        self._prefer_newest()
        if before is not None:
            task = asyncio.create_task(self._retire(before), name=f"listener:{self.port}:retiring")
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def stop(self) -> None:
        """Stop accepting and end all generations."""
        for task in tuple(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        if self._running is not None:
            running, self._running = self._running, None
            await self._end(running)
        self._held.close()
        self._share.close()

    async def _retire(self, running: _Running) -> None:
        try:
            await self._clock.sleep(self._grace)
        finally:
            await self._end(running)
            self._prefer_newest()

    async def _end(self, running: _Running) -> None:
        running.end.set()
        await running.ended
        running.bound.close()
        # The kernel puts the last socket into the place of one that goes.
        place = self._counted.index(running)
        self._counted[place] = self._counted[-1]
        self._counted.pop()

    def _prefer_newest(self) -> None:
        """Give new connections to the newest socket.

        Where the filter is refused all generations accept for a while, and the last connections of an old one are cut at its end.
        """
        if self._running is not None and len(self._counted) > 1:
            with suppress(OSError):
                _prefer(self._running.bound, self._counted.index(self._running))

    def _started(self, credential: Credential) -> _Running:
        bound = _bound(self._host, self.port)
        try:
            bound.listen(BACKLOG)
            bound.setblocking(False)
            return self._serving(bound, credential)
        except BaseException:
            bound.close()
            raise

    def _serving(self, bound: socket.socket, credential: Credential) -> _Running:
        loop = asyncio.get_running_loop()
        end, ended = _native.WorkerSignal(), loop.create_future()
        end.add_cb(lambda: loop.call_soon_threadsafe(_settle, ended))
        call = _python._future_watcher_wrapper(self._call)
        listening = (None, _native.SocketHolder(os.dup(bound.fileno()), False, BACKLOG))
        threads = (1, BLOCKING_THREADS, 1, 30)  # of Rust, for files, of Python, and when idle ones of those end
        http = HTTP1Settings(int(self._bounds.head_seconds * 1000), True, self._bounds.head_bytes)
        with anonymous(credential.certificate.pem) as certificate, anonymous(credential.key_pem.reveal()) as key:
            # No peer is asked for a certificate: nobody could be told of it.
            tls: tuple[Any, ...] = (True, str(certificate), str(key), None, "tls1.3", None, [], False)
            worker = _native.ASGIWorker(
                1, listening, None, *threads, self._share.places.usual, "1", http, None,
                False, None, *tls, (None, None),
            )  # fmt: skip
            worker.serve_async(_python._new_cbscheduler(loop, call, impl_asyncio=True), loop, end)
        return _Running(bound, end, ended)

    async def _call(self, scope: MutableMapping[str, Any], protocol: Any) -> None:
        await self._app(scope, protocol.receive, protocol.send)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _prefer(listening: socket.socket, index: int) -> None:
    """Give all new connections of a port to the socket with this index; raises OSError."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RETURN_CONSTANT, 0, 0, index))
    listening.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, struct.pack("HxxxxxxP", 1, ctypes.addressof(program))
    )
