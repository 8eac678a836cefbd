"""Objects in, table out.

One pass over the objects: each is decoded once if it comes as bytes, its cells are made by the printer of its kind, and its
row carries what `includeObject` asks. The table is a plain JSON value; the caller encodes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from fastness.cluster.embedded.tables.request import Include, TableRequest
from fastness.model.kind import JsonObject

if TYPE_CHECKING:
    from fastness.cluster.embedded.catalog.served import Served

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class ListMeta:
    """What a list says of itself; of one object only the version."""

    resource_version: str = ""
    token: str = ""
    remaining: int | None = None

    def to_json(self) -> JsonObject:
        """The list metadata, without what is empty."""
        meta: JsonObject = {"resourceVersion": self.resource_version} if self.resource_version else {}
        if self.token:
            meta["continue"] = self.token
        if self.remaining is not None:
            meta["remainingItemCount"] = self.remaining
        return meta


def render_table(
    served: Served,
    objects: Iterable[Mapping[str, Any] | bytes],
    request: TableRequest,
    meta: ListMeta,
    now: datetime,
    *,
    headers: bool = True,
) -> JsonObject:
    """The table of some objects; without `headers` the column definitions are empty (later events of a watch)."""
    printer = served.printer
    cells, include, api_version = printer.cells, request.include, request.api_version
    rows: list[JsonObject] = []
    for entry in objects:
        obj = _decode(entry) if isinstance(entry, bytes) else entry
        row: JsonObject = {"cells": cells(obj, now)}
        if include is Include.METADATA:
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}
        elif include is Include.OBJECT:
            row["object"] = obj
        else:
            row["object"] = None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": meta.to_json(),
        "columnDefinitions": printer.definitions() if headers else [],
        "rows": rows,
    }
