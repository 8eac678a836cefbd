"""The handshake without I/O: what each cookie opens, and what it does not."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.mac import MacKey, MacRing
from fastness.crypto.secret import SecretBytes
from fastness.protocol.kbs import KbsAttestation, KbsRequest
from fastness.release.handshake import MAX_COOKIE, Challenge, Handshake, HandshakeError, cookie_in, set_cookie
from tests.virtual import SeededEntropy

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
MACS = MacRing([MacKey(SecretBytes(b"k" * 32))])
SHAKE = Handshake(MACS, "kbs", accepted=("tpm", "tdx"))


def begin(now: datetime = NOW, shake: Handshake = SHAKE, seed: int = 0) -> tuple[Challenge, str]:
    return shake.begin(KbsRequest("0.4.0", "tpm"), now, SeededEntropy(seed))


def answer(nonce: str) -> KbsAttestation:
    return KbsAttestation(nonce, {}, {})


def code_of(call: object) -> str:
    with pytest.raises(HandshakeError) as refused:
        assert callable(call)
        call()
    return refused.value.code


def test_a_nonce_is_32_bytes_in_base64_with_padding_and_never_the_same() -> None:
    nonces = {begin(seed=seed)[0].nonce for seed in range(50)}
    assert len(nonces) == 50
    assert {(len(nonce), len(base64.b64decode(nonce, validate=True))) for nonce in nonces} == {(44, 32)}


def test_a_challenge_is_answered_by_its_own_nonce_within_its_minute_at_any_replica() -> None:
    challenge, cookie = begin()
    replica = Handshake(MacRing([MacKey(SecretBytes(b"k" * 32))]), "kbs")
    assert replica.answered(cookie, answer(challenge.nonce), NOW + timedelta(seconds=59)) == challenge
    assert (challenge.tee, challenge.audience, challenge.expires) == ("tpm", "kbs", NOW + timedelta(seconds=60))


def test_an_expired_challenge_asks_for_a_new_one() -> None:
    challenge, cookie = begin()
    late = NOW + timedelta(seconds=60)
    assert code_of(lambda: SHAKE.answered(cookie, answer(challenge.nonce), late)) == "challenge-expired"


def test_evidence_for_another_challenge_is_refused() -> None:
    _, cookie = begin()
    other, _ = begin(seed=9)
    assert code_of(lambda: SHAKE.answered(cookie, answer(other.nonce), NOW)) == "other-nonce"


def test_a_challenge_of_another_door_is_refused() -> None:
    challenge, cookie = begin(shake=Handshake(MACS, "gate"))
    assert code_of(lambda: SHAKE.answered(cookie, answer(challenge.nonce), NOW)) == "other-audience"


def test_a_challenge_of_another_cluster_is_refused() -> None:
    challenge, cookie = begin(shake=Handshake(MacRing([MacKey(SecretBytes(b"z" * 32))]), "kbs"))
    assert code_of(lambda: SHAKE.answered(cookie, answer(challenge.nonce), NOW)) == "no-challenge"


def test_a_session_cookie_answers_no_challenge_and_a_challenge_opens_no_session() -> None:
    challenge, cookie = begin()
    session = SHAKE.opened({"sub": "x"}, NOW + timedelta(minutes=5))
    assert code_of(lambda: SHAKE.answered(session, answer(challenge.nonce), NOW)) == "no-challenge"
    assert code_of(lambda: SHAKE.session(cookie, NOW)) == "no-session"


def test_a_session_gives_its_claims_until_it_ends() -> None:
    end = NOW + timedelta(minutes=5)
    cookie = SHAKE.opened({"sub": "x", "submods": {"cpu0": {"ear.status": "affirming"}}}, end)
    session = SHAKE.session(cookie, end - timedelta(seconds=1))
    assert (session.claims["submods"]["cpu0"]["ear.status"], session.expires) == ("affirming", end)
    assert code_of(lambda: SHAKE.session(cookie, end)) == "session-expired"


@pytest.mark.parametrize("cookie", ["", "x", "A" * 100, "A" * (MAX_COOKIE + 1), "é", "%%%"])
def test_damaged_cookies_are_no_cookies(cookie: str) -> None:
    assert code_of(lambda: SHAKE.session(cookie, NOW)) == "no-session"
    assert code_of(lambda: SHAKE.answered(cookie, answer("x"), NOW)) == "no-challenge"


@given(st.data())
def test_a_changed_cookie_opens_nothing(data: st.DataObject) -> None:
    challenge, cookie = begin()
    place = data.draw(st.integers(0, len(cookie) - 2))
    changed = cookie[:place] + ("A" if cookie[place] != "A" else "B") + cookie[place + 1 :]
    with pytest.raises(HandshakeError):
        SHAKE.answered(changed, answer(challenge.nonce), NOW)


def test_another_version_is_told_which_one_is_spoken() -> None:
    with pytest.raises(HandshakeError) as refused:
        SHAKE.begin(KbsRequest("0.1.1", "tpm"), NOW, SeededEntropy())
    assert (refused.value.code, "0.4.0" in refused.value.detail) == ("unsupported-version", True)


@pytest.mark.parametrize("tee", ["sample", "sgx", "snp"])
def test_a_tee_that_is_not_accepted_is_told_which_are(tee: str) -> None:
    with pytest.raises(HandshakeError) as refused:
        SHAKE.begin(KbsRequest("0.4.0", tee), NOW, SeededEntropy())
    assert refused.value.code == "unsupported-tee"
    assert "tdx, tpm" in refused.value.detail


def test_claims_that_do_not_fit_into_a_cookie_are_refused() -> None:
    noise = SeededEntropy().token(MAX_COOKIE).hex()
    assert code_of(lambda: SHAKE.opened({"x": noise}, NOW)) == "claims-too-long"


def test_the_cookie_has_every_attribute_that_keeps_it_where_it_belongs() -> None:
    header = set_cookie("value", NOW + timedelta(seconds=60), NOW)
    parsed = SimpleCookie(header)["kbs-session-id"]
    assert parsed.value == "value"
    assert (parsed["path"], parsed["max-age"], parsed["samesite"]) == ("/kbs/v0", "60", "Strict")
    assert parsed["secure"]
    assert parsed["httponly"]
    assert parsedate_to_datetime(parsed["expires"]) == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], ""),
        (["other=1"], ""),
        (["kbs-session-id=abc"], "abc"),
        (["a=1; kbs-session-id=abc; b=2"], "abc"),
        (["a=1", 'kbs-session-id="abc"'], "abc"),
        (["kbs-session-id"], ""),
        (["kbs-session-id=x; kbs-session-id=x"], "x"),
        (["KBS-SESSION-ID=abc"], ""),
    ],
)
def test_the_one_cookie_is_found(headers: list[str], expected: str) -> None:
    assert cookie_in(headers) == expected


def test_two_cookies_are_refused() -> None:
    assert code_of(lambda: cookie_in(["kbs-session-id=a; kbs-session-id=b"])) == "two-cookies"
