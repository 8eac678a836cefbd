"""What may be stored, and how it is read again: nothing goes in that would not come out.

The server adds to what a client sent: field ownership repeats every name and nests four levels deeper, defaults and versions come
on top. So the bounds of a request (`formats/json`) say nothing about the object that results from it, and a store that takes what
its own readers refuse is ended by one ConfigMap: every informer, every restart meets it again. Hence three bounds, each with room
below the next:

* a request: 3 MiB and 100 levels, as sent (400 and 413, by the door);
* a stored object: 3 MiB and 100 levels, encoded, with everything that we added (413 and 422, by `verbs.convert`);
* a readable object: 8 MiB and 160 levels (`kube/readable.py`).

An object that is on its way out may use the room up to `READABLE`: its deletion adds a few fields and must never be refused for
its size. What is beyond `READABLE` all the same (a store of an older version, an edited one) is found by `unreadable` when the
store is opened, and set aside there: no reader ever meets it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kube.readable import READABLE

MAX_BYTES: Final = 3 * 1024 * 1024
MAX_DEPTH: Final = 100


def read(body: bytes) -> JsonObject:
    """A stored object, decoded; raises JsonError for what `unreadable` would have set aside."""
    obj: JsonObject = json.decode_encoded(body, READABLE)
    return obj


class _Owner(msgspec.Struct, gc=False):
    uid: str


class _Meta(msgspec.Struct, rename="camel", gc=False):
    """What every reader relies on."""

    name: str
    resource_version: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] = []  # msgspec copies the default
    finalizers: list[str] = []
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_head = msgspec.json.Decoder(_Head).decode


def name_of(body: bytes) -> _Meta:
    """The metadata of a stored object, without decoding the rest of it."""
    return _decode_head(body).metadata


def unreadable(body: bytes) -> str | None:
    """Why a stored body cannot be used by anybody, or None; for the store, which asks once for every record."""
    try:
        read(body)
        # Readers decode metadata into typed structs: a body that is good JSON with `labels: 5` would stop each of them as
        # surely.
        _decode_head(body)
    except (JsonError, msgspec.DecodeError) as error:
        return str(error)
    return None
