"""What Ignition is answered: one ticket, one pool, one config, once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.boot.waiting import Boot, IgnitionRequest, Reply, Stage
from fastness.crypto.secret import SecretText
from fastness.formats import json

SERVER = "https://cluster.example:8000"
ACCEPT = "application/vnd.coreos.ignition+json;version=3.3.0"


def knock(
    ticket: str = "good", *, method: str = "GET", target: str = "/config/worker", **headers: str
) -> IgnitionRequest:
    sent = {"authorization": f"Bearer {ticket}", "x-fastness-server": SERVER, "accept": ACCEPT}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return IgnitionRequest(method, target, {name: (value,) for name, value in sent.items()})


def status_and_reason(reply: Reply) -> tuple[int, str]:
    return reply.status, json.decode(reply.body)["code"]


def begun() -> Boot:
    boot = Boot()
    boot.answer(knock())
    return boot


def test_the_first_request_says_which_machine_this_becomes() -> None:
    boot = Boot()
    reply = boot.answer(knock())
    assert status_and_reason(reply) == (503, "attesting")
    assert reply.retry_after > 0
    assert boot.stage is Stage.WORKING
    assert boot.ask is not None
    assert (boot.ask.pool, boot.ask.server, boot.ask.accept) == ("worker", SERVER, ACCEPT)
    assert boot.ask.ticket == SecretText("good")
    assert "good" not in repr(boot.ask)


def test_until_there_is_a_config_ignition_is_asked_to_come_back() -> None:
    boot = begun()
    assert [boot.answer(knock()).status for _ in range(3)] == [503, 503, 503]


def test_the_config_leaves_once() -> None:
    boot = begun()
    boot.ready(b"config")
    reply = boot.answer(knock())
    assert (reply.status, reply.body, reply.delivers) == (200, b"config", True)
    assert boot.answer(knock()).status == 503
    boot.delivered(whole=True)
    assert boot.stage is Stage.ANSWERED
    assert status_and_reason(boot.answer(knock())) == (403, "answered")


def test_a_delivery_that_broke_is_repeated() -> None:
    boot = begun()
    boot.ready(b"config")
    boot.answer(knock())
    boot.delivered(whole=False)
    assert boot.answer(knock()).body == b"config"


def test_after_a_refusal_ignition_hears_the_reason_and_ends() -> None:
    boot = begun()
    boot.refused("value-differs", "PCR 11 differs")
    reply = boot.answer(knock())
    assert status_and_reason(reply) == (403, "value-differs")
    assert reply.refuses
    assert boot.over


@pytest.mark.parametrize("prepare", ["working", "ready", "refused", "answered"])
@pytest.mark.parametrize("other", [knock("bad"), knock("good2"), knock(target="/config/master"), knock("GOOD")])
def test_nobody_else_is_answered_at_any_time(prepare: str, other: IgnitionRequest) -> None:
    boot = begun()
    if prepare == "refused":
        boot.refused("no", "no")
    if prepare in ("ready", "answered"):
        boot.ready(b"config")
    if prepare == "answered":
        boot.answer(knock())
        boot.delivered(whole=True)
    before = boot.stage
    reply = boot.answer(other)
    assert status_and_reason(reply) == (403, "other-ticket")
    assert not reply.refuses
    assert boot.stage is before


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (knock(method="POST"), (405, "method-not-allowed")),
        (knock(method="HEAD"), (405, "method-not-allowed")),
        (knock(target="/"), (404, "not-found")),
        (knock(target="/config"), (404, "not-found")),
        (knock(target="/config/worker/more"), (404, "not-found")),
        (knock(target="/config/../worker"), (404, "not-found")),
        (knock(authorization=""), (401, "ticket-required")),
        (knock(authorization="Basic good"), (401, "ticket-required")),
        (knock(authorization="Bearer "), (401, "ticket-required")),
        (knock(authorization="Bearer " + "x" * 600), (401, "ticket-required")),
        (knock(x_fastness_server="http://cluster.example"), (400, "server-missing")),
        (knock(x_fastness_server=""), (400, "server-missing")),
        (knock(x_fastness_server="https://user@cluster.example"), (400, "server-missing")),
    ],
)
def test_a_request_that_starts_nothing_says_why(request_: IgnitionRequest, expected: tuple[int, str]) -> None:
    boot = Boot()
    assert status_and_reason(boot.answer(request_)) == expected
    assert boot.stage is Stage.WAITING


def test_a_header_that_came_twice_is_none() -> None:
    twice: dict[str, tuple[str, ...]] = {"authorization": ("Bearer a", "Bearer b"), "x-fastness-server": (SERVER,)}
    assert status_and_reason(Boot().answer(IgnitionRequest("GET", "/config/worker", twice))) == (401, "ticket-required")


def test_answers_stay_within_the_bound_of_the_doors() -> None:
    boot = begun()
    boot.refused("c" * 20, "d" * 5000)
    assert len(boot.answer(knock()).body) <= 300


@given(st.lists(st.sampled_from(["ask", "other", "ready", "refused", "whole", "broken"]), max_size=30))
def test_in_every_order_of_events_at_most_one_delivery_is_whole_and_strangers_get_nothing(events: list[str]) -> None:
    boot, whole, ended = Boot(), 0, False
    for event in events:
        match event:
            case "ask":
                reply: Any = boot.answer(knock())
                assert not (reply.delivers and whole)
            case "other" if boot.ask is not None:
                assert boot.answer(knock("other")).status == 403
            case "ready" | "refused" if boot.stage is Stage.WORKING and not ended:
                ended = True
                boot.ready(b"config") if event == "ready" else boot.refused("no", "no")
            case "whole" | "broken":
                whole += boot.stage is Stage.ANSWERING and event == "whole"
                boot.delivered(whole=event == "whole")
    assert whole <= 1
    assert (boot.stage is Stage.ANSWERED) == (whole == 1)


def plain(target: str = "/config", method: str = "GET", **headers: str) -> IgnitionRequest:
    """What Ignition sends for the pointer of an image."""
    sent = {"accept": ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return IgnitionRequest(method, target, {name: (value,) for name, value in sent.items()})


def test_the_pointer_of_an_image_brings_no_ticket_and_is_answered_once() -> None:
    boot = Boot(of_image=True)
    assert status_and_reason(boot.answer(plain())) == (503, "attesting")
    assert (boot.stage, boot.accept, boot.ask) == (Stage.WORKING, ACCEPT, None)
    boot.ready(b"config")
    reply = boot.answer(plain())
    assert (reply.status, reply.body, reply.delivers) == (200, b"config", True)
    boot.delivered(whole=True)
    assert status_and_reason(boot.answer(plain())) == (403, "answered")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (plain("/config/worker"), (404, "not-found")),
        (plain("/"), (404, "not-found")),
        (plain(method="POST"), (405, "method-not-allowed")),
        (plain(authorization="Bearer t"), (403, "other-pointer")),
        (plain(x_fastness_server=SERVER), (403, "other-pointer")),
        (knock(target="/config"), (403, "other-pointer")),
        (knock(), (404, "not-found")),
    ],
)
def test_a_request_that_brings_a_ticket_is_not_of_an_image_with_the_pointer(
    request_: IgnitionRequest, expected: tuple[int, str]
) -> None:
    boot = Boot(of_image=True)
    stages = []
    for _ in range(2):
        assert status_and_reason(boot.answer(request_)) == expected
        stages.append(boot.stage)
        boot.answer(plain())
        boot.ready(b"config")
    assert stages == [Stage.WAITING, Stage.READY]
