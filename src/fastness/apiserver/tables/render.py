"""Objects in, table out.

One pass over the objects: each is decoded once if it comes as bytes, its cells are made by the printer of its kind, and its
row carries what `includeObject` asks. `render_table` returns a plain JSON value that the caller encodes; `encode_table` goes from
stored bytes to the bytes of the answer and, for custom kinds, decodes only what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import orjson

from fastness.apiserver.tables.printer import Printer
from fastness.apiserver.tables.reader import Misfit
from fastness.apiserver.tables.request import Include, TableRequest
from fastness.kinds.kind import JsonObject

_encode = msgspec.json.Encoder().encode


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
    printer: Printer,
    objects: Iterable[Mapping[str, Any] | bytes],
    request: TableRequest,
    meta: ListMeta,
    now: datetime,
    *,
    headers: bool = True,
) -> JsonObject:
    """The table of some objects; without `headers` the column definitions are empty (later events of a watch)."""
    rows = [_row(printer, entry, request, now) for entry in objects]
    return _table(printer, rows, request, meta, headers)


def encode_table(
    printer: Printer,
    bodies: Iterable[bytes],
    request: TableRequest,
    meta: ListMeta,
    now: datetime,
    *,
    headers: bool = True,
) -> bytes:
    """The encoded table of stored objects, equal to encoding what `render_table` makes of them."""
    reader, cells = printer.reader, printer.row_cells
    if reader is None or cells is None or request.include is Include.OBJECT:
        return _encode(render_table(printer, bodies, request, meta, now, headers=headers))
    # Rows go straight to bytes: thousands of small dictionaries alive at once would wake the garbage collector.
    before, after = _around_metadata(request)
    rows: list[bytes] = []
    for body in bodies:
        try:
            row = reader.read(body)
        except Misfit:
            rows.append(_encode(_row(printer, body, request, now)))
        else:
            metadata = bytes(row.metadata) if after else b""
            rows.append(b'{"cells":%b,"object":%b%b%b}' % (_encode(cells(row, now)), before, metadata, after))
    head = _encode(_table(printer, [], request, meta, headers))
    return b"%b[%b]}" % (head.removesuffix(b"[]}"), b",".join(rows))


def _around_metadata(request: TableRequest) -> tuple[bytes, bytes]:
    """What stands before and after the metadata in a row; nothing after it when the row carries no object."""
    if request.include is Include.NONE:
        return b"null", b""
    head = _encode({"kind": "PartialObjectMetadata", "apiVersion": request.api_version})
    return head.removesuffix(b"}") + b',"metadata":', b"}"


def _row(printer: Printer, entry: Mapping[str, Any] | bytes, request: TableRequest, now: datetime) -> JsonObject:
    obj = orjson.loads(entry) if isinstance(entry, bytes) else entry
    carried = obj if request.include is Include.OBJECT else _carried(obj["metadata"], request)
    return {"cells": printer.cells(obj, now), "object": carried}


def _carried(metadata: Any, request: TableRequest) -> JsonObject | None:
    if request.include is Include.NONE:
        return None
    return {"kind": "PartialObjectMetadata", "apiVersion": request.api_version, "metadata": metadata}


def _table(
    printer: Printer, rows: list[JsonObject], request: TableRequest, meta: ListMeta, headers: bool
) -> JsonObject:
    return {
        "kind": "Table",
        "apiVersion": request.api_version,
        "metadata": meta.to_json(),
        "columnDefinitions": printer.definitions() if headers else None,
        "rows": rows,
    }
