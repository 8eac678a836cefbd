"""The route table of the API door.

Every route says who may come in: `auth` has no default. `Auth.OPEN` is for liveness and version only; `Auth.PATH` asks RBAC
for the path, `Auth.RESOURCE` for the verb on the resource. A test walks this table and fails for a route without a row in
the matrix of credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fastness.apiserver.verbs import paths


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"
    PATH = "path"
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True)
class Route:
    """One way in."""

    name: str
    pattern: str
    methods: tuple[str, ...]
    auth: Auth


GET = ("GET", "HEAD")
READ_WRITE = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
HEALTH = Route("health", "/healthz", GET, Auth.OPEN)
LIVE = Route("live", "/livez", GET, Auth.OPEN)
READY = Route("ready", "/readyz", GET, Auth.OPEN)
VERSION = Route("version", "/version", GET, Auth.OPEN)
METRICS = Route("metrics", "/metrics", GET, Auth.PATH)
INDEX = Route("index", "/", GET, Auth.PATH)
DISCOVERY = Route("discovery", "/api, /apis and the groups below", GET, Auth.PATH)
OPENAPI = Route("openapi", "/openapi/v3 and below", GET, Auth.PATH)
RESOURCES = Route("resources", "/api/v1/… and /apis/<group>/<version>/…", READ_WRITE, Auth.RESOURCE)

ROUTES = (HEALTH, LIVE, READY, VERSION, METRICS, INDEX, DISCOVERY, OPENAPI, RESOURCES)
_EXACT = {route.pattern: route for route in (HEALTH, LIVE, READY, VERSION, METRICS)}
_CHECKS = {"healthz": HEALTH, "livez": LIVE, "readyz": READY}


def find(path: str) -> tuple[Route, list[str]] | None:
    """The route of a path and its decoded segments; None for a path that nothing serves."""
    segments = paths.split(path)
    if segments is None:
        return None
    if not segments:
        return INDEX, segments
    if len(segments) == 1 and (exact := _EXACT.get(f"/{segments[0]}")) is not None:
        return exact, segments
    if len(segments) == 2 and segments[0] in _CHECKS:
        return _CHECKS[segments[0]], segments
    first, depth = segments[0], len(segments)
    if first == "openapi" and depth > 1:
        return OPENAPI, segments
    if (first == "api" and depth <= 2) or (first == "apis" and depth <= 3):
        return DISCOVERY, segments
    if first in ("api", "apis"):
        return RESOURCES, segments
    return None
