"""Query and path parameters of the operations, as data.

One description each, shared by all operations; which action takes which is the table `OF_ACTION`.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import JsonObject


def _query(name: str, kind: str, description: str) -> JsonObject:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _path(name: str, description: str) -> JsonObject:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


NAME: Final = _path("name", "Name of the object.")
NAMESPACE: Final = _path("namespace", "Namespace of the object.")
PRETTY: Final = _query("pretty", "string", "Indent the answer when set to 'true'.")

QUERY: Final[dict[str, JsonObject]] = {
    parameter["name"]: parameter
    for parameter in (
        _query("allowWatchBookmarks", "boolean", "Send bookmarks, which carry a version and no object."),
        _query("continue", "string", "Token of the next page, from the previous one."),
        _query("dryRun", "string", "'All': do everything except storing the result."),
        _query("fieldManager", "string", "Who owns the fields that this request sets; required for apply."),
        _query("fieldSelector", "string", "Restrict to objects whose fields match."),
        _query("fieldValidation", "string", "What happens to unknown and repeated fields: Ignore, Warn or Strict."),
        _query("force", "boolean", "Take fields over from other managers; only for apply."),
        _query("gracePeriodSeconds", "integer", "Seconds until the object is removed."),
        _query("labelSelector", "string", "Restrict to objects whose labels match."),
        _query("limit", "integer", "Most objects in one page."),
        _query("orphanDependents", "boolean", "Deprecated form of propagationPolicy."),
        _query("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
        _query("resourceVersion", "string", "Version that the answer is based on."),
        _query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."),
        _query("sendInitialEvents", "boolean", "Begin a watch with the present state and a bookmark after it."),
        _query("timeoutSeconds", "integer", "Seconds until a list or a watch ends."),
        _query("watch", "boolean", "Stream changes instead of listing."),
    )
}

_LIST: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_MANY: Final = tuple(sorted({*_DELETE, *_LIST} - {"allowWatchBookmarks", "watch"}))

OF_ACTION: Final[dict[str, tuple[str, ...]]] = {
    "list": _LIST,
    "post": _WRITE,
    "put": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": _DELETE,
    "deletecollection": _DELETE_MANY,
    "get": (),
    "connect": (),
}


def of_action(action: str) -> list[JsonObject]:
    """The query parameters of one action."""
    return [QUERY[name] for name in OF_ACTION[action]]
