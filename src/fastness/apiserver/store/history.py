"""The log that watchers share.

Every change is appended once to the channel of its resource and once to the channel of its resource and namespace; a watcher
is a `Cursor`: a position in one channel. Nothing is copied or queued per watcher, so a slow or dead one holds no memory: when
the log is trimmed past its position it learns so with `Compacted` and must list again. A watcher that is merely idle stands
at the end of its channel and is never behind, however busy other resources and namespaces are.

* The log is bounded by entries, bytes and age (`StoreSettings`); trimming starts at the oldest entry.
* `bytes` counts what the log alone keeps alive: replaced bodies, deleted ones, and a flat charge per entry.
* Everything here runs on the event-loop thread. A publish wakes the cursors that wait, once per batch. One that follows a single
  name is woken for that name alone: a thousand agents that each watch their own Node cost no more than one that watches all.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from operator import attrgetter
from typing import Final

from fastness.apiserver.store.errors import Compacted, FutureRevision
from fastness.apiserver.store.records import Key, LogEntry, Record, StoreSettings
from fastness.kube.port import EventType

ENTRY_COST: Final = 400  # measured: entry, record, key and their places in the lists, without bodies
_SLACK: Final = 64
_revision = attrgetter("revision")

ChannelName = tuple[str, str, str]


class Channel:
    """The entries of one resource, or of one resource in one namespace; positions count from its first entry ever."""

    __slots__ = ("_entries", "_removed", "cursors", "end", "first", "name", "named", "waiting")

    def __init__(self, name: ChannelName) -> None:
        self.name = name
        self.first = 0
        self.end = 0
        self.cursors = 0
        self.waiting: dict[Cursor, None] = {}  # in the order in which they came: who waits longest is woken first
        self.named: dict[str, dict[Cursor, None]] = {}
        self._entries: list[LogEntry] = []
        self._removed = 0

    def append(self, entry: LogEntry) -> None:
        """Add the newest entry and wake those who wait for it."""
        self._entries.append(entry)
        self.end += 1
        if self.waiting:
            waiting, self.waiting = self.waiting, {}
            for cursor in waiting:
                cursor.wake()
        if self.named:
            # Its position jumps over everything that was for others meanwhile, so being idle never makes it too slow for the
            # log.
            for cursor in self.named.pop(entry.record.key.name, ()):
                cursor.arrive(self.end - 1)

    def drop_oldest(self) -> None:
        """Forget the oldest entry; the list is moved only once in a while, so a drop costs constant time."""
        self.first += 1
        dead = self.first - self._removed
        if dead >= _SLACK + (len(self._entries) >> 3) or self.first == self.end:
            del self._entries[:dead]
            self._removed = self.first

    def position_after(self, revision: int) -> int:
        """Where the entries that are newer than a revision begin."""
        dead = self.first - self._removed
        return self._removed + bisect_right(self._entries, revision, lo=dead, key=_revision)

    def read(self, position: int, limit: int) -> list[LogEntry]:
        """Up to `limit` entries (0: all) from a position that is not older than `first`."""
        start = position - self._removed
        return self._entries[start : start + limit] if limit else self._entries[start:]

    def wake(self) -> None:
        """Let every waiting cursor look again."""
        waiting = [*self.waiting, *(cursor for some in self.named.values() for cursor in some)]
        self.waiting, self.named = {}, {}
        for cursor in waiting:
            cursor.wake()

    def wait_for(self, cursor: Cursor, name: str) -> None:
        """Wake a cursor with the next entry, or with the next one of a name."""
        (self.named.setdefault(name, {}) if name else self.waiting)[cursor] = None

    def wait_no_more(self, cursor: Cursor, name: str) -> None:
        """Forget that a cursor waits. One that still waits for a name has missed nothing: it stands at the end."""
        if not name:
            self.waiting.pop(cursor, None)
        elif cursor in self.named.get(name, ()):
            cursor.arrive(self.end)
            del self.named[name][cursor]
            if not self.named[name]:
                del self.named[name]


class Cursor:
    """One watcher's place in a channel; with a name it is given the entries of that name alone. One task uses it; `close` it
    when done."""

    __slots__ = ("_channel", "_closed", "_history", "_name", "_position", "_revision", "_wakeup")

    def __init__(self, history: History, channel: Channel, since: int, name: str = "") -> None:
        self._history = history
        self._channel = channel
        self._name = name
        self._position = channel.position_after(since)
        self._revision = since
        self._wakeup: asyncio.Future[bool] | None = None
        self._closed = False
        channel.cursors += 1

    @property
    def progress(self) -> int:
        """The revision up to which everything was taken: what a bookmark may say after the last batch was sent."""
        return self._history.revision if self._position >= self._channel.end else self._revision

    @property
    def closed(self) -> bool:
        """Whether the cursor, or the store under it, was closed."""
        return self._closed or self._history.closed

    def take(self, limit: int = 500) -> list[LogEntry]:
        """The next entries that are already there, perhaps none; raises Compacted when the log moved past the cursor."""
        channel = self._channel
        position = self._position
        if position == channel.end:
            return []
        if position < channel.first:
            # Entries were dropped that this watcher has not had. Going on would be a silent gap; 410 makes the client list
            # again.
            raise Compacted(self._revision, self._history.compacted)
        batch = channel.read(position, 0 if self._name else limit)
        if self._name:
            named = [(at, entry) for at, entry in enumerate(batch, 1) if entry.record.key.name == self._name][:limit]
            # Past all that is for others, unless more of ours is there than was asked for.
            self._position = position + (named[-1][0] if len(named) == limit else len(batch))
            self._revision = batch[self._position - position - 1].record.revision
            return [entry for _, entry in named]
        self._position = position + len(batch)
        self._revision = batch[-1].record.revision
        return batch

    async def next_batch(self, limit: int = 500, wait: float | None = None) -> list[LogEntry]:
        """Wait for entries, at most so many seconds; an empty list says that none came or that the cursor or the store was
        closed. Raises Compacted.

        Cancelling the wait loses nothing: the position moves only when entries are returned. The time-out is a timer and not
        `asyncio.timeout`, which was an eighth of what an event costs a watcher.
        """
        loop = asyncio.get_running_loop()
        alarm: asyncio.TimerHandle | None = None
        try:
            while not (self._closed or self._history.closed):
                if self._position != self._channel.end and (batch := self.take(limit)):
                    return batch
                self._wakeup = wakeup = loop.create_future()
                if alarm is None and wait is not None:
                    alarm = loop.call_later(wait, self._give_up)
                # Registered after the look above and without an await between them: an entry cannot slip in unnoticed.
                self._channel.wait_for(self, self._name)
                try:
                    came = await wakeup
                finally:
                    self._channel.wait_no_more(self, self._name)
                if not came:
                    return self.take(limit)
        finally:
            if alarm is not None:
                alarm.cancel()
        return []

    def _give_up(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(False)

    def arrive(self, position: int) -> None:
        """Called by the channel: everything before that position was for others."""
        self._position = position
        self.wake()

    def wake(self) -> None:
        """Called by the channel: there may be something new."""
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(True)

    def close(self) -> None:
        """Leave the channel; a task that waits in `next_batch` gets an empty list."""
        if not self._closed:
            self._closed = True
            self.wake()
            self._history.leave(self._channel)


class History:
    """All channels, and the one order that trims them."""

    def __init__(self, settings: StoreSettings, *, revision: int, compacted: int) -> None:
        self.revision = revision
        self.compacted = compacted
        self.bytes = 0
        self.watchers = 0
        self.closed = False
        self._settings = settings
        self._order: deque[tuple[LogEntry, float, Channel, Channel | None]] = deque()
        self._channels: dict[ChannelName, Channel] = {}

    def __len__(self) -> int:
        return len(self._order)

    def publish(self, entry: LogEntry, at: float) -> None:
        """Append an entry and wake its watchers, who look when the whole batch of this turn of the loop is there."""
        group, plural, namespace, _ = entry.record.key
        wide = self._channel((group, plural, ""))
        wide.append(entry)
        narrow = None
        if namespace:
            narrow = self._channel((group, plural, namespace))
            narrow.append(entry)
        self._order.append((entry, at, wide, narrow))
        self.bytes += _cost(entry)
        self.revision = entry.revision

    def trim(self, now: float, *, keep: int | None = None) -> list[LogEntry]:
        """Drop the oldest entries until the bounds hold (or at most `keep` are left); the dropped, oldest first."""
        limits, order = self._settings, self._order
        most = limits.log_entries if keep is None else min(keep, limits.log_entries)
        horizon = now - limits.log_seconds
        dropped: list[LogEntry] = []
        while order and (len(order) > most or self.bytes > limits.log_bytes or order[0][1] < horizon):
            entry, _, wide, narrow = order.popleft()
            self.bytes -= _cost(entry)
            self.compacted = entry.revision
            dropped.append(entry)
            for channel in (wide, narrow):
                if channel is not None:
                    channel.drop_oldest()
                    self._forget_if_idle(channel)
        return dropped

    def subscribe(self, group: str, plural: str, namespace: str, since: int, name: str = "") -> Cursor:
        """A cursor on everything after a revision, or on what has one name; raises Compacted, FutureRevision."""
        self.check(since)
        channel = self._channel((group, plural, namespace))
        self.watchers += 1
        return Cursor(self, channel, since, name)

    def undo(self, group: str, plural: str, namespace: str, at: int) -> dict[Key, Record | None]:
        """The records (None: no such) that the keys changed since `at` had then; raises Compacted, FutureRevision."""
        self.check(at)
        channel = self._channels.get((group, plural, namespace))
        if channel is None:
            return {}
        entries = channel.read(channel.position_after(at), 0)
        return {entry.record.key: entry.previous for entry in reversed(entries)}

    def check(self, revision: int) -> None:
        """Whether the log reaches back to a revision; raises Compacted, FutureRevision."""
        # A client that comes from a state which a restore took back asks for a future that this history will not have.
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)

    def leave(self, channel: Channel) -> None:
        """A cursor of this channel is gone."""
        self.watchers -= 1
        channel.cursors -= 1
        self._forget_if_idle(channel)

    def close(self) -> None:
        """End every wait."""
        self.closed = True
        for channel in self._channels.values():
            channel.wake()

    def _channel(self, name: ChannelName) -> Channel:
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = Channel(name)
        return channel

    def _forget_if_idle(self, channel: Channel) -> None:
        if not channel.cursors and channel.first == channel.end:
            self._channels.pop(channel.name, None)


def _cost(entry: LogEntry) -> int:
    """The memory that this entry alone keeps alive."""
    replaced = len(entry.previous.body) if entry.previous is not None else 0
    return ENTRY_COST + replaced + (len(entry.record.body) if entry.type is EventType.DELETED else 0)
