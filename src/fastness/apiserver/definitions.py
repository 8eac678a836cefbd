"""CustomResourceDefinition objects and what follows from them.

Built-in kinds stand in the store as definitions like any other, so that lists and watches show them; they are written at start
(`seed.py`) and refused to everybody else. A user's definition is served as soon as it is stored, and its status says whether its
names were accepted. A definition that is being deleted is served until its last object is gone.
"""

from __future__ import annotations

from datetime import datetime

from fastness.apiserver import storable
from fastness.apiserver.catalog import Catalog, crd_status
from fastness.apiserver.store import Key, Make, Record, Store, WriteStep
from fastness.formats import json
from fastness.kinds.kind import JsonObject

CRD_KEY = ("apiextensions.k8s.io", "customresourcedefinitions")


def records(store: Store) -> list[Record]:
    """All definitions, built-in ones included."""
    return list(store.range(*CRD_KEY).records)


def is_builtin(catalog: Catalog, name: str) -> bool:
    """Whether a definition of that name describes one of our own kinds."""
    plural, _, group = name.partition(".")
    return catalog.is_builtin(group, plural)


def _users(catalog: Catalog, store: Store) -> dict[str, JsonObject]:
    return {
        record.key.name: storable.read(record.body)
        for record in records(store)
        if not is_builtin(catalog, record.key.name)
    }


def current(catalog: Catalog, store: Store) -> Catalog:
    """The catalog that the stored definitions make; the same one when nothing about them changed."""
    stored_definitions = _users(catalog, store)
    for name in catalog.crds.keys() - stored_definitions.keys():
        catalog = catalog.without_crd(name)
    for name, manifest in stored_definitions.items():
        served_manifest = catalog.crds.get(name)
        if served_manifest is None or served_manifest["spec"] != manifest["spec"]:
            catalog = catalog.with_crd(manifest)
    return catalog


async def publish_status(store: Store, catalog: Catalog, now: datetime) -> None:
    """Write the status of users' definitions where it differs from what they say."""
    for name in _users(catalog, store):
        key = Key(*CRD_KEY, "", name)
        head = store.head(key)
        if head is None:
            continue
        latest = storable.read(head.body)
        status = crd_status(latest, catalog, now)
        if status != latest.get("status"):
            await store.write(_with_status(key, head, latest, status))


def _with_status(key: Key, head: Record, latest: JsonObject, status: JsonObject) -> Make:
    def make(revision: int) -> WriteStep:
        meta = {**latest["metadata"], "resourceVersion": str(revision)}
        return WriteStep(key, json.encode({**latest, "metadata": meta, "status": status}), head.revision)

    return make
