"""Which native kind prints how."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fastness.cluster.embedded.tables.printer import NAME, Header, Printer
from fastness.model.kind import Kind

PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {}


def native_printer(kind: Kind) -> Printer:
    """The printer of a native kind."""
    return PRINTERS.get((kind.group, kind.kind), CREATED)


def _created(obj: Mapping[str, Any], _now: datetime) -> list[Any]:
    meta = obj["metadata"]
    return [meta.get("name", ""), meta.get("creationTimestamp")]


CREATED: Final = Printer((NAME, Header("Created At", "date", description="When the object was created.")), _created)
