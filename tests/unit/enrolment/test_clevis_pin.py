"""Invitations and keys of the Clevis pin, without I/O."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fastness.enrolment.clevis_pin import LIFETIME, PinInvitation, invite, registered
from fastness.enrolment.enrolment import EnrolmentRefused, Invitation, Terms
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel, clevis_pools
from fastness.protocol.clevis import Registration, parse_registration, pin_config
from fastness.protocol.enrolment import EnrolmentFormatError
from fastness.runtime.clock import SystemEntropy
from fastness.sim.tee.writers.keys import EcKey

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TERMS = Terms(TrustModel.CONFIDENTIAL_CLUSTER, first_use=True)
TICKET = Invitation("t-1", "uid-1", "worker")
POOLS = frozenset({"worker"})
ID = "316809b1-ea29-448c-accb-78c5c6bf5206"
KEY = Registration(EcKey(SystemEntropy()).public_der())


def code(function: object, *arguments: object) -> str:
    with pytest.raises(EnrolmentRefused) as refused:
        function(*arguments)  # type: ignore[operator]  # one of the two
    return refused.value.code


def test_a_key_on_its_own_word_becomes_a_newcomer_that_is_trusted_on_first_use() -> None:
    invited = invite(TICKET, POOLS, TERMS, ID, NOW)
    assert PinInvitation.decode(invited.encode()) == invited
    newcomer = registered(invited, KEY, POOLS, TERMS, NOW)
    assert (newcomer.endorsed_by, newcomer.pin, newcomer.identity) == ("trust-on-first-use", "Clevis", ID)
    assert (newcomer.ticket, newcomer.ticket_uid, newcomer.pool, newcomer.approved) == ("t-1", "uid-1", "worker", True)
    assert not registered(invited, KEY, POOLS, replace(TERMS, manual=True), NOW).approved


@pytest.mark.parametrize(
    ("pools", "terms", "expected"),
    [
        (frozenset[str](), TERMS, "ticket-enrolment-only"),
        (POOLS, replace(TERMS, first_use=False), "first-use-not-allowed"),
        (POOLS, replace(TERMS, evidence=("snp", "tdx")), "evidence-not-accepted"),
    ],
)
def test_what_the_pool_does_not_take_is_refused_at_both_steps(
    pools: frozenset[str], terms: Terms, expected: str
) -> None:
    assert code(invite, TICKET, pools, terms, ID, NOW) == expected
    invited = invite(TICKET, POOLS, TERMS, ID, NOW)
    assert code(registered, invited, KEY, pools, terms, NOW) == expected


def test_an_invitation_ends_and_is_for_the_machine_that_it_names() -> None:
    invited = invite(TICKET, POOLS, TERMS, ID, NOW)
    assert code(registered, invited, KEY, POOLS, TERMS, NOW + LIFETIME) == "enrolment-expired"
    other = replace(KEY, uuid="5f0c8f52-1d3b-4f6e-9c55-0a8f3f1b7a11")
    assert code(registered, invited, other, POOLS, TERMS, NOW) == "enrolment-invalid"
    assert registered(invited, replace(KEY, uuid=ID), POOLS, TERMS, NOW).identity == ID
    assert code(registered, invited, Registration(b"MIIB"), POOLS, TERMS, NOW) == "bad-key"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"identity": "x"}', b"\xff"])
def test_an_invitation_of_another_version_is_no_invitation(data: bytes) -> None:
    assert code(PinInvitation.decode, data) == "enrolment-invalid"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"public_key":"TQ==","public_key":"TQ=="}', b'{"public_key":"\xc3\xa9"}']
)
def test_what_is_no_registration_is_refused(body: bytes) -> None:
    with pytest.raises(EnrolmentFormatError):
        parse_registration(body)


def test_both_names_of_the_key_and_both_forms_are_read() -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nTQ==\n-----END PUBLIC KEY-----\n"
    assert parse_registration(json.encode({"public_key": pem})).key == pem.encode()
    assert parse_registration(json.encode({"attestation_key": "TUlJQg==", "uuid": ID})) == Registration(b"MIIB", ID)


def test_the_config_names_the_server_its_authority_and_the_path() -> None:
    config = pin_config(ID, "https://broker:8080", "https://enrol/register-ak/x", "PEM")
    pin = json.decode(config["storage"]["luks"][0]["clevis"]["custom"]["config"].encode())
    assert pin == {
        "servers": [{"url": "https://broker:8080", "cert": "PEM"}], "path": f"default/{ID}/root",
        "attestation_key": {"registration": {"url": "https://enrol/register-ak/x", "uuid": ID, "cert": "PEM"}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pool", "uses"),
    [
        ({"trustModel": "ConfidentialCluster", "disk": {"pin": "Clevis", "volume": "root"}}, True),
        ({"trustModel": "ConfidentialCluster", "disk": {"pin": "Clevis"}}, False),
        ({"trustModel": "ConfidentialCluster", "disk": {"pin": "Clevis", "volume": "var"}}, False),
        ({"trustModel": "ConfidentialCluster", "disk": {"pin": "Agent", "volume": "root"}}, False),
        ({"trustModel": "ContainersHost", "disk": {"pin": "Clevis", "volume": "root"}}, False),
        ({"trustModel": "None", "disk": {"pin": "Clevis", "volume": "root"}}, False),
        ({"trustModel": "ConfidentialCluster", "disk": "Clevis"}, False),
        ({"trustModel": "ConfidentialCluster"}, False),
    ],
)
def test_the_pin_is_used_where_a_confidential_pool_has_its_root_opened_by_it(
    pool: dict[str, object], uses: bool
) -> None:
    cluster = {"spec": {"mode": "Enforce", "pools": [{"name": "worker", **pool}]}}
    assert clevis_pools(cluster) == (POOLS if uses else frozenset())
    assert clevis_pools(None) == clevis_pools({"spec": {"pools": "x"}}) == frozenset()
