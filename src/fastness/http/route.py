"""One way into a door, and the table of all of them. What is not in the table does not exist.

    Route("config", READING, "/config/<pool>", Auth("ticket", self._admitted), UNLIMITED, self._config)

A row says everything that the edge (`edge.py`) must know before a handler runs:

    auth       what a caller must show. Its check gives the caller or raises Refusal; a handler is called with that caller, so
               there is no way to it past the check
    limit      how much the caller may take: the body that is read first, in a place for bodies that are still on their way, and
               the lane that the request then runs in

* A segment in <> takes any text; <**> takes all that are left, at least one. A literal segment wins over any text.
* HEAD is a method as any other: a row that does not name it refuses it.
* Two rows of one name, or for the same method and path, are a defect of the door: the table is not made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from fastness.formats import url_path as urlpath
from fastness.http.answers import Answer, Stream
from fastness.http.request import Request

READING: Final = ("GET", "HEAD")
JSON_ONLY: Final = ("application/json",)
REST: Final = "<**>"
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Auth(Generic[C]):
    """What a caller must show, as the table says it, and the check, which raises Refusal."""

    shows: str
    check: Callable[[Request], Awaitable[C]]


async def _anybody(_request: Request) -> None:
    """Let everybody in."""


OPEN: Final = Auth("nothing", _anybody)


@dataclass(frozen=True, slots=True)
class Body:
    """A body that is read before the handler runs: its bound, its types, and the place that it takes while it is on its way."""

    most: int
    media: tuple[str, ...]
    reading: Callable[[Request], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Limit(Generic[C]):
    """How much a caller may take; a lane raises Refusal when it is full."""

    lane: Callable[[Request, C], AbstractContextManager[None]] | None = None
    body: Body | None = None


UNLIMITED: Final[Limit[Any]] = Limit()


@dataclass(frozen=True, slots=True)
class Route(Generic[C]):
    """One row of the table of a door."""

    name: str
    methods: tuple[str, ...]
    path: str
    auth: Auth[C]
    limit: Limit[C]
    handler: Callable[[Request, C], Awaitable[Answer | Stream]]

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments of the path; `/` has none."""
        return tuple(filter(None, self.path.split("/")))


Routes = tuple[Route[Any], ...]
"""The table of a door."""


class NoRoute(Exception):
    """Nothing is at a path, or the path cannot be read (`urlpath`)."""

    def __init__(self, *, readable: bool = True) -> None:
        super().__init__("there is nothing here")
        self.readable = readable


class WrongMethod(Exception):
    """A path that has other methods than `method`; `auth` is what these demand."""

    def __init__(self, method: str, methods: Iterable[str], auth: Auth[Any]) -> None:
        self.method = method
        self.methods = tuple(methods)
        self.auth = auth
        super().__init__(f"only {' and '.join(self.methods)}")

    @property
    def allow(self) -> tuple[bytes, bytes]:
        """The header that a 405 must have (RFC 9110 §15.5.6)."""
        return allow_header(self.methods)


def allow_header(methods: Iterable[str]) -> tuple[bytes, bytes]:
    """`Allow` with these methods, or with none (RFC 9110 §10.2.1)."""
    return b"allow", ", ".join(methods).encode()


class _Place(NamedTuple):
    """A path of the table: its segments, which of them are values, and its route by method."""

    segments: tuple[str, ...]
    values: tuple[int, ...]
    routes: dict[str, Route[Any]]


class RouteTable:
    """Finds the route of a request."""

    def __init__(self, routes: Sequence[Route[Any]]) -> None:
        """Raises ValueError for a table that says one thing twice."""
        # Names are what metrics and the record call a way in; two ways under one name would hide each other.
        if len({route.name for route in routes}) != len(routes):
            raise ValueError("two routes have the same name")
        places: dict[tuple[str, ...], _Place] = {}
        for route in routes:
            segments = route.segments
            values = tuple(at for at, part in enumerate(segments) if part.startswith("<"))
            place = places.setdefault(segments, _Place(segments, values, {}))
            for method in route.methods:
                # Two rows for one way in would leave it to their order which check is asked.
                if method in place.routes:
                    raise ValueError(f"{method} {route.path} has two routes")
                place.routes[method] = route
        self._fixed = _by_length(place for place in places.values() if REST not in place.segments)
        self._rest = [place for place in places.values() if REST in place.segments]

    def find(self, request: Request) -> Route[Any]:
        """The route of a request, which has its segments and values from then on; raises NoRoute, WrongMethod."""
        # Split once, before anything is decoded, and handed on: a handler that split again could see another path (pitfall 17).
        segments = urlpath.split(request.path)
        if segments is None:
            raise NoRoute(readable=False)
        for place in self._fixed.get(len(segments), ()):
            if _fits(place.segments, segments):
                request.values = tuple([segments[at] for at in place.values])
                return _chosen(place, request, segments)
        for place in self._rest:
            prefix = place.segments[:-1]
            if len(segments) > len(prefix) and _fits(prefix, segments[: len(prefix)]):
                request.values = tuple(segments[len(prefix) :])
                return _chosen(place, request, segments)
        raise NoRoute


def _by_length(places: Iterable[_Place]) -> Mapping[int, Sequence[_Place]]:
    """Places by their number of segments, those with the fewest values first."""
    grouped: dict[int, list[_Place]] = {}
    # A literal before any text: `/config/<pool>` must not answer for `/config/healthz` with its own check.
    for place in sorted(places, key=lambda place: len(place.values)):
        grouped.setdefault(len(place.segments), []).append(place)
    return grouped


def _chosen(place: _Place, request: Request, segments: list[str]) -> Route[Any]:
    request.segments = tuple(segments)
    route = place.routes.get(request.method)
    if route is None:
        raise WrongMethod(request.method, place.routes, next(iter(place.routes.values())).auth)
    return route


def _fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    for part, segment in zip(pattern, segments, strict=True):  # noqa: SIM110  # a generator costs three times as much
        if part != segment and part[0] != "<":
            return False
    return True
