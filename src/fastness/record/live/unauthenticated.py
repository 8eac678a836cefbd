"""Refusals of callers who proved nothing: on the record, and unable to fill it.

    refusals = UnauthenticatedRefusals(record, clock)
    await refusals.refused("not-enrolled", thumbprint)

Whoever asks for a challenge may send any evidence with it, under any number of keys, and may name a key that somebody else
enrolled. An operator must see that it happens; the record must not grow as fast as it is done. So of these refusals, per door:

* the first of its kind (key and code) is written at once, the same again only a minute later, with how often it came in between
  (`repeated`);
* all together have a budget: sixty at once and ten a minute for long. Keys that nobody enrolled cannot use up the part of those
  that somebody did. What goes beyond is counted, and the next entry says how many were left out (`unwritten`).

Every refusal is counted in the metrics, whatever the record keeps. Refusals of machines whose evidence is authentic do not come
here: each of those is an entry with its verdict.
"""

from __future__ import annotations

from typing import Final

from fastness.record.entry import Record, RecordEntry
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

# Whoever is refused may come again at once; the record needs the first and how many followed.
QUIET_SECONDS: Final = 60.0
REMEMBERED: Final = 4096
BUDGET: Final = 60.0
PER_SECOND: Final = 10 / 60


class _Written:
    """When a refusal was written last, and how often it came since."""

    __slots__ = ("at", "repeated")

    def __init__(self, at: float) -> None:
        self.at = at
        self.repeated = 0


class _Budget:
    """How many entries may still be written for one kind of callers, and how many were left out."""

    __slots__ = ("_at", "_left", "unwritten")

    def __init__(self, now: float) -> None:
        self._left, self._at = BUDGET, now
        self.unwritten = 0

    def spend(self, now: float) -> bool:
        """Take one; no when there is none."""
        self._left = min(BUDGET, self._left + (now - self._at) * PER_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class UnauthenticatedRefusals:
    """Writes refusals of those who proved nothing, each once in a while and all within a budget."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        now = clock.monotonic()
        # Apart: a flood under keys that nobody enrolled must not use up what is written about keys of machines.
        self._budgets = {enrolled: _Budget(now) for enrolled in (False, True)}
        self._written = {enrolled: BoundedCache[tuple[str, str], _Written](REMEMBERED) for enrolled in (False, True)}

    async def refused(self, code: str, who: str = "", *, enrolled: bool = False) -> None:
        """Note a refusal; `enrolled` says that the key it came under belongs to a machine. Raises RecordError."""
        now, budget, written = self._clock.monotonic(), self._budgets[enrolled], self._written[enrolled]
        last = written.get((who, code))
        if last is not None and now - last.at < QUIET_SECONDS:
            last.repeated += 1
            return
        if not budget.spend(now):
            budget.unwritten += 1
            return
        detail = {"code": code}
        if last is not None and last.repeated:
            detail["repeated"] = str(last.repeated)
        if budget.unwritten:
            detail["unwritten"] = str(budget.unwritten)
            budget.unwritten = 0
        self._remember((who, code), now, enrolled=enrolled)
        await self._record.append(RecordEntry("refusal", who, detail=detail))

    def _remember(self, key: tuple[str, str], now: float, *, enrolled: bool) -> None:
        for _, forgotten in self._written[enrolled].put(key, _Written(now)):
            # What is forgotten is still counted: numbers in the record must not depend on how many keys somebody makes up.
            self._budgets[enrolled].unwritten += forgotten.repeated
