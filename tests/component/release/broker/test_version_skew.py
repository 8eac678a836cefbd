"""Agents and doors of different versions: what an older side sends means the same here.

Messages are recorded from earlier commits: from their encoders, and what enrolment answers from its door. The older programs
themselves run in the long form, tests/e2e/attestation/test_older_version.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fastness.agent.boot.enrol import read_enrolled, read_offer
from fastness.app import state_format
from fastness.keys import keyrings, vault
from fastness.protocol import disk_keys, enrolment, kbs, sealed, user_data
from tests.component.release.broker.brokered_cluster import BrokeredCluster

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "upgrade-and-go-back.md"
BEFORE = json.loads(Path(__file__).with_name("messages_before.json").read_text())


@pytest.mark.row("000-91")
async def test_an_older_agent_attests_at_this_broker_and_one_of_an_unknown_version_is_told_what_is_spoken(
    here: BrokeredCluster,
) -> None:
    guest = await here.guest()
    challenged = await guest.http.post("/kbs/v0/auth", content=BEFORE["agent"]["kbs-request"].encode())
    assert challenged.status_code == 200, challenged.text
    message = json.loads(BEFORE["agent"]["kbs-attestation"])
    now = json.loads(kbs.attestation_message(guest.evidence(str(challenged.json()["nonce"]))))
    for part, member in (
        ("runtime-data", "nonce"),
        ("runtime-data", "tee-pubkey"),
        ("tee-evidence", "primary_evidence"),
    ):
        message[part][member] = now[part][member]  # what differs from machine to machine; the shape is the older one's
    attested = await guest.http.post("/kbs/v0/attest", content=json.dumps(message).encode())
    assert attested.status_code == 200, attested.text
    newer = json.loads(BEFORE["agent"]["kbs-request"]) | {"version": "0.9.0"}
    refused = await guest.http.post("/kbs/v0/auth", content=json.dumps(newer).encode())
    assert (refused.status_code, refused.json()["code"]) == (400, "unsupported-version")
    assert all(version in refused.json()["detail"] for version in kbs.VERSIONS)


@pytest.mark.row("000-91")
def test_an_older_agent_is_understood_by_enrolment() -> None:
    agent = BEFORE["agent"]
    of_tpm = enrolment.parse_request(agent["enrolment-tpm"].encode())
    assert isinstance(of_tpm, enrolment.TpmRequest)
    assert (of_tpm.pool, of_tpm.ak_public, of_tpm.ek_certificates) == ("worker", b"ak-public", (b"ek-certificate",))
    guest = enrolment.parse_request(agent["enrolment-guest"].encode())
    assert isinstance(guest, enrolment.GuestRequest)
    assert (guest.tee, len(guest.key)) == ("snp", 64)
    assert enrolment.parse_completion(agent["completion-tpm"].encode()).activated == b"opened"
    assert enrolment.parse_completion(agent["completion-guest"].encode()).signature == bytes(64)
    with_init_data = kbs.parse_attestation(agent["kbs-attestation-with-init-data"].encode())
    assert with_init_data.init_data == ("toml", "aa")


@pytest.mark.row("000-91")
def test_this_agent_understands_older_doors() -> None:
    doors = BEFORE["doors"]
    offer = read_offer(doors["enrolment-offer-tpm"].encode())
    assert (len(offer.credential), len(offer.secret), offer.challenge) == (70, 70, b"")
    assert len(read_offer(doors["enrolment-offer-guest"].encode()).challenge) == 32
    enrolled = read_enrolled(doors["enrolled"].encode())
    assert (enrolled.node_name, enrolled.pool, enrolled.approved) == ("worker-87235e80453bcab75b98", "worker", True)
    assert enrolled.doors is not None
    assert (enrolled.doors.via, enrolled.doors.gate) == ("Gate", "https://127.0.0.1:34137")
    before = {name: value for name, value in json.loads(doors["enrolled"]).items() if name != "doors"}
    assert read_enrolled(json.dumps(before).encode()).doors is None, (
        "an even older door does not say where the others are"
    )
    assert kbs.challenge_message("NONCE").decode() == doors["kbs-challenge"]
    assert kbs.token_message("TOKEN").decode() == doors["kbs-token"]


def test_what_this_side_sends_is_what_the_older_side_sent() -> None:
    assert kbs.request_message("tpm").decode() == BEFORE["agent"]["kbs-request"]
    recorded = kbs.parse_attestation(BEFORE["agent"]["kbs-attestation"].encode())
    assert json.loads(kbs.attestation_message(recorded)) == json.loads(BEFORE["agent"]["kbs-attestation"])


@pytest.mark.row("000-88")
def test_the_page_about_upgrades_states_the_versions_that_the_program_speaks() -> None:
    rows = dict(re.findall(r"^\| ([^|]+?) \| `([^`]+)` \|", PAGE.read_text(), re.M))
    assert rows == {
        "session at the broker": ", ".join(kbs.VERSIONS),
        "user-data of a machine": user_data.VERSION,
        "answer with keys of disks": str(disk_keys.VERSION),
        "sealed secret of a workload": sealed.VERSION,
        "rings of keys": str(keyrings.VERSION),
        "ring of vault keys": str(vault.VERSION),
        "state of a cluster": str(state_format.FORMAT),
    }
