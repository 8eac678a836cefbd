"""A listener whose TLS and HTTP run in Rust threads (granian, rustls), for a stand-alone config server.

A new TLS connection with 200 KiB costs about 0.7 of nginx's CPU here and 1.5 of it in OpenSSL under Python. It cannot show the
certificate of a peer, so doors that need one stay with `http.listener`.

Its certificate cannot be replaced while it runs, so a new generation of it takes the place of the old one on the same port:

* each is an embedded server of granian with a socket of its own, and the port is never without one;
* the kernel gives new connections to the newest socket only (`shared_port.py`);
* an older one serves what it has for `GRACE` seconds, stops listening and ends with its last request. Nobody sees a refused or
  a cut connection. A certificate that comes earlier than that waits: no more than two may listen.

The private half of a certificate is handed over in anonymous memory and never lies on a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PosixPath
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from fastness.crypto.digests import Digest
from fastness.crypto.x509 import Certificate, Credential
from fastness.http.bounds import Bounds, Share
from fastness.http.certificates import anonymous
from fastness.http.shared_port import SharedPort
from fastness.runtime.clock import Clock

# Longer than a queue that a boot storm has filled; and a handshake, which the end of a server cuts, has ten seconds.
GRACE: Final = 60.0
CHANGE_SECONDS: Final = 10.0  # for a server to begin to listen, or to cease
POLL_SECONDS: Final = 0.005
BACKLOG: Final = 1024
BLOCKING_THREADS: Final = 16  # for files and names, which this application does not ask for
# The library would give the whole process other handlers of logs; so it changes no more than the level of its own.
_LOGS: Final = {"incremental": True, "handlers": {}, "loggers": {}}

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class _InMemory(PosixPath):
    """A path to anonymous memory. It is a link whose target cannot be opened by name, and granian resolves links."""

    def resolve(self, strict: bool = False) -> _InMemory:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class _Generation:
    """One server with one certificate."""

    server: Server
    serving: asyncio.Task[None]

    def end(self) -> None:
        """Stop listening, and end with the last request."""
        self.server.stop()  # type: ignore[no-untyped-call]


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
        self._bounds = bounds or Bounds()
        self._grace = grace
        self._shared = SharedPort(host, port)
        self._share = Share(self._bounds)
        self._fingerprint: Digest | None = None
        self._newest: _Generation | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._generations: set[_Generation] = set()  # also those that end with their last request

    @property
    def port(self) -> int:
        """The port that is bound, also when any free one was asked for."""
        return self._shared.port

    async def show(self, credential: Credential, trusted: Sequence[Certificate] = ()) -> None:
        """Accept with this certificate from now on; connections that exist stay as they are. Raises OSError."""
        if credential.certificate.fingerprint == self._fingerprint:
            return  # only the authorities of peers have changed, and no peer is asked for a certificate
        if self._retiring is not None:
            await asyncio.wait((self._retiring,))
        before, listening = self._newest, self._shared.listeners()
        if before is None:
            self._shared.begin()
        elif listening > 1:
            raise OSError(
                f"a listener on port {self.port} was told to end and listens on; it has to end before the next"
            )
        self._newest = await self._start(credential)
        self._fingerprint = credential.certificate.fingerprint
        if before is None:
            self._shared.hand_over()
        else:
            self._retiring = asyncio.create_task(self._retire(before), name=f"listener:{self.port}:retiring")

    async def stop(self) -> None:
        """Stop accepting and let running requests end within a few seconds."""
        if self._retiring is not None:
            self._retiring.cancel()
            await asyncio.wait((self._retiring,))
        for generation in self._generations:
            generation.end()
        if serving := [generation.serving for generation in self._generations]:
            await asyncio.wait(serving, timeout=self._bounds.shutdown_seconds)
        self._shared.hand_over()
        self._share.close()

    async def _retire(self, generation: _Generation) -> None:
        await self._clock.sleep(self._grace)
        generation.end()
        await self._until(lambda: self._shared.listeners() <= 1)

    async def _start(self, credential: Credential) -> _Generation:
        """A new generation that listens; raises OSError."""
        before = self._shared.listeners()
        with anonymous(credential.certificate.pem) as certificate, anonymous(credential.key_pem.reveal()) as key:
            try:
                server = self._server(_InMemory(certificate), _InMemory(key))
            except OSError as error:
                raise OSError(f"nothing can listen on port {self.port} with this certificate: {error}") from error
            serving = asyncio.create_task(server.serve(), name=f"listener:{self.port}")
            generation = _Generation(server, serving)
            self._generations.add(generation)
            serving.add_done_callback(partial(self._ended, generation))
            try:
                await self._until(lambda: serving.done() or self._shared.listeners() > before)
            except BaseException:
                generation.end()
                raise
        if serving.done() or self._shared.listeners() <= before:
            generation.end()
            reason = serving.exception() if serving.done() else f"it does not listen after {CHANGE_SECONDS:.0f} seconds"
            raise OSError(f"the listener on port {self.port} did not start: {reason}")
        return generation

    def _server(self, certificate: Path, key: Path) -> Server:
        head_milliseconds = int(self._bounds.head_seconds * 1000)
        return Server(
            self._app, self._shared.host, self.port, interface=Interfaces.ASGINL, http=HTTPModes.http1, websockets=False,
            runtime_blocking_threads=BLOCKING_THREADS, backlog=BACKLOG, backpressure=self._share.places.usual,
            http1_settings=HTTP1Settings(head_milliseconds, keep_alive=True, max_buffer_size=self._bounds.head_bytes),
            # No peer is asked for a certificate: nobody could be told of it.
            ssl_cert=certificate, ssl_key=key, ssl_protocol_min=SSLProtocols.tls13, ssl_client_verify=False,
            log_level=LogLevels.error, log_dictconfig=_LOGS,
        )  # fmt: skip

    def _ended(self, generation: _Generation, serving: asyncio.Task[None]) -> None:
        self._generations.discard(generation)
        if not serving.cancelled():
            serving.exception()  # the library has logged it; whoever started this generation raises it
        self._shared.sweep()

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for what another thread does, at most `CHANGE_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CHANGE_SECONDS):
                while not holds():  # noqa: ASYNC110  # the kernel tells nobody
                    await asyncio.sleep(POLL_SECONDS)
