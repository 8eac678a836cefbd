"""Links, sessions and tokens of forms, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.secret import SecretText
from fastness.page import sessions as module
from fastness.page.sessions import LIFETIME, LINK_LIFETIME, LOGIN_LIFETIME, Credential, Sessions
from fastness.runtime.clock import SystemEntropy

CREDENTIAL = Credential(token=SecretText("token"))


class HandClock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> Sessions:
    return Sessions(clock, SystemEntropy())


def test_a_link_counts_once(sessions: Sessions) -> None:
    key = sessions.link(CREDENTIAL)
    assert sessions.link_counts(key)
    assert sessions.link_counts(key)  # looking does not use it up
    assert sessions.redeem(key) == CREDENTIAL
    assert not sessions.link_counts(key)
    assert sessions.redeem(key) is None


def test_a_link_ends_after_five_minutes(sessions: Sessions, clock: HandClock) -> None:
    key = sessions.link(CREDENTIAL)
    clock.time += LINK_LIFETIME
    assert not sessions.link_counts(key)
    assert sessions.redeem(key) is None


def test_every_login_has_an_id_of_its_own(sessions: Sessions) -> None:
    (first, cookie), (second, other) = sessions.begin(CREDENTIAL), sessions.begin(CREDENTIAL)
    assert first.id != second.id
    assert sessions.find(cookie) == first
    assert sessions.find(other) == second
    sessions.end(first)
    assert sessions.find(cookie) is None
    assert sessions.find(other) == second


def test_a_session_ends_by_itself(sessions: Sessions, clock: HandClock) -> None:
    _, cookie = sessions.begin(CREDENTIAL)
    clock.time += LIFETIME - timedelta(seconds=1)
    assert sessions.find(cookie) is not None
    clock.time += timedelta(seconds=1)
    assert sessions.find(cookie) is None
    clock.time -= timedelta(hours=1)
    assert sessions.find(cookie) is None  # it is forgotten, not only hidden


@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda raw: raw.hex()))
def test_nobody_makes_a_cookie_or_a_token(guess: str) -> None:
    sessions = Sessions(HandClock(), SystemEntropy())
    session, _ = sessions.begin(CREDENTIAL)
    assert sessions.find(guess) is None
    assert not sessions.is_ours(session, guess)
    assert not sessions.is_our_login(guess, guess)
    assert sessions.redeem(guess) is None


def test_texts_of_one_purpose_do_not_serve_another(sessions: Sessions) -> None:
    session, cookie = sessions.begin(CREDENTIAL)
    token = sessions.form_token(session)
    login, form = sessions.before_login()
    assert sessions.find(token) is None
    assert not sessions.is_ours(session, cookie)
    assert not sessions.is_ours(session, form)
    assert sessions.is_our_login(login, form)
    assert not sessions.is_our_login(form, login)
    assert not sessions.is_our_login(cookie, token)


def test_a_token_serves_its_own_session_only(sessions: Sessions) -> None:
    (first, _), (second, _) = sessions.begin(CREDENTIAL), sessions.begin(CREDENTIAL)
    assert sessions.is_ours(first, sessions.form_token(first))
    assert not sessions.is_ours(second, sessions.form_token(first))


def test_a_login_form_is_tied_to_its_cookie_and_ends(sessions: Sessions, clock: HandClock) -> None:
    (mine, form), (other, _) = sessions.before_login(), sessions.before_login()
    assert sessions.is_our_login(mine, form)
    assert not sessions.is_our_login(other, form)
    clock.time += LOGIN_LIFETIME
    assert not sessions.is_our_login(mine, form)


def test_the_oldest_session_makes_room(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)
    sessions = Sessions(clock, SystemEntropy())
    cookies = [sessions.begin(CREDENTIAL)[1] for _ in range(3)]
    assert [sessions.find(cookie) is not None for cookie in cookies] == [False, True, True]


def test_another_process_knows_nothing_of_it(sessions: Sessions, clock: HandClock) -> None:
    _, cookie = sessions.begin(CREDENTIAL)
    other = Sessions(clock, SystemEntropy())
    assert other.find(cookie) is None
    assert other.cookie != sessions.cookie
