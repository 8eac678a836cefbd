"""Watches over HTTP: one JSON event per line, until the client leaves or the time is over.

The stream waits on the store's log, so a hundred idle watchers cost nothing. A bookmark goes out once a minute to those who want
them. When the log has moved past a slow client it gets an ERROR event with the 410 that tells it to list again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastness.apiserver.accept import Media
from fastness.apiserver.catalog import Served
from fastness.apiserver.tables import ListMeta, TableRequest, partial_object, render_table
from fastness.apiserver.verbs.watches import Item, Stream
from fastness.formats import json
from fastness.kube.errors import ApiError
from fastness.kube.port import EventType
from fastness.runtime.clock import Clock

BOOKMARK_SECONDS = 60.0
# kube-apiserver's --min-request-timeout: half an hour, up to twice as long by chance.
MIN_SECONDS = 1800.0


@dataclass(slots=True)
class Writer:
    """Turns events into lines in the form that the client asked for."""

    served: Served
    media: Media
    table: TableRequest | None
    clock: Clock
    first: bool = True

    def line(self, item: Item) -> bytes:
        """One event, encoded."""
        if not self.media.as_kind:
            return b'{"type":"%b","object":%b}\n' % (item.type.value.encode(), item.body)
        obj = json.decode(item.body)
        if self.table is not None:
            meta = ListMeta(obj["metadata"].get("resourceVersion", ""))
            content = render_table(self.served.printer, [obj], self.table, meta, self.clock.now(), headers=self.first)
            if item.type is EventType.BOOKMARK:
                # Nothing to print, but its version has to travel: it is in the object of the only row.
                content["rows"] = [{"cells": [], "object": obj}]
            self.first = False
        else:
            content = partial_object(obj, f"{self.media.group}/{self.media.version}")
        return b'{"type":"%b","object":%b}\n' % (item.type.value.encode(), json.encode(content))


async def lines(
    stream: Stream, writer: Writer, *, bookmarks: bool, seconds: float, clock: Clock
) -> AsyncIterator[bytes]:
    """The body of a watch; ends after `seconds`, or when the stream does. Whoever opened the stream closes it."""
    end = clock.monotonic() + seconds
    try:
        while not stream.closed:
            left = end - clock.monotonic()
            if left <= 0:
                break
            items = await stream.next_items(min(left, BOOKMARK_SECONDS))
            if items:
                yield b"".join(map(writer.line, items))
            elif bookmarks and not stream.closed:
                yield writer.line(stream.bookmark())
    except ApiError as error:
        # The status line went out long ago; client-go reads the code of a watch that fails from an ERROR event.
        yield b'{"type":"ERROR","object":%b}\n' % json.encode(error.status())
