"""Every way into the broker, with what a caller must show. What is not in the table does not exist.

A test walks the table and fails for a route without its cases. The guard runs before the handler is looked up, and a handler gets
what the guard found: there is no way to it that skips the column `auth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"
    CHALLENGE = "challenge"  # the cookie of a challenge, and evidence that answers it
    SESSION = "session"  # the cookie of a session, or a token with a proof of possession
    ADMIN = "admin"  # a credential whose scopes allow this very call
    INTERNAL = "internal"  # a client certificate of the authority between our own parts


@dataclass(frozen=True, slots=True)
class Route:
    """One way in. A segment in <> takes any text; <**> takes all that are left, at least one."""

    name: str
    method: str
    pattern: str
    auth: Auth

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments of the pattern."""
        return tuple(self.pattern.removeprefix("/").split("/"))


KBS: Final = ("kbs", "v0")
_RESOURCE: Final = "/kbs/v0/resource/<repository>/<type>/<tag>"

ROUTES: Final = (
    Route("health", "GET", "/healthz", Auth.OPEN),
    Route("jwks", "GET", "/.well-known/jwks.json", Auth.OPEN),
    Route("auth", "POST", "/kbs/v0/auth", Auth.OPEN),
    Route("attest", "POST", "/kbs/v0/attest", Auth.CHALLENGE),
    Route("resource", "GET", _RESOURCE, Auth.SESSION),
    Route("write-resource", "POST", _RESOURCE, Auth.ADMIN),
    Route("delete-resource", "DELETE", _RESOURCE, Auth.ADMIN),
    Route("list-resources", "GET", "/kbs/v0/resource", Auth.ADMIN),
    Route("write-policy", "POST", "/kbs/v0/attestation-policy", Auth.ADMIN),
    Route("list-policies", "GET", "/kbs/v0/attestation-policy", Auth.ADMIN),
    Route("write-resource-policy", "POST", "/kbs/v0/resource-policy", Auth.ADMIN),
    Route("list-resource-policies", "GET", "/kbs/v0/resource-policy", Auth.ADMIN),
    Route("write-value", "POST", "/kbs/v0/reference-value", Auth.ADMIN),
    Route("read-value", "GET", "/kbs/v0/reference-value/<**>", Auth.ADMIN),
    Route("introspect", "POST", "/attestation/v1/introspect", Auth.INTERNAL),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a path leads to: a route, or the methods that it has."""

    route: Route | None
    methods: tuple[str, ...] = ()


# By number of segments; the routes that take any number are looked at apart.
_FIXED: Final[dict[int, list[tuple[Route, tuple[str, ...]]]]] = {}
_OPEN_ENDED: Final = [(route, route.segments[:-1]) for route in ROUTES if route.segments[-1] == "<**>"]
for _route in ROUTES:
    if _route.segments[-1] != "<**>":
        _FIXED.setdefault(len(_route.segments), []).append((_route, _route.segments))


def find(method: str, segments: Sequence[str]) -> Found:
    """The route of a method and a path; without one, the methods that the path has."""
    there = [route for route, pattern in _FIXED.get(len(segments), ()) if _fits(pattern, segments)]
    there += [
        route
        for route, pattern in _OPEN_ENDED
        if len(segments) > len(pattern) and _fits(pattern, segments[: len(pattern)])
    ]
    for route in there:
        if route.method == method or (method == "HEAD" and route.method == "GET" and route.auth is Auth.OPEN):
            return Found(route)
    return Found(None, tuple(route.method for route in there))


def _fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    for part, segment in zip(pattern, segments, strict=True):  # noqa: SIM110  # a generator costs three times as much
        if part != segment and part[0] != "<":
            return False
    return True
