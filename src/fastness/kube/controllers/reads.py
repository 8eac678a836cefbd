"""Which fields of an object a loop reads, and which of them a change has touched.

    Source(NODE.resource, reads=fields("metadata.labels", annotations=("example.dev/a",)))

A Node is written about ten times in an update and by its heartbeats for ever, and a dozen loops look at Nodes, each at a few
fields. A source that declares them is told of an object that comes, is about to go or goes, or has another uid, and otherwise
only of changes of these fields. One that declares nothing is told of everything; `NOTHING` is for one that asks only whether the
object is there.

A field is named by its path: a member of the object (`spec`), a member of one of its parts (`spec.taints`), or one label or
annotation (`metadata.annotations.example.dev/a`). Whatever a reconcile may read of the object belongs into it, also what it reads
in order not to write: a change that was missed is looked at only at the next resync.

A loop that reads most of an object may say the opposite: `unread`, the fields that alone give it nothing to do. A field that
nobody thought of then wakes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

Object = Mapping[str, Any]
# Every write changes them, and no decision may rest on them.
_OF_EVERY_WRITE: Final = frozenset({"resourceVersion", "managedFields"})
_BY_NAME: Final = ("labels", "annotations")
# Another object of the same name, and one that waits for its finalizers, concern everybody.
_OF_EVERYBODY: Final = frozenset({"metadata.uid", "metadata.deletionTimestamp"})
NOTHING: Final[frozenset[str]] = frozenset()


def fields(*paths: str, annotations: Collection[str] = ()) -> frozenset[str]:
    """Fields by their paths, and annotations by their names."""
    return frozenset((*paths, *(f"metadata.annotations.{name}" for name in annotations)))


def touched(old: Object, new: Object) -> frozenset[str]:
    """The paths of all fields in which two states of an object differ, parts as well as their members."""
    return frozenset(_touched(old, new))


def _touched(old: Object, new: Object) -> Iterator[str]:
    for part in _different(old, new):
        members = [*_different(_mapping(old.get(part)), _mapping(new.get(part)))]
        if part == "metadata":
            members = [member for member in members if member not in _OF_EVERY_WRITE]
            if not members:
                continue
        yield part
        for member in members:
            path = f"{part}.{member}"
            yield path
            if part == "metadata" and member in _BY_NAME:
                names = _different(_mapping(old[part].get(member)), _mapping(new[part].get(member)))
                yield from (f"{path}.{name}" for name in names)


def _different(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in {**old, **new} if old.get(name) != new.get(name))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _ends(paths: frozenset[str]) -> frozenset[str]:
    """The paths without those of parts that are named because a member of theirs is."""
    return paths.difference({parent for path in paths for parent in _parents(path)})


def _parents(path: str) -> Iterator[str]:
    part, _, rest = path.partition(".")
    if rest:
        yield part
    member, _, name = rest.partition(".")
    if part == "metadata" and member in _BY_NAME and name:
        yield f"{part}.{member}"


class Changes:
    """Says whether a change concerns a reader; what it touched is found out once for all readers of one event."""

    def __init__(self) -> None:
        self._last: tuple[Object, Object, frozenset[str]] | None = None

    def concern(
        self, reads: frozenset[str] | None, old: Object | None, new: Object | None, unread: frozenset[str] = NOTHING
    ) -> bool:
        """Whether one who reads these fields, or all but the unread ones, has to look."""
        if (reads is None and not unread) or old is None or new is None:
            return True
        last = self._last
        if last is None or last[0] is not old or last[1] is not new:
            last = self._last = (old, new, touched(old, new))
        if reads is None:
            return not _ends(last[2]) <= unread
        return not (reads.isdisjoint(last[2]) and _OF_EVERYBODY.isdisjoint(last[2]))
