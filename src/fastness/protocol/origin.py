"""Origins: where a door is, as trust files, user-data and enrolment name it.

An origin is `https://host` or `https://host:port`, with nothing behind it: a path, a query or a user name in such a place would
be carried into requests that somebody else wrote.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

MAX_CHARS: Final = 512


def is_origin(url: Any) -> bool:
    """Whether a text is an https URL of a host, with or without a port, and nothing else."""
    if not isinstance(url, str) or len(url) > MAX_CHARS or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts.scheme == "https" and bool(parts.hostname) and port != 0 and plain
