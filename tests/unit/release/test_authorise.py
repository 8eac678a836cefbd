"""A Grant exists only for a live proof of the right kind, and names exactly what it is for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fastness.kinds.trusted_execution.subject import Basis, Subject
from fastness.release.authorise import ClusterRules, Denied, ProvenCaller, granted

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SUBJECT = Subject(
    "0b0e7f0e-0000-4000-8000-000000000001", "machine-a", "sha256:" + "a" * 64, "worker", tee="tpm",
    endorsement="ek-certificate",
)  # fmt: skip
FIRST_USE = replace(SUBJECT, endorsement="trust-on-first-use")
STANDING = ProvenCaller(SUBJECT, "verdict-1", {"kty": "EC"}, NOW + timedelta(minutes=10))


def test_a_live_proof_gives_a_grant_for_one_resource_one_key_and_no_longer_than_itself() -> None:
    grant = granted(STANDING, "pool/worker/config", ClusterRules(), NOW)
    assert (grant.subject, grant.resource, grant.recipient) == (SUBJECT, "pool/worker/config", {"kty": "EC"})
    assert grant.live(NOW)
    assert not grant.live(STANDING.expires)


@pytest.mark.parametrize(
    ("standing", "house", "code"),
    [
        (replace(STANDING, expires=NOW), ClusterRules(), "verdict-expired"),
        (replace(STANDING, subject=replace(SUBJECT, simulated=True)), ClusterRules(), "simulated"),
        (replace(STANDING, basis=Basis.AUDIT), ClusterRules(), "audit-basis"),
        (replace(STANDING, verdict=""), ClusterRules(), "no-verdict"),
        (replace(STANDING, subject=replace(SUBJECT, endorsement="")), ClusterRules(), "not-endorsed"),
        (replace(STANDING, subject=replace(SUBJECT, endorsement="evidence")), ClusterRules(), "not-endorsed"),
        (replace(STANDING, subject=replace(SUBJECT, tee="snp")), ClusterRules(), "not-endorsed"),
        (replace(STANDING, subject=replace(SUBJECT, tee="sample")), ClusterRules(), "not-endorsed"),
        (replace(STANDING, subject=FIRST_USE), ClusterRules(), "first-use-not-allowed"),
    ],
)
def test_what_is_not_a_live_proof_of_the_right_kind_is_denied(
    standing: ProvenCaller, house: ClusterRules, code: str
) -> None:
    with pytest.raises(Denied) as denied:
        granted(standing, "pool/worker/config", house, NOW)
    assert denied.value.code == code


def test_a_simulated_cluster_takes_simulated_proof_and_an_auditing_one_its_own_basis() -> None:
    simulated = replace(STANDING, subject=replace(SUBJECT, simulated=True))
    assert granted(simulated, "a/b/c", ClusterRules(simulated=True), NOW).subject.simulated
    audited = replace(STANDING, basis=Basis.AUDIT, verdict="")
    assert granted(audited, "a/b/c", ClusterRules(enforcing=False), NOW).basis is Basis.AUDIT


def test_a_grant_says_what_it_rests_on() -> None:
    found = granted(replace(STANDING, subject=FIRST_USE), "a/b/c", ClusterRules(first_use=True), NOW)
    assert found.described() == {"basis": "verdict", "tee": "tpm", "endorsement": "trust-on-first-use"}
    assert found.id != granted(STANDING, "a/b/c", ClusterRules(), NOW).id


def test_the_id_is_the_same_for_the_same_release_and_differs_for_any_other() -> None:
    first = granted(STANDING, "a/b/c", ClusterRules(), NOW)
    assert granted(STANDING, "a/b/c", ClusterRules(), NOW + timedelta(minutes=1)).id == first.id
    others = {
        granted(STANDING, "a/b/d", ClusterRules(), NOW).id,
        granted(replace(STANDING, verdict="verdict-2"), "a/b/c", ClusterRules(), NOW).id,
        granted(replace(STANDING, recipient={"kty": "RSA"}), "a/b/c", ClusterRules(), NOW).id,
    }
    assert len(others | {first.id}) == 4
