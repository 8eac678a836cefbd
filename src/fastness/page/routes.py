"""The paths of the page, with who may come.

`OPEN` paths show nothing of the cluster. `SESSION` paths need a login; without one a browser is led to the form. Everything that
changes something is a POST, and every POST carries a token that only the page can have made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

MAX_NAME: Final = 253


class Auth(StrEnum):
    """Who may come."""

    OPEN = "open"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Route:
    """One path; `{name}` stands for one segment."""

    name: str
    method: str
    pattern: str
    auth: Auth


ROUTES: Final = (
    Route("fleet", "GET", "/", Auth.SESSION),
    Route("machine", "GET", "/machines/{name}", Auth.SESSION),
    Route("decision", "POST", "/machines/{name}/decision", Auth.SESSION),
    Route("pools", "GET", "/pools", Auth.SESSION),
    Route("runtimes", "GET", "/runtimes", Auth.SESSION),
    Route("trust", "GET", "/trust", Auth.SESSION),
    Route("record", "GET", "/record/{name}", Auth.SESSION),
    Route("simulator", "GET", "/simulator", Auth.SESSION),
    Route("simulate", "POST", "/simulator", Auth.SESSION),
    Route("events", "GET", "/events", Auth.SESSION),
    Route("logout", "POST", "/logout", Auth.SESSION),
    Route("login-form", "GET", "/login", Auth.OPEN),
    Route("login", "POST", "/login", Auth.OPEN),
    Route("asset", "GET", "/assets/{name}", Auth.OPEN),
)


def find(method: str, path: str) -> tuple[Route, str] | None:
    """The route of a request and the name in its path; None where nothing is."""
    wanted = "GET" if method == "HEAD" else method
    parts = path.split("/")
    for route in ROUTES:
        pattern = route.pattern.split("/")
        if route.method == wanted and len(pattern) == len(parts):
            pairs = list(zip(pattern, parts, strict=True))
            if all(mine == "{name}" or mine == its for mine, its in pairs):
                name = unquote(next((its for mine, its in pairs if mine == "{name}"), ""))
                if ("{name}" not in route.pattern) or 0 < len(name) <= MAX_NAME:
                    return route, name
    return None


def after_login(path: str) -> str:
    """Where a login leads: a view of this page, or the fleet."""
    plain = path.partition("?")[0]
    if not path.isascii() or not path.isprintable() or " " in path or "\\" in path or path.startswith("//"):
        return "/"
    found = find("GET", plain)
    return path if found is not None and found[0].auth is Auth.SESSION and found[0].name != "events" else "/"
