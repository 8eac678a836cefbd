"""Records that nobody can read: found when a store is opened, and kept out of everybody's way.

The rows stay on disk as they are, with their place in the chain. In memory such a record is no part of any list or watch, so that
no reader has to expect it; its name stays taken, a get says why, and `fastness state` lists and removes it. Where the log holds
one as well, the log begins anew: watchers list again instead of meeting it.

What can be read is for the caller to say (`Judge`): bodies are opaque here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from fastness.apiserver.store.journal import Replayed
from fastness.apiserver.store.records import Key, LogEntry, Record

Judge = Callable[[bytes], str | None]
"""Why nobody can read a body, or None."""


NOTHING = b'{"metadata":{}}'


class Aside(msgspec.Struct, frozen=True, gc=False):
    """A record that cannot be read, why, and how large it is; its body is replaced by `NOTHING`.

    The record stands for the row in the chain: whoever overwrites it (the seed of built-in objects) has it as the state before,
    and watchers compare with that.
    """

    record: Record
    reason: str
    size: int


def everything_is_readable(_body: bytes) -> None:
    """The judge of a store whose bodies nobody has to decode."""


def set_aside(state: Replayed, judge: Judge) -> tuple[dict[Key, Aside], bool]:
    """Take what cannot be read out of the live records; the second value: whether the log holds such a body, too."""
    aside = {
        key: _aside(record, reason)
        for key, record in state.records.items()
        if (reason := judge(record.body)) is not None
    }
    live = {record.revision for record in state.records.values()}
    for key in aside:
        del state.records[key]
    bad = {unreadable.record.revision for unreadable in aside.values()}
    return aside, any(
        record.revision in bad or (record.revision not in live and judge(record.body) is not None)
        for record in _logged(entry for entry, _ in state.log)
    )


def _aside(record: Record, reason: str) -> Aside:
    return Aside(Record(record.key, record.revision, record.created, NOTHING), reason, len(record.body))


def _logged(entries: Iterable[LogEntry]) -> Iterable[Record]:
    for entry in entries:
        yield entry.record
        if entry.previous is not None:
            yield entry.previous
