"""What the agent takes from its host: measured before it is used, waited for when it is late, refused when it says more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.user_data import GRACE_SECONDS, Given, ask_of_host
from fastness.agent.host.errors import BadUserData, UserDataFailure
from fastness.agent.host.user_data import UserDataSource
from fastness.formats import json
from fastness.protocol.user_data import VERSION
from fastness.protocol.user_data_event import described
from fastness.sim.tee import SimVendor
from fastness.sim.tee.attester import SimAttester
from tests.virtual import SeededEntropy, VirtualClock

GOOD = {"version": VERSION, "pool": "worker", "ticket": "fjt_secret", "server": "https://a.example"}


class Measuring(SimAttester):
    """A machine that tells what it measured."""

    def __init__(self) -> None:
        super().__init__(SimVendor(SeededEntropy(3)).chip("tpm").boot())
        self.events: list[bytes] = []

    async def measure(self, event: bytes) -> None:
        self.events.append(event)
        await super().measure(event)


class Hurried(VirtualClock):
    """A clock that is always as late as somebody waits for."""

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


@dataclass
class Scripted:
    """A place that answers what the test says, once each; the last one stays."""

    answers: list[bytes | Exception | None]
    name: str = "scripted"
    questions: int = field(default=0)

    async def read(self) -> bytes | None:
        self.questions += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def patience(clock: Hurried, seconds: float = 3600.0) -> RetryBudget:
    return RetryBudget(clock, SeededEntropy(1), seconds)


async def test_three_words_are_measured_and_asked() -> None:
    machine = Measuring()
    ask = await ask_of_host([Given(json.encode(GOOD))], machine, "a config", patience(Hurried()))
    assert (ask.pool, ask.server, ask.accept, ask.ticket.reveal()) == (
        "worker", "https://a.example", "a config", "fjt_secret",
    )  # fmt: skip
    assert [described(event) for event in machine.events] == [described(machine.events[0])]
    assert described(machine.events[0]).startswith("pool worker, server https://a.example, ticket sha256:")
    assert "secret" not in repr(ask)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (json.encode({**GOOD, "storage": {}}), "refused at /storage: files"),
        (b"#cloud-config\n", "user-data is refused: not valid JSON"),
    ],
)
async def test_user_data_that_says_more_is_final_and_nothing_of_it_is_measured(data: bytes, says: str) -> None:
    machine = Measuring()
    with pytest.raises(BootRefused, match=says) as refused:
        await ask_of_host([Given(data), Given(json.encode(GOOD))], machine, "", patience(Hurried()))
    assert refused.value.reason == "user-data-refused"
    assert "secret" not in f"{refused.value.message}{refused.value.hint}"
    assert machine.events == []


async def test_a_place_that_cannot_be_read_yet_is_asked_again_and_the_console_says_so_once() -> None:
    late = Scripted([UserDataFailure("no route"), UserDataFailure("no route"), json.encode(GOOD)])
    lines: list[str] = []
    ask = await ask_of_host([Scripted([None]), late], Measuring(), "", patience(Hurried()), lines.append)
    assert (ask.pool, late.questions) == ("worker", 3)
    assert lines == ["waiting for user-data: no route"]


@pytest.mark.parametrize(
    ("places", "code"),
    [
        ([Scripted([None]), Scripted([None])], "user-data-missing"),
        ([Scripted([BadUserData("too large")])], "user-data-refused"),
        ([], "user-data-missing"),
    ],
)
async def test_what_waiting_does_not_change_is_final(places: list[UserDataSource], code: str) -> None:
    clock = Hurried()
    with pytest.raises(BootRefused) as refused:
        await ask_of_host(places, Measuring(), "", patience(clock))
    assert refused.value.reason == code
    assert clock.monotonic() <= GRACE_SECONDS + 1


async def test_a_place_that_never_answers_ends_with_the_patience() -> None:
    with pytest.raises(BootRefused, match="no route"):
        await ask_of_host([Scripted([UserDataFailure("no route")])], Measuring(), "", patience(Hurried(), seconds=500))
