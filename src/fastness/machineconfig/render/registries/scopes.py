"""Scopes: what an entry about registries is about, and which scopes lie inside which.

A scope is `*.domain`, a registry `host[:port]`, or a path in one. In the files of the container runtime the entry with the
narrowest scope counts alone, so whatever is said about a scope has to be said again in every entry inside it: `nested` is asked
for every entry, and `around` answers without a comparison of all with all.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Final

_HOST: Final = re.compile(r"[^:/]*")
_UNREADABLE: Final = re.compile(r"[\s\x00-\x1f\x7f]|://|/\Z")


def is_wildcard(scope: str) -> bool:
    """Whether a scope stands for all hosts below a domain."""
    return scope.startswith("*.")


def is_scope(text: str) -> bool:
    """Whether a text can be a scope: `*` only as a leading `*.`, which nothing but a domain may follow.

    A scheme, blanks or a slash at the end are refused as well. The runtime cannot read a file with the first at all, and the
    other two match nothing, so that what somebody meant to block would stay open.
    """
    if not text or _UNREADABLE.search(text):
        return False
    if "*" not in text:
        return True
    return is_wildcard(text) and len(text) > 2 and not set(text[2:]) & set("/@:*")


def host(scope: str) -> str:
    """The host of a scope, without its port."""
    match = _HOST.match(scope)
    return match[0] if match else ""


def nested(scope: str, outer: str) -> bool:
    """Whether a scope is another one or lies inside it."""
    if scope == outer or scope.startswith(f"{outer}/"):
        return True
    return is_wildcard(outer) and host(scope).endswith(outer[1:])


def around(scope: str) -> Iterator[str]:
    """Every scope that this one is nested in, itself first, the narrowest first."""
    yield scope
    end = scope.rfind("/")
    while end > 0:
        yield scope[:end]
        end = scope.rfind("/", 0, end)
    name = host(scope)
    dot = name.find(".")
    while dot >= 0:
        wildcard = f"*{name[dot:]}"
        if wildcard != scope:
            yield wildcard
        dot = name.find(".", dot + 1)


def inside(scope: str, scopes: Container[str]) -> bool:
    """Whether a scope is nested in any of some scopes."""
    return any(outer in scopes for outer in around(scope))


def below(scope: str, outer: str) -> str:
    """The part of a scope's path that comes after another one that it is nested in; begins with a slash, or is empty."""
    if is_wildcard(outer):
        slash = scope.find("/")
        return scope[slash:] if slash >= 0 else ""
    return scope[len(outer) :]


def repository(image: str) -> str:
    """An image's name without tag and digest."""
    name = image.partition("@")[0]
    slash, colon = name.rfind("/"), name.rfind(":")
    return name[:colon] if colon > slash >= 0 else name
