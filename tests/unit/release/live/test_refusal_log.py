"""Final refusals of known machines are written once a minute; strangers and passing refusals are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Basis, ProvenCaller, Subject
from fastness.record.entry import RecordEntry
from fastness.release.live.refusal_log import QUIET_SECONDS, REMEMBERED, RefusalLog
from tests.virtual import VirtualClock

NO = Refusal(403, "wrong-pool", "another pool")


@dataclass
class Book:
    """A record in memory."""

    entries: list[RecordEntry] = field(default_factory=list)

    async def append(self, entry: RecordEntry) -> None:
        """Keep."""
        self.entries.append(entry)


def standing(clock: VirtualClock, who: str = "sha256:a", basis: Basis = Basis.VERDICT) -> ProvenCaller:
    return ProvenCaller(
        Subject("uid", "machine", who, "worker"), "verdict", {}, clock.now() + timedelta(hours=1), basis
    )


async def test_the_same_refusal_is_written_once_a_minute_and_another_at_once() -> None:
    clock, book = VirtualClock(), Book()
    noted = RefusalLog(book, clock)
    for _ in range(5):
        await noted.refusal(standing(clock), "pool/master/config", NO)
    assert [entry.detail["code"] for entry in book.entries] == ["wrong-pool"]
    await noted.refusal(standing(clock), "pool/infra/config", NO)
    await noted.refusal(standing(clock, "sha256:b"), "pool/master/config", NO)
    assert len(book.entries) == 3
    await clock.advance(QUIET_SECONDS)
    await noted.refusal(standing(clock), "pool/master/config", NO)
    assert len(book.entries) == 4


async def test_what_will_pass_and_who_proved_nothing_is_not_written() -> None:
    clock, book = VirtualClock(), Book()
    noted = RefusalLog(book, clock)
    await noted.refusal(standing(clock), "r", Refusal(503, "not-rendered", ""))
    await noted.refusal(standing(clock), "r", Refusal(401, "verdict-expired", ""))
    await noted.refusal(standing(clock, basis=Basis.AUDIT), "r", NO)
    assert book.entries == []


async def test_what_is_remembered_is_bounded() -> None:
    clock, book = VirtualClock(), Book()
    noted = RefusalLog(book, clock)
    for number in range(REMEMBERED + 10):
        await noted.refusal(standing(clock), f"r/{number}", NO)
    assert len(noted._written) == REMEMBERED
