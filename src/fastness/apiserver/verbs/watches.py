"""Watches: changes after a revision, in order, without gaps.

A stream reads the store's shared log through a cursor; it holds no queue of its own, so a slow or dead client costs a number,
not memory. When the log has moved past the cursor the stream ends with `Expired` and the client lists again.

* With a selector an object can enter or leave the selection: that is ADDED or DELETED for this watcher, decided from the
  record before and after.
* Without a version, or with version 0, the present state comes first as ADDED events. With `sendInitialEvents` it comes with a
  bookmark that carries the annotation `k8s.io/initial-events-end` at its end.
* A bookmark tells an idle client how far the log has gone, so that its next watch starts near the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastness.apiserver import storable
from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import options_invalid, too_new
from fastness.apiserver.store import Compacted, Cursor, LogEntry, Record, Store
from fastness.apiserver.verbs import reads
from fastness.apiserver.verbs.selection import Selection
from fastness.formats import json
from fastness.kube.errors import Cause, Expired
from fastness.kube.port import EventType

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
BATCH = 500


class Item(NamedTuple):
    """One event, encoded: type, body, revision."""

    type: EventType
    body: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The parameters of a watch."""

    version: str = ""
    bookmarks: bool = False
    initial: bool | None = None
    match: str = ""


class Stream:
    """The events of one watcher; `next_items` gives them in batches, `close` lets go."""

    def __init__(
        self,
        served: Served,
        selection: Selection,
        cursor: Cursor,
        initial: Sequence[Item],
        outward: Callable[[bytes], bytes],
    ) -> None:
        self._served = served
        self._selection = selection
        self._cursor = cursor
        self._initial = list(initial)
        self._outward = outward

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._cursor.closed

    @property
    def revision(self) -> int:
        """Everything up to here has been given."""
        return self._cursor.progress

    async def next_items(self, wait: float | None) -> list[Item]:
        """The following events; empty after `wait` seconds without one, or when closed. Raises Expired."""
        if self._initial:
            batch, self._initial = self._initial, []
            return batch
        now = asyncio.get_running_loop().time
        end = now() + wait if wait is not None else None
        try:
            while True:
                entries = await self._cursor.next_batch(BATCH, wait)
                items = [item for entry in entries if (item := self._item(entry)) is not None]
                if items or not entries:
                    return items
                if end is not None:  # others than this watcher's objects changed: that does not make its wait longer
                    wait = max(0.0, end - now())
        except Compacted as error:
            raise Expired(f"too old resource version: the log begins after {self._cursor.progress}") from error

    def bookmark(self, *, synced: bool = False) -> Item:
        """A bookmark at the present end of this stream."""
        return bookmark(self._served, self.revision, synced=synced)

    def close(self) -> None:
        """Let the cursor go."""
        self._cursor.close()

    def _item(self, entry: LogEntry) -> Item | None:
        """What an entry of the log means for this watcher."""
        selection, record, before = self._selection, entry.record, entry.previous
        kind = entry.type
        if not selection.everything:
            # Both sides of the change: an object that leaves a selection by a label must be told as gone, or the watcher keeps it
            # for ever.
            was = before is not None and selection.matches(before.body)
            now = entry.type is not EventType.DELETED and selection.matches(record.body)
            if not was and not now:
                return None
            kind = EventType.MODIFIED if was and now else EventType.ADDED if now else EventType.DELETED
            # The watcher may not see what the object became (it selected another label), so it is told the last state that it
            # could.
            if kind is EventType.DELETED and entry.type is not EventType.DELETED and before is not None:
                return Item(kind, self._outward(_with_version(before, record.revision)), record.revision)
        return Item(kind, self._outward(record.body), record.revision)


def _with_version(record: Record, revision: int) -> bytes:
    """The last state that the watcher knew, at the revision at which it left the selection."""
    obj = storable.read(record.body)
    obj["metadata"] = {**obj["metadata"], "resourceVersion": str(revision)}
    return json.encode(obj)


def bookmark(served: Served, revision: int, *, synced: bool = False) -> Item:
    """An event that carries only a version."""
    meta: dict[str, object] = {"resourceVersion": str(revision)}
    if synced:
        meta["annotations"] = {INITIAL_EVENTS_END: "true"}
    body = {"kind": served.kind.kind, "apiVersion": served.kind.api_version, "metadata": meta}
    return Item(EventType.BOOKMARK, json.encode(body), revision)


def open_stream(
    store: Store, served: Served, selection: Selection, query: WatchQuery, outward: Callable[[bytes], bytes]
) -> Stream:
    """Start a watch; raises Expired, Invalid, Timeout, BadRequest."""
    _check(query)
    version = reads.parse_version(query.version)
    if version > store.revision:
        raise too_new(version, store.revision)
    group, plural = served.storage_key
    initial: list[Item] = []
    start = version
    if query.initial or (version == 0 and query.initial is None):
        listed = reads.list_objects(store, served, selection, reads.ListQuery())
        initial = [Item(EventType.ADDED, outward(body), 0) for body in listed.bodies]
        # The list and the cursor meet at one revision, so nothing falls between them and nothing comes twice.
        start = listed.revision
        if query.initial and query.bookmarks:
            initial.append(bookmark(served, start, synced=True))
    elif version == 0:
        start = store.revision
    try:
        cursor = store.subscribe(group, plural, selection.namespace, since=start, name=selection.name or "")
    except Compacted as error:
        raise Expired(f"too old resource version: {version}") from error
    return Stream(served, selection, cursor, initial, outward)


def _check(query: WatchQuery) -> None:
    field, problem = "resourceVersionMatch", ""
    if query.initial is not None:
        if query.match != "NotOlderThan":
            problem = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif query.match:
        problem = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    if not problem:
        return
    error = options_invalid("ListOptions", field, "FieldValueForbidden", problem)
    if query.initial is not None and query.match:
        text = f'Unsupported value: "{query.match[:40]}": supported values: "NotOlderThan"'
        error.causes = (*error.causes, Cause(field, "FieldValueNotSupported", text))
    raise error
