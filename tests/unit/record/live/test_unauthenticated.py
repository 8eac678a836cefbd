"""Whoever proved nothing is seen on the record, and cannot fill it."""

from __future__ import annotations

import pytest

from fastness.keys.errors import RecordError
from fastness.record.entry import RecordEntry
from fastness.record.live import unauthenticated
from fastness.record.live.unauthenticated import UnauthenticatedRefusals
from tests.virtual import VirtualClock


class Lines:
    """A record in memory that can be told to fail."""

    def __init__(self) -> None:
        self.entries: list[RecordEntry] = []
        self.broken = False

    async def append(self, entry: RecordEntry) -> None:
        """Keep it."""
        if self.broken:
            raise RecordError("the record cannot be written", "")
        self.entries.append(entry)

    def details(self) -> list[tuple[str, dict[str, str]]]:
        """Who and what, in order."""
        return [(entry.who, dict(entry.detail)) for entry in self.entries]


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_the_first_refusal_is_written_at_once(lines: Lines, clock: VirtualClock) -> None:
    await UnauthenticatedRefusals(lines, clock).refused("not-enrolled", "sha256:aa")
    assert lines.entries == [RecordEntry("refusal", "sha256:aa", detail={"code": "not-enrolled"})]


async def test_the_same_again_is_written_a_minute_later_with_how_often_it_came(
    lines: Lines, clock: VirtualClock
) -> None:
    door = UnauthenticatedRefusals(lines, clock)
    for _ in range(500):
        await door.refused("signature-invalid", "sha256:aa", enrolled=True)
    assert len(lines.entries) == 1
    await clock.advance(unauthenticated.QUIET_SECONDS)
    await door.refused("signature-invalid", "sha256:aa", enrolled=True)
    assert lines.details()[1] == ("sha256:aa", {"code": "signature-invalid", "repeated": "499"})
    await clock.advance(unauthenticated.QUIET_SECONDS)
    await door.refused("signature-invalid", "sha256:aa", enrolled=True)
    assert lines.details()[2] == ("sha256:aa", {"code": "signature-invalid"})


async def test_another_reason_of_the_same_key_is_news(lines: Lines, clock: VirtualClock) -> None:
    door = UnauthenticatedRefusals(lines, clock)
    await door.refused("signature-invalid", "sha256:aa", enrolled=True)
    await door.refused("nonce-differs", "sha256:aa", enrolled=True)
    assert [detail["code"] for _, detail in lines.details()] == ["signature-invalid", "nonce-differs"]


async def test_a_flood_of_new_keys_is_bounded_and_told(lines: Lines, clock: VirtualClock) -> None:
    door = UnauthenticatedRefusals(lines, clock)
    for number in range(10_000):
        await door.refused("not-enrolled", f"sha256:{number}")
    assert len(lines.entries) == unauthenticated.BUDGET
    await clock.advance(6)
    for number in range(10):
        await door.refused("not-enrolled", f"sha256:new-{number}")
    assert len(lines.entries) == unauthenticated.BUDGET + 1
    assert lines.details()[-1] == ("sha256:new-0", {"code": "not-enrolled", "unwritten": str(10_000 - 60)})


async def test_an_hour_of_flood_costs_ten_entries_a_minute(lines: Lines, clock: VirtualClock) -> None:
    door = UnauthenticatedRefusals(lines, clock)
    for number in range(3600):
        await door.refused("not-enrolled", f"sha256:{number}")
        await clock.advance(1)
    assert len(lines.entries) <= unauthenticated.BUDGET + 600


async def test_keys_that_nobody_enrolled_leave_the_part_of_machines_alone(lines: Lines, clock: VirtualClock) -> None:
    door = UnauthenticatedRefusals(lines, clock)
    for number in range(1000):
        await door.refused("not-enrolled", f"sha256:{number}")
    await door.refused("revoked", "sha256:aa", enrolled=True)
    assert lines.details()[-1] == ("sha256:aa", {"code": "revoked"})


async def test_what_is_remembered_is_bounded_and_what_is_forgotten_is_counted(
    lines: Lines, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "REMEMBERED", 2)
    door = UnauthenticatedRefusals(lines, clock)
    for who in ("a", "a", "a", "b", "c"):
        await door.refused("not-enrolled", who)
    await door.refused("not-enrolled", "d")
    assert lines.details()[-1] == ("d", {"code": "not-enrolled", "unwritten": "2"})


async def test_a_record_that_cannot_be_written_is_said_so(lines: Lines, clock: VirtualClock) -> None:
    lines.broken = True
    with pytest.raises(RecordError):
        await UnauthenticatedRefusals(lines, clock).refused("not-enrolled", "sha256:aa")
