"""The `Cluster` port: all that controllers and doors know of an API server.

Six verbs with resource versions, the same on the embedded API and on any Kubernetes:

* Reads give raw objects. A caller may keep what it got, never change it in place: objects are shared.
* Writes are creates, patches of the fields that the caller owns, and deletes. There is no replace: a field that we do not know
  is never lost.
* `watch` starts at a version (from a list) or, with `initial=True`, at the present state followed by one `Synced` bookmark. It
  ends when the server closes it; `Expired` means: list again. `informers` does that dance for everyone.
* Every refusal is an `ApiError` of `errors.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from fastness.kinds.kind import JsonObject, Resource


class EventType(StrEnum):
    """What a watch event says."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event; a bookmark carries only a version (`synced` marks the end of the initial state).

    `unreadable` says why an object cannot be read: it is then nothing but its name and version.
    """

    type: EventType
    object: JsonObject
    synced: bool = False
    unreadable: str | None = None

    @property
    def resource_version(self) -> str:
        """The version to watch on from after this event."""
        return str(self.object["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, consistent at one version; `next` is the token of the following page.

    `unreadable` are the objects that are there and cannot be read, each by name and version, with the reason.
    """

    items: list[JsonObject]
    resource_version: str
    next: str = ""
    remaining: int | None = None
    unreadable: Sequence[tuple[JsonObject, str]] = ()


class PatchType(StrEnum):
    """The patch formats, by their media type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(StrEnum):
    """What happens to dependents when an owner is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a list or a watch looks: a namespace (empty: all) and selectors in kubectl's notation."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Who writes, and whether it is for real."""

    manager: str = "fastness"
    dry_run: bool = False
    force: bool = False
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Conditions and consequences of a delete."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = Propagation.BACKGROUND
    grace_seconds: int | None = None
    dry_run: bool = False


WRITE = WriteOptions()
DELETE = DeleteOptions()
EVERYWHERE = Scope()


class Cluster(Protocol):
    """An API server, embedded or real."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; raises NotFound."""

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects in order of namespace and name; all of them, or a page; raises Expired for an old token."""

    def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Changes after version `since`, or the present state and then changes; raises Expired."""

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object in the namespace that it names; raises AlreadyExists, Invalid, Forbidden."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        kind: PatchType,
        namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Change fields; a `resourceVersion` in the patch makes it conditional; raises Conflict, NotFound, Invalid."""

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Ask for deletion; the answer is the object (finalizers hold it) or a Status; raises NotFound, Conflict."""

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """POST to a subresource that is not part of the object: `eviction`, `token`, `binding`."""
