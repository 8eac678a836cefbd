"""REST paths of the Kubernetes API, taken apart once.

A path names a collection, an object or a subresource: `/api/v1/…` for the core group, `/apis/<group>/<version>/…` for the rest,
`namespaces/<namespace>/` before the plural for what lives in one. Rules:

* Segments are percent-decoded one by one; an empty segment, `.`, `..`, a slash or a control character inside a segment makes the
  path foreign (404), so that nothing downstream ever sees a tricked name.
* One trailing slash is accepted, because clients in the field send it.
* `namespaces` is itself a collection: `/api/v1/namespaces/a/status` is a subresource, `/api/v1/namespaces/a/pods` is not.

The verb follows from method and shape (`verb_of`), and authorization, audit and metrics use the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
MAX_PATH = 4096
MAX_SEGMENTS = 12


@dataclass(frozen=True, slots=True)
class Target:
    """What a resource path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


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
        return raw if all(_is_plain(segment) for segment in raw) else None
    segments: list[str] = []
    for part in raw:
        try:
            segment = unquote_to_bytes(part).decode("utf-8")
        except UnicodeDecodeError:
            return None
        if not _is_plain(segment) or "/" in segment or "%" in segment:
            return None
        segments.append(segment)
    return segments


def _is_plain(segment: str) -> bool:
    return bool(segment) and segment not in (".", "..") and segment.isprintable() and "\\" not in segment


def target_of(segments: list[str]) -> Target | None:
    """The resource that the segments name, or None when they have another shape."""
    if len(segments) >= 3 and segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    elif len(segments) >= 4 and segments[0] == "apis":
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    name = rest[1] if len(rest) > 1 else ""
    if rest[0] == "namespaces" and not group:
        namespace = name
    return Target(group, version, rest[0], namespace, name, rest[2] if len(rest) > 2 else "")


_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


def verb_of(method: str, target: Target, *, watching: bool) -> str:
    """The API verb of a request, empty when the method does not fit the shape."""
    if target.name:
        verb = _OBJECT_VERBS.get(method, "")
        return "" if verb == "create" and not target.subresource else verb
    verb = _COLLECTION_VERBS.get(method, "")
    return "watch" if verb == "list" and watching else verb
