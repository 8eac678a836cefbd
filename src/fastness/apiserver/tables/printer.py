"""A printer: the columns of a kind and the function that fills them for one object.

Cells are exactly what goes into a row: text, numbers, booleans, or None where there is nothing to show (kubectl prints
`<none>`). Printers are made once per served kind and used for every row, so they hold compiled getters and no state. A printer
with a `reader` can make rows from stored bytes without decoding the whole object (`reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastness.apiserver.tables.reader import Row, RowReader
from fastness.kinds.kind import JsonObject

Cells = Callable[[Mapping[str, Any], datetime], list[Any]]
RowCells = Callable[[Row, datetime], list[Any]]


@dataclass(frozen=True, slots=True)
class Header:
    """One column definition; columns of a priority above zero show in wide output only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def to_json(self) -> JsonObject:
        """The header as a TableColumnDefinition."""
        return {
            "name": self.name, "type": self.type, "format": self.format, "description": self.description,
            "priority": self.priority,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Printer:
    """Columns and cells of one kind."""

    headers: tuple[Header, ...]
    cells: Cells
    reader: RowReader | None = None
    row_cells: RowCells | None = None

    def definitions(self) -> list[JsonObject]:
        """The column definitions of a table."""
        return [header.to_json() for header in self.headers]


NAME = Header("Name", format="name", description="Name of the object, unique among its kind in its namespace.")
