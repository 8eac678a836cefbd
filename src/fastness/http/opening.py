"""The one way to open a door, to keep its certificate fresh and to close it.

    async with open_door(app, listen, ServedCertificate("gate", certificates), clock, {"events": events.run}) as port: ...

A door opens its caches and keys, builds its application, opens it here, and yields a kind of `OpenDoor` while it serves.

    open     bind → first certificate, from which on it accepts → rotation and the tasks of the door run beside it
    close    tasks end → the listener stops accepting and lets running requests end → whatever the door opened before closes

Callers are asked for no certificate, or may show one (`peers`), or get no connection without one (`mutual`). What it is worth the
application decides, against the authorities of that moment: OpenSSL cannot forget one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from fastness.crypto.x509 import Certificate
from fastness.http.bounds import Bounds
from fastness.http.certificates import LoopListener, TlsListener
from fastness.http.faces import Faces
from fastness.http.rotation import Rotation, ServedCertificate
from fastness.keys.certificates import DoorCertificates, Generations
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import background

LOCAL = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen and under which names; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()

    @property
    def hosts(self) -> list[str]:
        """The names that the certificates speak for; an address that means all of them is none."""
        own = (self.host,) if self.host not in ("0.0.0.0", "::") else ()  # noqa: S104  # compared, not bound
        return list(dict.fromkeys([*self.names, *own, *LOCAL]))


@dataclass(frozen=True, slots=True)
class ListenOptions(Listening):
    """Where to listen, and with what; some doors have a second port for our own parts."""

    internal_port: int = 0
    rust: bool = False
    bounds: Bounds | None = None


Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Authorities = Callable[[], Sequence[Certificate]]
"""The authorities whose client certificates count now."""
Tasks = Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
NO_TASKS: Final[Tasks] = MappingProxyType({})


@asynccontextmanager
async def open_door(
    app: Asgi,
    listen: ListenOptions,
    served: ServedCertificate,
    clock: Clock,
    tasks: Tasks = NO_TASKS,
    *,
    peers: Authorities | None = None,
    mutual: bool = False,
    faces: Faces | None = None,
) -> AsyncIterator[int]:
    """A door that accepts for the time of the block, with tasks beside it; gives its port. Raises CryptoError, OSError.

    A task that fails ends the block. `faces` are what it shows under further names.
    """
    listener = listener_of(app, clock, listen, peers=peers, mutual=mutual, faces=faces)
    rotation = Rotation(listener, served, clock)
    try:
        await rotation.begin()
        async with background(served.name, rotation=rotation.run, **tasks):
            yield listener.port
    finally:
        await listener.stop()


def listener_of(
    app: Asgi,
    clock: Clock,
    listen: ListenOptions,
    *,
    peers: Authorities | None = None,
    mutual: bool = False,
    faces: Faces | None = None,
) -> TlsListener:
    """The listener for an application; the one in Rust cannot show the certificate of a peer, nor another face."""
    if not listen.rust or peers is not None or mutual or faces is not None:
        return LoopListener(
            app, host=listen.host, port=listen.port, mutual=mutual, peers=peers, bounds=listen.bounds, faces=faces
        )
    from fastness.http.rustls import RustListener  # loads a second HTTP server: only where it serves

    return RustListener(app, clock, host=listen.host, port=listen.port, bounds=listen.bounds)


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """A running door: its port, and the certificates of its role as they are now."""

    port: int
    certificates: DoorCertificates

    @property
    def doors(self) -> Generations:
        """The authority that machines trust."""
        return self.certificates.current.doors

    @property
    def internal(self) -> Generations:
        """The authority that our own parts trust; nothing for a door that none of them comes to."""
        return self.certificates.current.internal
