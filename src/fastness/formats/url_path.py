"""The path of a URL, taken apart without surprises.

Segments are percent-decoded one by one. A path that plays tricks is no path: an empty segment, `.` or `..`, a slash, a backslash,
a control character or a second layer of encoding inside a segment. One trailing slash is accepted, because clients in the field
send it.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

MAX_PATH = 4096
MAX_SEGMENTS = 12


def split(path: str) -> list[str] | None:
    """The decoded segments of a path, or None when the path plays tricks."""
    if not path.startswith("/") or len(path) > MAX_PATH:
        return None
    raw = path[1:].split("/")
    if raw and raw[-1] == "":
        raw.pop()
    if len(raw) > MAX_SEGMENTS:
        return None
    if "%" not in path:
        return raw if all(map(_is_plain, raw)) else None
    segments = [_decoded(part) for part in raw]
    return None if None in segments else [segment for segment in segments if segment is not None]


def _decoded(part: str) -> str | None:
    try:
        segment = unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return segment if _is_plain(segment) and "/" not in segment and "%" not in segment else None


def _is_plain(segment: str) -> bool:
    return bool(segment) and segment not in (".", "..") and segment.isprintable() and "\\" not in segment
