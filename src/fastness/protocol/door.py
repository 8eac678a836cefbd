"""A door as machines know it: where it is, and the role that its certificate names.

An origin is `https://host` or `https://host:port`, with nothing behind it: a path, a query or a user name in such a place would
be carried into requests that somebody else wrote. Trust files, user-data and enrolment name doors so.

    URI:fastness://role/broker        one entry of subjectAltName, beside the names and addresses that callers dial

All doors have certificates of one authority, so a name alone proves that *a* door answers. Whoever took over a gate could listen
where machines expect the broker; the role is what tells the two apart. It is read strictly: exactly one URI, and exactly one that
is in the table. A URI is used because TLS libraries hand it over parsed, while a part of the subject would have to be told apart
from what people write there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

PREFIX: Final = "fastness://role/"
MAX_CHARS: Final = 512


class DoorRole(StrEnum):
    """The doors that have certificates."""

    GATE = "gate"
    BROKER = "broker"
    ENROLMENT = "enrolment"
    CONFIG_SERVER = "configserver"
    PAGE = "page"
    WEBHOOK = "webhook"

    @property
    def uri(self) -> str:
        """How a certificate says it."""
        return f"{PREFIX}{self.value}"


_BY_URI: Final = {role.uri: role for role in DoorRole}


def role_named(uris: Sequence[str]) -> DoorRole | None:
    """The role of a certificate with these URIs; None when it names none, another one, or more than one."""
    # With two roles in one certificate, each caller would read the one that it hopes for.
    return _BY_URI.get(uris[0]) if len(uris) == 1 else None


def is_origin(url: Any) -> bool:
    """Whether a text is an https URL of a host, with or without a port, and nothing else."""
    if not isinstance(url, str) or len(url) > MAX_CHARS or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        # Read here because it raises: a port beyond 65535 is only noticed when somebody asks for it.
        port = parts.port
    except ValueError:
        return False
    # A user name in front of `@` makes `https://good.example@evil.example` look like the host that it is not.
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts.scheme == "https" and bool(parts.hostname) and port != 0 and plain
