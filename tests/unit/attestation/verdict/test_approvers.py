"""Approvers count when everybody had time to see them: the first after the delay, others signed by two, the rest after a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.verdict.approvers import (
    CHANGE,
    CONTENT,
    DELAY,
    UNSIGNED,
    Appointments,
    read_appointments,
    settle,
)
from fastness.formats import json
from tests.breakglass import approver, people, signed_change

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def cluster(*names: str, delay: str = "1h", change: str = "") -> dict[str, Any]:
    notes = {CHANGE: change} if change else {}
    glass = {"approvers": [approver(name) for name in names], "delay": delay}
    return {"metadata": {"uid": "u", "name": "cluster", "annotations": notes}, "spec": {"breakGlass": glass}}


def test_the_first_count_after_the_delay_and_are_announced_before() -> None:
    proposed = cluster("ada", "grace")
    pending, notices = settle(Appointments({}), proposed, NOW)
    assert (pending.counting, [notice.what for notice in notices]) == ({}, ["approvers-pending"])
    assert "ada, grace; they are the first" in notices[0].text
    assert settle(pending, proposed, NOW + DELAY - timedelta(seconds=1)) == (pending, ())
    after, notices = settle(pending, proposed, NOW + DELAY)
    assert (after.counting, [notice.what for notice in notices]) == (
        people("ada", "grace"),
        ["approvers-in-effect"],
    )
    assert settle(after, proposed, NOW + 2 * DELAY) == (after, ())


def test_a_delay_that_the_same_change_shortens_does_not_hold_for_it() -> None:
    pending, _ = settle(Appointments({}), cluster("ada", "grace", delay="1s"), NOW)
    assert pending.pending_from == NOW + DELAY
    # Shortening first and appointing a moment later is no way around either.
    early, _ = settle(Appointments({}), cluster(delay="1s"), NOW)
    later, _ = settle(early, cluster("ada", "grace", delay="1s"), NOW + timedelta(minutes=1))
    assert later.pending_from == NOW + timedelta(minutes=1) + DELAY
    waited, _ = settle(early, cluster(delay="1s"), NOW + DELAY)
    quick, _ = settle(waited, cluster("ada", "grace", delay="1s"), NOW + DELAY)
    assert quick.pending_from == NOW + DELAY + timedelta(seconds=1)
    longer, _ = settle(Appointments({}), cluster("ada", "grace", delay="8h"), NOW)
    assert longer.pending_from == NOW + 8 * HOUR


def test_two_who_count_change_the_approvers_at_once_and_one_does_not() -> None:
    present = people("ada", "grace")
    proposed = cluster("ada", "eve")
    text = signed_change(proposed, present, people("ada", "eve"), ("ada", "grace"))
    after, notices = settle(Appointments(present), cluster("ada", "eve", change=text), NOW)
    assert (after.counting, [notice.what for notice in notices]) == (
        people("ada", "eve"),
        ["approvers-changed"],
    )
    assert "signed by ada and grace" in notices[0].text
    for by in (("ada",), ("ada", "ada"), ("eve", "ada"), ()):
        alone = signed_change(proposed, present, people("ada", "eve"), by)
        after, _ = settle(Appointments(present), cluster("ada", "eve", change=alone), NOW)
        assert (after.counting, after.pending_from) == (present, NOW + UNSIGNED), by


@pytest.mark.parametrize("other", ["another list", "another beginning", "another cluster"])
def test_signatures_are_for_one_change(other: str) -> None:
    present, proposed = people("ada", "grace"), people("ada", "eve")
    about = {"metadata": {"uid": "v"}} if other == "another cluster" else cluster()
    before = people("ada") if other == "another beginning" else present
    text = signed_change(about, before, people("grace") if other == "another list" else proposed, ("ada", "grace"))
    after, _ = settle(Appointments(present), cluster("ada", "eve", change=text), NOW)
    assert after.counting == present


def test_lost_keys_come_back_after_a_day_and_a_change_of_mind_is_told() -> None:
    pending, notices = settle(Appointments(people("ada", "grace")), cluster("eve"), NOW)
    assert (pending.pending_from, "nobody who counts now signed that" in notices[0].text) == (
        NOW + UNSIGNED,
        True,
    )
    other, _ = settle(pending, cluster("ada", "eve"), NOW + 23 * HOUR)
    assert other.pending_from == NOW + 23 * HOUR + UNSIGNED, "another list begins anew"
    back, notices = settle(pending, cluster("ada", "grace"), NOW + HOUR)
    assert (back.pending, [notice.what for notice in notices]) == (None, ["approvers-withdrawn"])
    done, notices = settle(pending, cluster("eve"), NOW + UNSIGNED)
    assert (done.counting, [notice.what for notice in notices]) == (
        people("eve"),
        ["approvers-in-effect"],
    )


names = st.lists(st.sampled_from(["ada", "grace", "eve"]), unique=True)


@given(st.lists(st.tuples(names, st.integers(0, 30 * 3600), st.sampled_from(["1s", "1h", "3h"])), max_size=8))
def test_without_signatures_nobody_counts_who_was_not_asked_for_long_enough(steps: list[Any]) -> None:
    """Whatever one person writes, in whatever order: a key counts only after the shortest delay that was set."""
    appointments, now, since = Appointments({}), NOW, dict[str, datetime]()
    for listed, seconds, delay in steps:
        now += timedelta(seconds=seconds)
        fresh = {name: since.get(name, now) for name in listed}
        since = {**fresh, **{name: time for name, time in since.items() if name in appointments.counting}}
        appointments, notices = settle(appointments, cluster(*listed, delay=delay), now)
        assert json.decode(json.encode(appointments.to_json())) == appointments.to_json()
        if appointments.counting and appointments.pending is None and notices:
            assert all(now - since[name] >= timedelta(seconds=1) for name in appointments.counting)
        assert set(appointments.counting) <= set(since)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"counting": 1}', "x"])
def test_what_cannot_be_read_lets_nobody_count(text: str) -> None:
    assert read_appointments({"data": {CONTENT: text}}).counting == {}
    assert read_appointments(None).counting == {}


@given(names, st.one_of(st.none(), names))
def test_appointments_are_read_as_they_are_written(counting: list[str], pending: list[str] | None) -> None:
    appointments = Appointments(people(*counting), None if pending is None else people(*pending), NOW, HOUR, DELAY, NOW)
    assert read_appointments({"data": {CONTENT: json.encode(appointments.to_json()).decode()}}) == appointments
