"""The one way out of gate and broker.

    in touch? → grant → record → in touch? machine at the API → grant again, if a rule changed → bytes

* A door that cannot know releases nothing: while a cache that the grant rests on is out of touch (`http.freshness`), and while
  the API does not answer for the caller's Machine, the answer is 503. Both pass.
* Writing the record takes time, and trust may end in it. So what is decided last comes after it: the Machine is read at the API
  itself, once, and a distrust, a policy or a setting that the caches heard of since makes the whole decision be made again. A
  rendered config must be written on that Machine still: one that was taken back in between does not leave. Deciding again may
  wait for policies of users; what changes meanwhile has it decided once more, and where that does not end nothing leaves.
* An API that was stopped neither answers nor refuses. Whoever waits for it, to find what is released or to write it down, waits
  ten seconds at most; then the answer is 503 too.
* A release that is on the record and did not happen is followed by an entry `withheld` that names the same grant and says why.
  If that cannot be written either, the record tells of one release too many: never of one too few.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal, demand_home
from fastness.keys.errors import CannotKnow, RecordError
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.machineconfig.rollout.assigned import is_assigned
from fastness.observe import logs
from fastness.record.entry import Record, RecordEntry
from fastness.release.authorise import ProvenCaller
from fastness.release.live.assignments import not_assigned
from fastness.release.live.tokens import Revocations
from fastness.runtime.clock import Clock

OUT_OF_TOUCH: Final = "out-of-touch"
WITHHELD: Final = "withheld"
FIND_SECONDS: Final = 10.0
RECORD_SECONDS: Final = 10.0
MOST_DECISIONS: Final = 4
_log = logs.logger("releases")


class Releases:
    """Lets things out of one door."""

    def __init__(self, record: Record, revocations: Revocations, touch: Touch, clock: Clock) -> None:
        self._record = record
        self._revocations = revocations
        self._touch = touch
        self._clock = clock

    @property
    def changes(self) -> int:
        """How often a rule has changed; taken before a grant is made, and given to `settle` with it."""
        return self._touch.changes

    def demand(self) -> None:
        """Go on only where the door can know; raises Refusal."""
        demand(self._touch)

    async def settle(
        self,
        caller: ProvenCaller,
        grant: Grant,
        entry: RecordEntry,
        seen: int,
        again: Callable[[], Awaitable[Grant]],
        rendered: str = "",
    ) -> None:
        """Write a release down, and return if it may happen still; raises Refusal, RecordError.

        `rendered` is the rendered config that a running machine asked for by name.
        """
        await written(self._record, entry)
        try:
            await self._confirm(caller, rendered)
            await self._decided(grant, seen, again)
        except Refusal as refusal:
            await written(self._record, withheld_entry(entry, refusal))
            raise

    async def _decided(self, grant: Grant, seen: int, again: Callable[[], Awaitable[Grant]]) -> None:
        """Return when a decision rests on the rules as they are now; raises Refusal."""
        for _ in range(MOST_DECISIONS):
            if self._touch.changes == seen and grant.live(self._clock.now()):
                return
            seen = self._touch.changes
            grant = await again()
        raise Refusal(503, OUT_OF_TOUCH, "the rules change while they are looked at: come again")

    async def _confirm(self, caller: ProvenCaller, rendered: str) -> None:
        """The caller is trusted and sent to the config still, as the API says; raises Refusal."""

        def look(machine: Machine) -> None:
            if rendered and not is_assigned(machine, rendered):
                raise not_assigned(caller.verdict)

        if caller.basis is Basis.VERDICT:
            try:
                ended = await self._revocations.ended(caller.claims, look)
            except CannotKnow as error:
                _log.warning("release.unknown", code=error.code, error=error, hint=error.hint)
                raise Refusal(503, OUT_OF_TOUCH, "the API does not answer for this machine now") from error
            if ended:
                raise Refusal(403, "revoked", "this machine is no longer trusted", caller.verdict)
        self.demand()


async def written(record: Record, entry: RecordEntry) -> None:
    """Write an entry down, and wait for that no longer than a caller does; raises RecordError."""
    try:
        async with asyncio.timeout(RECORD_SECONDS):
            await record.append(entry)
    except TimeoutError as error:
        raise RecordError("the record could not be written in time", "Look at the API server.") from error


def withheld_entry(entry: RecordEntry, refusal: Refusal) -> RecordEntry:
    """What follows the entry of a release that did not happen."""
    return RecordEntry(WITHHELD, entry.who, entry.resource, entry.verdict, entry.grant, detail={"code": refusal.code})


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Find what is to be released, while the caller still waits; raises Refusal."""
    try:
        async with asyncio.timeout(FIND_SECONDS):
            yield
    except TimeoutError as error:
        raise Refusal(503, OUT_OF_TOUCH, "the API does not answer in time") from error


def demand(touch: Touch) -> None:
    """Go on only where the door can know; raises Refusal."""
    demand_home(touch)
    if not touch.kept:
        raise Refusal(503, OUT_OF_TOUCH, "this door has lost touch with the API: it releases nothing until it is back")
