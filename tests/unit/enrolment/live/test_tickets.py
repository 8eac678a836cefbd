"""Join tickets: minted once, kept as a hash, refused for a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import (
    MAX_TICKET,
    TicketCheck,
    TicketProblem,
    bearer,
    check,
    join_ticket,
    mint,
    ticket_hash,
)
from fastness.kinds.kind import JsonObject
from tests.virtual import SeededEntropy

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def made(uses: int = 0, used: int = 0, pool: str = "worker") -> tuple[SecretText, JsonObject]:
    ticket = mint(SeededEntropy(7))
    ticket_object = join_ticket("t", ticket, pool, NOW + timedelta(days=1), uses)
    return ticket, {**ticket_object, "status": {"used": used}}


def test_the_object_holds_a_hash_and_never_the_ticket() -> None:
    ticket, ticket_object = made()
    assert ticket.reveal() not in str(ticket_object)
    assert ticket_object["spec"]["secretHash"] == ticket_hash(ticket)
    assert ticket.reveal() not in repr(ticket)


def test_a_good_ticket_is_good_for_its_pool_until_it_expires() -> None:
    ticket, ticket_object = made()
    assert check(ticket.reveal(), "worker", [ticket_object], NOW).good
    assert check(ticket.reveal(), "worker", [ticket_object], NOW).name == "t"
    assert check(ticket.reveal(), "infra", [ticket_object], NOW).problem is TicketProblem.WRONG_POOL
    assert check(ticket.reveal(), "worker", [ticket_object], NOW + timedelta(days=1)).problem is TicketProblem.EXPIRED


def test_a_limited_ticket_is_used_up() -> None:
    ticket, ticket_object = made(uses=2, used=1)
    assert check(ticket.reveal(), "worker", [ticket_object], NOW).good
    ticket, ticket_object = made(uses=2, used=2)
    assert check(ticket.reveal(), "worker", [ticket_object], NOW).problem is TicketProblem.USED_UP


@pytest.mark.parametrize("text", ["", "fst_", "fst_wrong", "x" * 10_000, "fst_" + "é", "fst_" + "a" * MAX_TICKET])
def test_anything_else_is_unknown(text: str) -> None:
    _, ticket_object = made()
    assert check(text, "worker", [ticket_object], NOW).problem is TicketProblem.UNKNOWN


def test_the_empty_ticket_is_unknown_even_if_somebody_stored_its_hash() -> None:
    ticket_object = join_ticket("t", SecretText(""), "worker", NOW + timedelta(days=1))
    assert check("", "worker", [ticket_object], NOW).problem is TicketProblem.UNKNOWN


@pytest.mark.parametrize(
    ("header", "ticket"), [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("", ""), ("Bearer", "")]
)
def test_the_ticket_stands_in_the_authorization_header(header: str, ticket: str) -> None:
    assert bearer(header) == ticket


def test_a_ticket_without_a_pool_to_compare_with_says_which_it_is_for() -> None:
    ticket, ticket_object = made(pool="infra")
    checked = check(ticket.reveal(), None, [ticket_object], NOW)
    assert (checked.good, checked.pool, checked.limited) == (True, "infra", False)
    assert check(ticket.reveal(), None, [ticket_object], NOW + timedelta(days=1)).problem is TicketProblem.EXPIRED
    assert check("fst_wrong", None, [ticket_object], NOW).pool == ""


def test_the_keys_that_used_a_ticket_count_even_if_the_number_was_changed() -> None:
    ticket, ticket_object = made(uses=2, used=0)
    ticket_object["status"]["usedBy"] = ["machine-1", "machine-2"]
    checked = check(ticket.reveal(), "worker", [ticket_object], NOW)
    assert (checked.problem, checked.limited) == (TicketProblem.USED_UP, True)
    assert checked.used_by("machine-2")
    assert not checked.used_by("machine-3")


def test_a_ticket_that_does_not_say_how_often_is_for_one_machine() -> None:
    ticket, ticket_object = made()
    del ticket_object["spec"]["uses"]
    assert check(ticket.reveal(), "worker", [ticket_object], NOW).limited


def test_what_is_no_ticket_is_neither_limited_nor_used_by_anybody() -> None:
    unknown = TicketCheck(problem=TicketProblem.UNKNOWN)
    assert (unknown.limited, unknown.used_by("machine-a"), unknown.pool, unknown.uid) == (False, False, "", "")
