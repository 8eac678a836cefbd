"""What doors share around their applications: where they listen, with what, and who they are to callers.

A door opens its caches and keys, builds its application, shows it through a listener (`listener_of`) whose certificate
`rotation.py` keeps fresh, and yields a kind of `OpenDoor` while it serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastness.cluster.clock import Clock
from fastness.services.http.bounds import Bounds
from fastness.services.http.showing import LoopListener, Showing
from fastness.trust.certificates import DoorCertificates, Generations

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


def listener_of(app: Any, clock: Clock, options: ListenOptions) -> Showing:
    """The listener for an application that needs no certificate of its callers."""
    if not options.rust:
        return LoopListener(app, host=options.host, port=options.port, bounds=options.bounds)
    from fastness.services.http.rust import RustListener  # loads a second HTTP server: only where it serves

    return RustListener(app, clock, host=options.host, port=options.port, bounds=options.bounds)


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
