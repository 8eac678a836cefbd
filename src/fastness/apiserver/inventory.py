"""What there is, across all kinds: for the loops that Kubernetes itself runs.

Garbage collection, namespace deletion and the removal of a CustomResourceDefinition look at every kind at once. Over the
port that would be a hundred watches; in the same process the store tells. `Inventory` keeps only what ownership needs:
which objects name which owner. Everything else is read when it is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from fastness.apiserver import storable
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.store import Key, LogEntry, Record
from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.port import EventType

PROPAGATING = frozenset({"orphan", "foregroundDeletion"})


class _Owner(msgspec.Struct, gc=False):
    uid: str


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    owner_references: list[_Owner] = []  # msgspec copies the default
    finalizers: list[str] = []
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


_decode = msgspec.json.Decoder(_Head).decode


class Inventory:
    """Ownership across all kinds, and where objects are."""

    def __init__(self, api: EmbeddedApi) -> None:
        self._api = api
        self._dependents: defaultdict[str, set[Key]] = defaultdict(set)
        self._owners: dict[Key, tuple[str, ...]] = {}
        self._waiting: dict[str, Key] = {}
        self._listeners: list[Callable[[Key], None]] = []
        for group, plural in api.store.collections():
            for record in api.store.range(group, plural).records:
                self._learn(record, _decode(record.body).metadata)
        api.store.observe(self._observe)

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Have a function told which keys ownership may have something to do with, now and from now on."""
        self._listeners.append(listener)
        for key in list(self._owners):
            listener(key)
        for group, plural in self._api.store.collections():
            for record in self._api.store.range(group, plural).records:
                if b"deletionTimestamp" in record.body:
                    listener(record.key)

    def _observe(self, entries: Iterable[LogEntry]) -> None:
        for entry in entries:
            record = entry.record
            meta = _decode(record.body).metadata
            if entry.type is EventType.DELETED:
                self._forget(record.key)
                self._waiting.pop(meta.uid, None)
                self._tell(self._dependents.get(meta.uid, ()))
                self._tell(self._owner_keys(meta))
                continue
            self._learn(record, meta)
            if meta.owner_references or (meta.deletion_timestamp and PROPAGATING.intersection(meta.finalizers)):
                self._tell((record.key,))

    def _tell(self, keys: Iterable[Key]) -> None:
        for key in tuple(keys):
            for listener in self._listeners:
                listener(key)

    def _owner_keys(self, meta: _Meta) -> list[Key]:
        """The owners that wait in the foreground for this object to go."""
        return [self._waiting[owner.uid] for owner in meta.owner_references if owner.uid in self._waiting]

    def _learn(self, record: Record, meta: _Meta) -> None:
        owners = tuple(owner.uid for owner in meta.owner_references)
        if owners != self._owners.get(record.key, ()):
            self._forget(record.key)
            if owners:
                self._owners[record.key] = owners
                for uid in owners:
                    self._dependents[uid].add(record.key)
        if meta.deletion_timestamp and PROPAGATING.intersection(meta.finalizers):
            self._waiting[meta.uid] = record.key

    def _forget(self, key: Key) -> None:
        for uid in self._owners.pop(key, ()):
            dependents = self._dependents[uid]
            dependents.discard(key)
            if not dependents:
                del self._dependents[uid]

    def dependents(self, uid: str) -> list[Key]:
        """The objects that name this owner."""
        return sorted(self._dependents.get(uid, ()))

    def read(self, key: Key) -> JsonObject | None:
        """One object as it is now."""
        record = self._api.store.get(key)
        return storable.read(record.body) if record is not None else None

    def owner_key(self, reference: JsonObject, namespace: str) -> Key | None:
        """Where the owner that a reference names would be; None when its kind is not served."""
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        served = self._api.catalog.by_kind(group, version, reference.get("kind", ""))
        if served is None:
            return None
        return Key(*served.storage_key, namespace if served.kind.namespaced else "", reference.get("name", ""))

    def resource(self, group: str, plural: str) -> Resource | None:
        """How to address objects of a stored collection over the port."""
        versions = self._api.catalog.versions_of(group, plural)
        return versions[0].resource if versions else None

    def collections(self, namespace: str = "") -> list[tuple[str, str]]:
        """Group and plural of everything that has objects, everywhere or in one namespace."""
        return self._api.store.collections(namespace)
