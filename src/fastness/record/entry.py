"""What is written down, and where to: a line of the record, and the port of whoever keeps it.

Doors and controllers know this port. `record.live.record` stands behind it in a cluster; tests and the simulator may put
others there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the record: what happened, to whom, and why it was allowed. Never a secret."""

    what: str
    who: str
    resource: str = ""
    verdict: str = ""
    grant: str = ""
    evidence: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)


class Record(Protocol):
    """The append-only record."""

    async def append(self, entry: Entry) -> None:
        """Write an entry; returns when it is durable, so that what it describes may leave; raises RecordError."""
