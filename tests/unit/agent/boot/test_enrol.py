"""The machine's half of enrolment against a scripted door: patience, finality, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fastness.agent.boot.enrol import (
    BEGIN,
    COMPLETE,
    MAX_WAIT_SECONDS,
    Doors,
    DoorUnreachable,
    Enrolled,
    EnrolmentFailed,
    Reply,
    RetryBudget,
    enrol,
    first_message,
    once_each,
    read_enrolled,
    read_offer,
)
from fastness.crypto.secret import SecretText
from fastness.formats import json
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.virtual import SeededEntropy, VirtualClock

VENDOR = SimVendor()
TICKET = SecretText("fst_secret")
OFFER = Reply(200, json.encode({"enrolment": "abc", "challenge": "eHl6"}))
DONE = Reply(
    201,
    json.encode({"machine": "u", "name": "machine-1", "nodeName": "worker-1", "pool": "worker", "state": "Pending"}),
)


def no(status: int, code: str = "", retry: float = 0.0) -> Reply:
    return Reply(status, json.encode({"code": code, "detail": "why"}) if code else b"<html>", retry)


@dataclass
class Script:
    """A door that answers what it was told to, in order, and the last for ever."""

    begin: list[Reply | Exception]
    complete: list[Reply | Exception] = field(default_factory=lambda: [DONE])
    requests: list[tuple[str, bytes, str]] = field(default_factory=list)

    async def post(self, path: str, body: bytes, ticket: SecretText | None = None) -> Reply:
        self.requests.append((path, body, ticket.reveal() if ticket else ""))
        replies = self.begin if path == BEGIN else self.complete
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


def guest() -> SimAttester:
    return SimAttester(VENDOR.chip("snp", serial=1).boot())


async def run(
    door: Script, seconds: float = 600.0, advance: float = 2000.0, tell: Callable[[str], None] = lambda _: None
) -> tuple[Enrolled | Exception, float]:
    """What came of it, and how long it took on the virtual clock."""
    clock = VirtualClock()
    ended: list[float] = []

    async def go() -> Enrolled:
        try:
            return await enrol(door, guest(), TICKET, RetryBudget(clock, SeededEntropy(3), seconds, tell=tell))
        finally:
            ended.append(clock.monotonic())

    task = asyncio.create_task(go())
    await clock.advance(advance)
    try:
        return await task, ended[0]
    except (EnrolmentFailed, DoorUnreachable) as error:
        return error, ended[0]


async def test_the_ticket_is_shown_to_the_first_step_alone() -> None:
    door = Script([OFFER])
    outcome, took = await run(door)
    assert outcome == Enrolled("u", "machine-1", "worker-1", "worker", "Pending")
    assert isinstance(outcome, Enrolled)
    assert not outcome.approved
    assert took == 0
    assert [(path, ticket) for path, _, ticket in door.requests] == [(BEGIN, "fst_secret"), (COMPLETE, "")]


async def test_a_door_that_asks_for_patience_gets_it_with_jitter() -> None:
    door = Script(
        [no(503, "slow-down", 30), no(503, "cluster-unavailable"), OFFER], [no(503, "record-failed", 2), DONE]
    )
    outcome, took = await run(door)
    assert isinstance(outcome, Enrolled)
    assert 30 + 5 + 2 <= took <= 2 * (30 + 5 + 2)
    assert took != int(took)


async def test_whoever_looks_at_the_console_sees_what_the_machine_waits_for() -> None:
    said: list[str] = []
    door = Script([no(503, "slow-down", 30), no(503, "slow-down"), DoorUnreachable("no route"), OFFER])
    await run(door, tell=once_each(said.append))
    assert said == ["waiting to enrol: slow-down: why", "waiting to enrol: no route"]


async def test_the_longest_wait_is_bounded_whatever_the_door_says() -> None:
    outcome, took = await run(Script([no(503, "slow-down", 99_999), OFFER]), seconds=10_000)
    assert isinstance(outcome, Enrolled)
    assert took <= 2 * MAX_WAIT_SECONDS


@pytest.mark.parametrize(
    "code", ["ticket-required", "ticket-used-up", "wrong-pool", "endorsement-refused", "quarantined"]
)
async def test_a_refusal_is_final_and_says_the_code(code: str) -> None:
    door = Script([no(403, code), OFFER])
    outcome, took = await run(door)
    assert isinstance(outcome, EnrolmentFailed)
    assert (outcome.reason, took, len(door.requests)) == (code, 0, 1)
    assert "fst_secret" not in str(outcome)


@pytest.mark.parametrize("code", ["enrolment-expired", "enrolment-invalid"])
async def test_an_enrolment_that_ended_is_begun_again(code: str) -> None:
    door = Script([OFFER], [no(401, code), DONE])
    outcome, _ = await run(door)
    assert isinstance(outcome, Enrolled)
    assert [path for path, _, _ in door.requests] == [BEGIN, COMPLETE, BEGIN, COMPLETE]


@pytest.mark.parametrize(
    "reply", [no(503, "slow-down", 5), DoorUnreachable("no route"), no(502), no(401, "enrolment-expired")]
)
async def test_patience_ends(reply: Reply | Exception) -> None:
    door = Script([OFFER], [reply]) if isinstance(reply, Reply) and reply.status == 401 else Script([reply])
    outcome, took = await run(door, seconds=60)
    assert isinstance(outcome, DoorUnreachable)
    assert took <= 60
    assert len(door.requests) <= 130


async def test_an_answer_of_something_else_than_a_door_is_final() -> None:
    for reply in (Reply(200, b"<html>"), Reply(200, b"[]"), Reply(200, b"{}"), Reply(404, b""), Reply(301, b"")):
        outcome, _ = await run(Script([reply]))
        assert isinstance(outcome, EnrolmentFailed)


BAD_OFFERS: tuple[Any, ...] = (
    {"enrolment": "x"},
    {"challenge": "eA=="},
    {"enrolment": "x", "challenge": 7},
    {"enrolment": "x", "credential": "eA=="},
    {"enrolment": "x", "credential": {"credential": "eA=="}},
    {"enrolment": "x", "credential": {"credential": "!", "secret": "eA=="}},
)


@pytest.mark.parametrize("value", BAD_OFFERS, ids=str)
def test_offers_are_read_strictly(value: Any) -> None:
    with pytest.raises(EnrolmentFailed) as failed:
        read_offer(json.encode(value))
    assert failed.value.reason == "bad-answer"


def test_the_last_answer_names_the_machine_completely() -> None:
    good = json.decode(DONE.body)
    for name in good:
        with pytest.raises(EnrolmentFailed):
            read_enrolled(json.encode({**good, name: None}))


async def test_a_guest_key_that_is_not_p256_is_not_sent() -> None:
    class Odd(SimAttester):
        async def identity_public(self) -> bytes:
            return b"x" * 120

    with pytest.raises(EnrolmentFailed):
        await first_message(Odd(guest().machine))


async def test_a_tpm_without_a_certificate_says_its_endorsement_key_instead() -> None:
    class Bare(SimAttester):
        async def ek_certificates(self) -> list[bytes]:
            return []

    machine: Callable[[], Any] = lambda: VENDOR.chip("tpm", serial=1).boot()  # noqa: E731  # two machines of one chip
    bare, whole = (
        json.decode(await first_message(Bare(machine()))),
        json.decode(await first_message(SimAttester(machine()))),
    )
    assert bare["ek_certificates"] == []
    assert bare["ek_public"]
    assert "ek_public" not in whole
    assert len(whole["ek_certificates"]) == 2


def test_the_last_answer_may_say_where_to_go_next() -> None:
    good = json.decode(DONE.body)
    assert read_enrolled(json.encode(good)).doors is None
    doors = {"broker": "https://b", "gate": "https://g", "via": "Broker"}
    assert read_enrolled(json.encode({**good, "doors": doors})).doors == Doors("https://b", "https://g", "Broker")
    bad_doors: list[Any] = [[], "x", {}, {**doors, "via": "Post"}, {**doors, "broker": ""}, {**doors, "gate": None}]
    for bad in bad_doors:
        with pytest.raises(EnrolmentFailed) as failed:
            read_enrolled(json.encode({**good, "doors": bad}))
        assert failed.value.reason == "bad-answer"
