"""The life of an authority, step by step and without a cluster; what it issues, and what it refuses to read."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.errors import CertificateExpired, UntrustedCertificate, WrongPurpose
from fastness.crypto.x509 import Certificate, verify_server
from fastness.keys.authorities import PROMOTED, AuthoritySecret, Lineage, _data
from fastness.keys.doors import DOORS, DoorsAuthority
from fastness.keys.errors import DamagedAuthority
from fastness.keys.internal import ASKING, INTERNAL, LEAF_LIFETIME, InternalAuthority, asking_role, is_due
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.protocol.door import DoorRole
from tests.unit.crypto.seeded import NOW
from tests.virtual import SeededEntropy

DAY = timedelta(days=1)
KIND = AuthoritySecret("some-ca", "some", overlap=30 * DAY)
ENTROPY = SeededEntropy(7)


def made() -> Lineage:
    return Lineage(KIND._made(ENTROPY, NOW))


def stored(lineage: Lineage) -> dict[str, Any]:
    data = {name: value for name, value in _data(lineage).items() if value is not None}
    return {"metadata": {"name": KIND.name, "namespace": NAMESPACE}, "data": data}


def prints(*certificates: Certificate) -> list[str]:
    return [str(entry.fingerprint) for entry in certificates]


def test_nothing_is_due_for_most_of_a_life() -> None:
    first = made()
    assert KIND.step(first, NOW, ENTROPY) is first
    assert KIND.step(first, NOW + 2000 * DAY, ENTROPY) is first


def test_a_successor_comes_with_a_third_left_is_trusted_at_once_and_issues_after_the_overlap() -> None:
    first, late = made(), NOW + 2500 * DAY
    second = KIND.step(first, late, ENTROPY)
    assert second.issuing is first.issuing
    assert second.successor is not None
    assert prints(*second.trusted) == prints(first.issuing.certificate, second.successor.certificate)
    assert KIND.step(second, late + 29 * DAY, ENTROPY) == second
    third = KIND.step(second, late + 30 * DAY, ENTROPY)
    assert third.issuing is second.successor
    assert prints(*third.predecessors) == prints(first.issuing.certificate)
    assert KIND.step(third, late + 59 * DAY, ENTROPY) == third
    assert KIND.step(third, late + 61 * DAY, ENTROPY).trusted == (third.issuing.certificate,)


def test_a_successor_that_may_not_issue_waits_as_long_as_it_takes() -> None:
    requested = KIND.step(made(), NOW, ENTROPY, requested=True)
    waiting = KIND.step(requested, NOW + 300 * DAY, ENTROPY, lambda _successor: False)
    assert waiting == requested
    assert KIND.step(waiting, NOW + 300 * DAY, ENTROPY).issuing is requested.successor


def test_being_asked_twice_makes_one_successor() -> None:
    once = KIND.step(made(), NOW, ENTROPY, requested=True)
    assert KIND.step(once, NOW + DAY, ENTROPY, requested=True) == once


@given(st.lists(st.integers(0, 400), max_size=12), st.booleans())
def test_whatever_was_issued_with_overlap_to_spare_stays_trusted_by_the_next_bundle(
    days: list[int], requested: bool
) -> None:
    now, lineage = NOW, made()
    for pause in days:
        before, now = lineage, now + pause * DAY
        lineage = KIND.step(before, now, ENTROPY, requested=requested)
        assert lineage.issuing.certificate in before.trusted  # nobody issues who was not announced
        assert len(lineage.trusted) <= 4
        if lineage != before:
            assert KIND.step(lineage, now, ENTROPY) == lineage or lineage.successor is not None


def test_a_lineage_comes_back_from_its_secret_and_the_bundle_lies_beside_it() -> None:
    grown = KIND.step(KIND.step(made(), NOW, ENTROPY, requested=True), NOW + 31 * DAY, ENTROPY)
    grown = KIND.step(grown, NOW + 32 * DAY, ENTROPY, requested=True)
    secret = stored(grown)
    secret["metadata"]["annotations"] = {PROMOTED: grown.promoted.isoformat()}
    again = KIND.read(secret, ENTROPY)
    assert prints(*again.trusted) == prints(*grown.trusted)
    assert again.promoted == grown.promoted
    assert base64.b64decode(secret["data"]["ca.crt"]).decode() == again.bundle
    assert again.bundle.count("BEGIN CERTIFICATE") == 3


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data.pop("tls.crt"),
        lambda data: data.pop("tls.key"),
        lambda data: data.update({"tls.key": "no base64"}),
        lambda data: data.update({"tls.key": base64.b64encode(b"no key").decode()}),
        lambda data: data.update({"tls.crt": data["next.crt"]}),
        lambda data: data.pop("next.key"),
        lambda data: data.update({"old.crt": base64.b64encode(b"no certificate").decode()}),
        lambda data: data.clear(),
    ],
)
def test_a_damaged_secret_is_refused_by_name_and_with_a_way_out(harm: Any) -> None:
    secret = stored(KIND.step(made(), NOW, ENTROPY, requested=True))
    harm(secret["data"])
    with pytest.raises(DamagedAuthority, match="fastness-system/some-ca") as caught:
        KIND.read(secret, ENTROPY)
    assert "backup" in caught.value.hint
    assert "PRIVATE" not in str(caught.value)


def test_doors_overlap_for_a_month_and_internal_leaves_live_for_a_day() -> None:
    assert DOORS.overlap >= 30 * DAY
    assert timedelta(hours=24) == LEAF_LIFETIME < INTERNAL.overlap


def test_a_door_shows_a_certificate_that_the_bundle_verifies() -> None:
    doors = DoorsAuthority(made())
    credential = doors.serving(DoorRole.CONFIG_SERVER, ["127.0.0.1", "configs.example"], NOW)
    assert credential.certificate.uris == ("fastness://role/configserver",)
    verify_server(credential.certificate, doors.lineage.trusted, "configs.example", NOW + 89 * DAY)
    with pytest.raises(UntrustedCertificate):
        verify_server(credential.certificate, doors.lineage.trusted, "other.example", NOW)


def test_roles_are_read_from_certificates_of_this_authority_only_and_for_a_day_only() -> None:
    internal, other = InternalAuthority(made()), InternalAuthority(made())
    trusted = internal.lineage.trusted
    for role in DoorRole:
        credential = internal.client(role, NOW).certificate
        assert asking_role(credential, trusted, NOW) is (role if role in ASKING else None)
        with pytest.raises(UntrustedCertificate):
            asking_role(credential, other.lineage.trusted, NOW)
        with pytest.raises(CertificateExpired):
            asking_role(credential, trusted, NOW + DAY + timedelta(seconds=1))
    with pytest.raises(WrongPurpose):
        asking_role(internal.serving(["127.0.0.1"], NOW).certificate, trusted, NOW)


def test_a_credential_is_due_with_a_third_left() -> None:
    credential = InternalAuthority(made()).client(DoorRole.GATE, NOW)
    assert not is_due(credential, NOW + timedelta(hours=15))
    assert is_due(credential, NOW + timedelta(hours=17))


def test_a_credential_from_a_time_that_has_not_come_is_due() -> None:
    credential = InternalAuthority(made()).client(DoorRole.GATE, NOW)
    assert is_due(credential, NOW - timedelta(minutes=45))
    assert not is_due(credential, NOW)
