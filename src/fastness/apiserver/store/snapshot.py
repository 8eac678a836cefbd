"""The present state in memory, in order.

One flat dictionary answers a get. Beside it each collection keeps, per namespace, its names and records in two parallel sorted
lists: a list of everything is then a copy of slices, a page is a bisection, and a write moves pointers inside one namespace
only (about 10 µs among 100,000 names).

`undo` entries take a page back to an older revision without copying the collection: read as many more records as were touched
since, put the old ones in place, cut.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from fastness.apiserver.store.records import Key, Record

Position = tuple[str, str]


class _Namespace:
    """Names and their records, sorted, in parallel."""

    __slots__ = ("names", "records")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.records: list[Record] = []

    def put(self, record: Record) -> bool:
        """Insert or replace; whether it was new."""
        name = record.key.name
        at = bisect_left(self.names, name)
        if at < len(self.names) and self.names[at] == name:
            self.records[at] = record
            return False
        self.names.insert(at, name)
        self.records.insert(at, record)
        return True

    def remove(self, name: str) -> None:
        """Take one away that is there."""
        at = bisect_left(self.names, name)
        del self.names[at], self.records[at]


class Collection:
    """The records of one resource in order of namespace and name."""

    __slots__ = ("_namespaces", "_order", "total")

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._order: list[str] = []
        self.total = 0

    def put(self, record: Record) -> None:
        """Insert or replace a record."""
        namespace = record.key.namespace
        bucket = self._namespaces.get(namespace)
        if bucket is None:
            bucket = self._namespaces[namespace] = _Namespace()
            insort(self._order, namespace)
        self.total += bucket.put(record)

    def remove(self, key: Key) -> None:
        """Take a record away that is there."""
        bucket = self._namespaces[key.namespace]
        bucket.remove(key.name)
        self.total -= 1
        if not bucket.names:
            del self._namespaces[key.namespace]
            del self._order[bisect_left(self._order, key.namespace)]

    def count(self, namespace: str) -> int:
        """How many records, in a namespace or (empty) in all."""
        if not namespace:
            return self.total
        bucket = self._namespaces.get(namespace)
        return len(bucket.names) if bucket else 0

    def page(self, namespace: str, after: Position | None, limit: int) -> tuple[list[Record], int]:
        """Up to `limit` records (0: all) after a position, and how many follow them."""
        matches: list[Record] = []
        left = 0
        for bucket, start in self._parts(namespace, after):
            size = len(bucket.records) - start
            want = size if not limit else min(size, limit - len(matches))
            if want:
                matches += bucket.records[start : start + want]
            left += size - want
        return matches, left

    def _parts(self, namespace: str, after: Position | None) -> Iterator[tuple[_Namespace, int]]:
        """The namespaces to read in order, each with the index to start at."""
        if namespace:
            order = [namespace] if namespace in self._namespaces else []
        elif after is None:
            order = self._order
        else:
            order = self._order[bisect_left(self._order, after[0]) :]
        for name in order:
            bucket = self._namespaces[name]
            if after is None or name > after[0]:
                yield bucket, 0
            elif name == after[0]:
                yield bucket, bisect_right(bucket.names, after[1])


class Present:
    """All committed records."""

    __slots__ = ("_collections", "records")

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self._collections: dict[tuple[str, str], Collection] = {}

    def load(self, records: Iterable[Record]) -> None:
        """Fill an empty state; sorted first, so that every insertion is an append."""
        for record in sorted(records, key=lambda record: record.key):
            self.put(record)

    def put(self, record: Record) -> None:
        """Insert or replace a record."""
        key = record.key
        self.records[key] = record
        collection = self._collections.get(key[:2])
        if collection is None:
            collection = self._collections[key[:2]] = Collection()
        collection.put(record)

    def remove(self, key: Key) -> None:
        """Take a record away that is there."""
        del self.records[key]
        collection = self._collections[key[:2]]
        collection.remove(key)
        if not collection.total:
            del self._collections[key[:2]]

    def count(self, group: str, plural: str, namespace: str) -> int:
        """How many records a collection has."""
        collection = self._collections.get((group, plural))
        return collection.count(namespace) if collection else 0

    def collections(self, namespace: str) -> list[tuple[str, str]]:
        """Group and plural of the collections that have records (in a namespace), in order."""
        return sorted(name for name, collection in self._collections.items() if collection.count(namespace))

    def page(
        self, group: str, plural: str, namespace: str, after: Position | None, limit: int
    ) -> tuple[list[Record], int]:
        """Part of the present collection, and how many records follow."""
        collection = self._collections.get((group, plural))
        return collection.page(namespace, after, limit) if collection else ([], 0)

    def page_before(
        self,
        group: str,
        plural: str,
        namespace: str,
        after: Position | None,
        limit: int,
        undo: Mapping[Key, Record | None],
    ) -> tuple[list[Record], int]:
        """The page as it was before the keys in `undo` changed from the records that it gives for them."""
        touched = {key: old for key, old in undo.items() if after is None or (key.namespace, key.name) > after}
        records, left = self.page(group, plural, namespace, after, limit and limit + len(touched))
        untouched = [record for record in records if record.key not in touched]
        total = left + len(records) - sum(1 for key in touched if key in self.records)
        old = [record for record in touched.values() if record is not None]
        total += len(old)
        merged = sorted(untouched + old, key=lambda record: record.key)
        page = list(islice(merged, limit)) if limit else merged
        return page, total - len(page)
