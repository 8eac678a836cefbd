"""Which native kind prints how.

Columns are those that a real server of the pinned release reported (`kinds/kubernetes`); the cells are functions of the
modules beside this one. A kind without a function prints its name and when it was created, as a real server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.native import access, core, network, pods, storage, workloads
from fastness.apiserver.tables.native.reading import Cells, name_of, part
from fastness.apiserver.tables.printer import NAME, Header, Printer
from fastness.kinds.kind import Kind
from fastness.kinds.kubernetes import definitions

CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    **access.CELLS, **core.CELLS, **network.CELLS, **pods.CELLS, **storage.CELLS, **workloads.CELLS,
}  # fmt: skip


def native_printer(kind: Kind) -> Printer:
    """The printer of a native kind."""
    cells = CELLS.get((kind.group, kind.kind))
    if cells is None:
        return CREATED
    return Printer(tuple(_header(column) for column in definitions.columns(kind.group, kind.plural)), cells)


def _header(column: definitions.NativeColumn) -> Header:
    text = NAME.description if column.format == "name" else DESCRIPTIONS.get(column.name, "")
    return Header(column.name, column.type, column.format, column.priority, text)


def _created(obj: Mapping[str, Any], _now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "metadata").get("creationTimestamp")]


DESCRIPTIONS: Final = {"Age": "Time since the object was created.", "Created At": "When the object was created."}
CREATED: Final = Printer((NAME, Header("Created At", "date", description=DESCRIPTIONS["Created At"])), _created)
