"""What is written down, and where to: a line of the record, and the port of whoever keeps it.

Doors and controllers know this port. `record.live.record` stands behind it in a cluster; tests and the simulator may put
others there. What an entry rests on is told to people by `because`: a verdict, the code of a refusal that left none, or a person
and a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One line of the record: what happened, to whom, and why it was allowed. Never a secret."""

    what: str
    who: str
    resource: str = ""
    verdict: str = ""
    grant: str = ""
    evidence: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)


class Record(Protocol):
    """The append-only record, as doors and controllers write to it."""

    async def append(self, entry: RecordEntry) -> None:
        """Write an entry; returns when it is durable, so that what it describes may leave; raises RecordError."""


def because(entry: Mapping[str, Any]) -> str:
    """The ground of an entry in a few words; empty when it has none beside what it says anyway."""
    detail = entry.get("detail") or {}
    ground = entry.get("verdict") or detail.get("code") or detail.get("basis")
    return str(ground) if ground else by_person(entry)


def by_person(entry: Mapping[str, Any]) -> str:
    """Who is behind an entry and why, where somebody is."""
    detail = entry.get("detail") or {}
    return ": ".join(str(part) for part in (detail.get("person"), detail.get("reason")) if part)
