"""The state of an informer, without I/O: objects by key, indexes, and what a change or a new list means.

- Objects are held as they came and shared with every reader: nobody changes them in place.
- An index maps values, which a pure function finds in an object, to keys. It follows every change.
- `replace` compares a whole new state with what is held. Deletions that no watch told of come out of it, and objects that are
  still the same (uid and version) are not announced again.

Every change is answered with (old, new), where None stands for absent. An object on which an indexer fails is not taken, and
what was held under its name stays: `IndexerFailed` names it, and `replace` goes on with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.runtime.errors import FastnessError

Indexer = Callable[[JsonObject], Iterable[str]]
Objects = list[JsonObject]  # a class with a method `list` cannot say it inside


class Key(NamedTuple):
    """Namespace and name; the namespace of a cluster-wide object is empty."""

    namespace: str
    name: str


class CacheChange(NamedTuple):
    """An object before and after; None: it is not there."""

    old: JsonObject | None
    new: JsonObject | None


Changes = list[CacheChange]
Failures = dict[Key, Exception]
IndexValues = dict[str, set[str]]


class InformerError(FastnessError):
    """A caller asked for an index that nobody declared, or two declare it differently; never what a cluster answers."""

    code = "informer"


class IndexerFailed(Exception):
    """An indexer raised on an object; the error is the cause."""


def key_of(obj: JsonObject) -> Key:
    """The key of an object."""
    meta = obj["metadata"]
    return Key(meta.get("namespace", ""), meta["name"])


class Cache:
    """Objects by key, with indexes."""

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects: dict[Key, JsonObject] = {}
        self._indexers: dict[str, Indexer] = {}
        self._indexes: dict[str, dict[str, set[Key]]] = {}
        self._values: dict[Key, IndexValues] = {}
        for name, indexer in (indexers or {}).items():
            self.add_index(name, indexer)

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> JsonObject | None:
        """One object, or None."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> Objects:
        """All objects, or those of a namespace, in order of namespace and name."""
        keys = (key for key in self._objects if not namespace or key.namespace == namespace)
        # Sorted, because some decisions take the first that fits: an order that depended on arrival would differ between
        # replicas.
        return [self._objects[key] for key in sorted(keys)]

    def by_index(self, name: str, value: str) -> Objects:
        """The objects for which an index has this value, in order; raises InformerError for an unknown index."""
        index = self._indexes.get(name)
        if index is None:
            raise InformerError(f"there is no index {name!r}", f"Declare it; there are: {sorted(self._indexes)}.")
        return [self._objects[key] for key in sorted(index.get(value, ()))]

    def add_index(self, name: str, indexer: Indexer) -> Failures:
        """Keep an index from now on; the same one twice is fine, another of that name raises InformerError.

        What is held already and cannot be indexed is not in it, and named in the answer.
        """
        present = self._indexers.setdefault(name, indexer)
        if present is not indexer:
            raise InformerError(f"two indexes are called {name!r}", "Share the function, or choose another name.")
        failures: Failures = {}
        if name not in self._indexes:
            self._indexes[name] = {}
            for key, obj in self._objects.items():
                try:
                    self._enter(key, {name: _values(indexer, obj)})
                except IndexerFailed as error:
                    failures[key] = error
        return failures

    def put(self, obj: JsonObject) -> CacheChange:
        """An object was added or changed; raises IndexerFailed, and nothing has changed then."""
        key = key_of(obj)
        # All indexers before the first change: one that raises leaves the cache as it was.
        values = {name: _values(indexer, obj) for name, indexer in self._indexers.items()}
        old = self._objects.get(key)
        self._forget(key)
        self._objects[key] = obj
        self._enter(key, values)
        return CacheChange(old, obj)

    def remove(self, key: Key) -> CacheChange | None:
        """An object is gone; None if it was not known."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        self._forget(key)
        return CacheChange(old, None)

    def replace(self, state: Mapping[Key, JsonObject], spared: Collection[Key] = ()) -> tuple[Changes, Failures]:
        """The whole state is now this; what differs, deletions first, and what could not be taken.

        `spared` are there and cannot be read: what is held of them stays.
        """
        # Deletions first: an object that was made anew under its name is told as gone and come, not as changed.
        lost = [key for key in self._objects if key not in state and key not in spared]
        changes = [change for key in lost if (change := self.remove(key)) is not None]
        failures: Failures = {}
        for key, obj in state.items():
            if not _same(self._objects.get(key), obj):
                try:
                    changes.append(self.put(obj))
                except IndexerFailed as error:
                    failures[key] = error
        return changes, failures

    def _enter(self, key: Key, values: IndexValues) -> None:
        for name, entries in values.items():
            for value in entries:
                self._indexes[name].setdefault(value, set()).add(key)
        if values:
            self._values.setdefault(key, {}).update(values)

    def _forget(self, key: Key) -> None:
        for name, entries in self._values.pop(key, {}).items():
            index = self._indexes[name]
            for value in entries:
                keys = index.get(value, set())
                keys.discard(key)
                if not keys:
                    index.pop(value, None)


def _values(indexer: Indexer, obj: JsonObject) -> set[str]:
    """What an index has for an object; raises IndexerFailed."""
    try:
        return set(indexer(obj))
    except Exception as error:  # the supervisor of indexers: whoever writes an object chooses what they meet
        raise IndexerFailed(f"an index cannot be made of it: {error!r}") from error


def _same(held: JsonObject | None, obj: JsonObject) -> bool:
    if held is None:
        return False
    before, after = held["metadata"], obj["metadata"]
    # Versions are compared for equality alone: their order means nothing to a client (API concepts, "resource versions").
    return bool(before.get("uid") == after.get("uid") and before["resourceVersion"] == after["resourceVersion"])
