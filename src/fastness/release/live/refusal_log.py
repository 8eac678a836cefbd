"""Refusals of machines that proved themselves are told as events; final ones go on the record too, as those of nodes do.

Somebody who is known asked for what is not theirs, or waits for something that an operator can give. Strangers are not written
down, they could fill the record. Neither can a machine that asks again and again: the same refusal of the same machine is written
once a minute, and how many are remembered is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Basis, ProvenCaller
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

FINAL: Final = 403
QUIET_SECONDS: Final = 60.0
REMEMBERED: Final = 4096


class RefusalLog:
    """Writes refusals to a record, each once in a while."""

    def __init__(self, record: Record, clock: Clock, events: EventSink | None = None) -> None:
        self._record = record
        self._events = events or NullSink()
        self._clock = clock
        self._written = BoundedCache[tuple[str, str, str], float](REMEMBERED)

    async def refusal(self, caller: ProvenCaller, resource: str, refusal: Refusal) -> None:
        """Tell a refusal; put it on the record if it is final, of somebody who is known, and news; raises RecordError."""
        if caller.basis is Basis.VERDICT:
            self._events.refused(caller.subject, refusal)
            await self.final(caller.subject.thumbprint, resource, refusal, caller.verdict)

    async def final(
        self, who: str, resource: str, refusal: Refusal, verdict: str = "", detail: Mapping[str, str] | None = None
    ) -> None:
        """Put a refusal of somebody who is known on the record, if it is final and news; raises RecordError."""
        key, now = (who, resource, refusal.code), self._clock.monotonic()
        last = self._written.get(key)
        # What will pass (503) and what a new proof mends (401) is no decision about somebody, and comes by the thousand.
        if refusal.status != FINAL or (last is not None and now - last < QUIET_SECONDS):
            return
        # Before the write: while one waits for the API, a thousand more of the same must not queue behind it.
        self._written.put(key, now)
        facts = {"code": refusal.code, **(detail or {})}
        await self._record.append(RecordEntry("refusal", who, resource, verdict, detail=facts))
