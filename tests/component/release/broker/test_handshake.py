"""The handshake over TLS: what a guest of the field sends and gets."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fastness.attestation.live.attempt import Judgement
from fastness.crypto import jwe
from fastness.crypto.errors import BrokenSeal
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kube.errors import Unavailable
from fastness.protocol import kbs
from fastness.release.handshake import COOKIE
from tests.component.release.broker.brokered_cluster import BrokeredCluster, Guest, subject, until, verdict

STATUS = "default/attestation-status/status"


async def test_a_machine_attests_and_reads_its_own_secret_sealed_to_its_key(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await here.put(f"machine/{guest.who.machine}/volume-key", b"correct horse")
    assert (await guest.attest()).status_code == 200
    assert await guest.read(f"machine/{guest.who.machine}/volume-key") == b"correct horse"
    released = [entry for entry in here.ledger.entries if entry.what == "release"]
    assert [(entry.who, entry.resource, entry.verdict) for entry in released] == [
        (guest.who.thumbprint, f"machine/{guest.who.machine}/volume-key", "verdict-1")
    ]


async def test_whoever_attested_reads_success_without_a_newline(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    assert await guest.read(STATUS) == b"success"


async def test_the_verifier_gets_what_the_evidence_must_be_bound_to(here: BrokeredCluster) -> None:
    guest = await here.guest()
    before = datetime.now(UTC).replace(microsecond=0)
    nonce = await guest.challenge("tdx")
    sent = replace(guest.evidence(nonce, "tdx"), init_data=("toml", "x = 1"))
    await guest.send(sent)
    (attempt,) = here.judge.attempts
    assert (attempt.tee, attempt.nonce, attempt.tee_pubkey) == ("tdx", nonce, guest.jwk)
    assert attempt.runtime == kbs.runtime_data(nonce, guest.jwk, "")
    assert attempt.init_data == ("toml", "x = 1")
    assert before <= attempt.challenge_expires - timedelta(seconds=60) <= datetime.now(UTC)


async def test_the_token_is_an_ear_with_audience_nonce_and_key(here: BrokeredCluster) -> None:
    guest = await here.guest()
    nonce = await guest.challenge()
    answer = await guest.send(guest.evidence(nonce))
    token = answer.json()["token"]
    claims = here.door.tokens.verify(token, "broker")
    assert (claims["sub"], claims["eat_nonce"], claims["cnf"]["jwk"]) == (guest.who.thumbprint, nonce, guest.jwk)
    assert claims["submods"]["cpu0"]["ear.status"] == "affirming"
    assert "uefi_event_logs" not in json.dumps(claims)
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    keys = (await guest.http.get("/.well-known/jwks.json")).json()["keys"]
    assert set(header) == {"alg", "kid", "typ"}
    assert header["kid"] in [key["kid"] for key in keys]
    assert all("d" not in key for key in keys)


async def test_the_cookie_changes_with_the_handshake_and_stays_on_its_path(here: BrokeredCluster) -> None:
    guest = await here.guest()
    nonce = await guest.challenge()
    first = guest.http.cookies[COOKIE]
    answer = await guest.send(guest.evidence(nonce))
    assert guest.http.cookies[COOKIE] != first
    header = answer.headers["set-cookie"]
    for attribute in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/kbs/v0", "Max-Age=", "Expires="):
        assert attribute in header


async def test_a_challenge_is_answered_once(here: BrokeredCluster) -> None:
    guest = await here.guest()
    nonce = await guest.challenge()
    cookie = guest.http.cookies[COOKIE]
    assert (await guest.send(guest.evidence(nonce))).status_code == 200
    again = Guest(await here.client(), guest.who, guest.key)
    again.http.cookies.set(COOKIE, cookie)
    answer = await again.send(again.evidence(nonce))
    assert (answer.status_code, answer.json()["code"]) == (401, "challenge-replayed")


async def test_evidence_without_a_challenge_is_not_looked_at(here: BrokeredCluster) -> None:
    guest = await here.guest()
    answer = await guest.send(guest.evidence("made up"))
    assert (answer.status_code, answer.json()["code"]) == (401, "no-challenge")
    assert here.judge.attempts == []


async def test_a_session_cannot_ask_for_another_token(here: BrokeredCluster) -> None:
    guest = await here.guest()
    nonce = await guest.challenge()
    await guest.send(guest.evidence(nonce))
    answer = await guest.send(guest.evidence(nonce))
    assert (answer.status_code, answer.json()["code"]) == (401, "no-challenge")


async def test_a_stolen_session_yields_bytes_that_only_the_machine_opens(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    thief = await here.guest(subject("b"))
    thief.http.cookies.set(COOKIE, guest.http.cookies[COOKIE])
    answer = await thief.get(STATUS)
    with pytest.raises(BrokenSeal):
        jwe.opened(answer.content, thief.key)
    assert b"success" not in answer.content


REFUSALS: list[tuple[Judgement | Exception, int, str]] = [
    (Judgement(False, "pcr-mismatch", "PCR 4 differs", subject(), verdict("v")), 403, "pcr-mismatch"),
    (Judgement(False, "debug", "a debug TD"), 403, "debug"),
    (Judgement(False, "unknown-machine", "nobody enrolled with this key"), 403, "unknown-machine"),
    (Judgement(False, "values-missing", "no values yet", subject(), retry=True), 503, "values-missing"),
    (Judgement(True, "", "", None, verdict("v")), 403, "refused"),
    (Unavailable("etcd is gone"), 503, "unavailable"),
]


async def test_a_refusal_says_whether_it_is_final(here: BrokeredCluster) -> None:
    for judgement, status, code in REFUSALS:
        here.judge.answer = judgement
        guest = await here.guest()
        answer = await guest.attest()
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.json()["type"] == f"https://fastness.dev/errors/{code}"
        assert ("retry-after" in answer.headers) == (status == 503)
        assert len(answer.content) <= 300
        assert "etcd" not in answer.text
        assert (await guest.get(STATUS)).status_code == 401


async def test_a_token_never_outlives_its_verdict(here: BrokeredCluster) -> None:
    end = datetime.now(UTC) + timedelta(seconds=90)
    here.judge.answer = Judgement(True, "", "", subject(), verdict(), {"executables": 3}, {}, end)
    guest = await here.guest()
    await guest.attest()
    claims = here.door.tokens.verify(guest.token, "broker")
    assert claims["exp"] - claims["iat"] <= 90


async def test_lifetimes_and_evidence_follow_the_cluster_without_a_restart(here: BrokeredCluster) -> None:
    spec = {
        "mode": "Enforce",
        "simulated": True,
        "attestation": {"tokenLifetime": "2m", "challengeLifetime": "30s", "evidence": ["snp"]},
    }
    made = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"}}
    await here.cluster.create(CONFIDENTIAL_CLUSTER.resource, {**made, "spec": spec})
    guest = await here.guest()

    async def refused() -> bool:
        answer = await guest.http.post("/kbs/v0/auth", content=kbs.request_message("tpm"))
        return answer.status_code == 403 and answer.json()["code"] == "unsupported-tee"

    await until(refused)
    await guest.challenge("snp")
    await guest.attest("snp")
    claims = here.door.tokens.verify(guest.token, "broker")
    assert claims["exp"] - claims["iat"] == 120


async def test_a_simulated_machine_gets_nothing_in_a_real_cluster(here: BrokeredCluster) -> None:
    guest = await here.guest(subject("a", simulated=True))
    await guest.attest()
    answer = await guest.get(STATUS)
    assert (answer.status_code, answer.json()["code"]) == (403, "simulated")


async def test_tees_that_nobody_verifies_are_refused_at_once(here: BrokeredCluster) -> None:
    guest = await here.guest()
    for tee in ("sample", "sampledevice", "sgx", "se", "nvidia"):
        answer = await guest.http.post("/kbs/v0/auth", content=kbs.request_message(tee))
        assert (answer.status_code, answer.json()["code"]) == (403, "unsupported-tee")
        assert "set-cookie" not in answer.headers


async def test_another_replica_takes_every_next_step(here: BrokeredCluster) -> None:
    other = await here.replica()
    guest = await here.guest()
    await here.put(f"machine/{guest.who.machine}/k", b"secret")
    nonce = await guest.challenge()
    second = Guest(await here.client(other), guest.who, guest.key)
    second.http.cookies.set(COOKIE, guest.http.cookies[COOKIE], "127.0.0.1", "/kbs/v0")
    answer = await second.send(second.evidence(nonce))
    assert answer.status_code == 200
    guest.http.cookies.clear()
    guest.http.cookies.set(COOKIE, second.http.cookies[COOKIE], "127.0.0.1", "/kbs/v0")
    assert await guest.read(f"machine/{guest.who.machine}/k") == b"secret"
