"""Acts of people on the record, written where their writes pass: the embedded API, or the webhook in front of another.

The record and the API that it guards are one cluster, so an act that cannot be recorded cannot happen: the write is refused with
503 and can be tried again.
"""

from __future__ import annotations

from fastness.attestation.admission.acts import Act
from fastness.keys.errors import RecordError
from fastness.kube.errors import Unavailable
from fastness.record.entry import Entry, Record


class RecordedActs:
    """Writes acts to a record."""

    def __init__(self, record: Record) -> None:
        self._record = record

    async def append(self, act: Act) -> None:
        """Write an act down; raises Unavailable when it is not on the record and so must not happen."""
        try:
            await self._record.append(Entry(act.what, act.who, act.resource, detail=act.detail))
        except RecordError as error:
            raise Unavailable(f"{act.what} by {act.who} could not be recorded: {error}", retry_after=1) from error
