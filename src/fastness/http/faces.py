"""Further server names of a port: each with a TLS context and an application of its own, chosen by the ClientHello alone.

    faces.show("api-int.example.com", context, app)      # from now on, for connections that ask for that name
    face = await faces.of(accepted, seconds)              # None: the port's own

The name is read by looking at what waits in the socket, before TLS answers: OpenSSL settles on a version before it asks anybody
about a name, so one context could not speak TLS 1.2 under one name and refuse it under all others. What follows over the
connection goes to that application and to no other, whatever its headers say. While there is no further name nobody looks.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from fastness.formats.client_hello import MAX_RECORD, server_name

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
_LOOK: Final = MAX_RECORD + 5
_PAUSE: Final = 0.01


class Face(NamedTuple):
    """What a port shows under one name."""

    tls: ssl.SSLContext
    app: Asgi


class Faces:
    """The further names of one port."""

    def __init__(self) -> None:
        self._faces: dict[str, Face] = {}

    def show(self, name: str, face: Face) -> None:
        """Answer to a name, from the next connection on."""
        self._faces[name] = face

    def hide(self, name: str) -> None:
        """Answer to a name no more."""
        self._faces.pop(name, None)

    @property
    def names(self) -> frozenset[str]:
        """The names of now."""
        return frozenset(self._faces)

    async def of(self, accepted: socket.socket, seconds: float) -> Face | None:
        """What a new connection asks for, None for the port itself; raises OSError, TimeoutError."""
        if not self._faces:
            return None
        async with asyncio.timeout(seconds):
            while True:
                await _readable(accepted)
                seen = accepted.recv(_LOOK, socket.MSG_PEEK)
                name = server_name(seen)
                if name is not None or not seen:
                    return self._faces.get(name or "")
                # Part of a record: the socket stays readable, so nothing tells of the rest.
                await asyncio.sleep(_PAUSE)


async def _readable(accepted: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(accepted, tell)
    try:
        await ready
    finally:
        loop.remove_reader(accepted)
