"""What roles reach through controllers: a new loop that widens it has to be thought about, here."""

from __future__ import annotations

import pytest

from fastness.kube.places import HOME
from tools.reach import Holder, Where, holders, reaches

HOLDERS = {holder.title: holder for holder in holders()}
ANYTHING = HOLDERS["every namespaced kind of ours, and `admin`"]

# What somebody may do in a namespace of theirs and a loop of ours then looks at, with the reason why it may.
FROM_A_NAMESPACE = {
    "catalogsources": "operators are installed into the namespace that asks",
    "clusterserviceversions": "operators are installed into the namespace that asks",
    "imagepolicies": "machines ask for signatures on images of that namespace's pods; what is wrong with one stops nobody else",
    "installplans": "operators are installed into the namespace that asks",
    "operatorgroups": "operators are installed into the namespace that asks",
    "subscriptions": "operators are installed into the namespace that asks",
}
# What nobody reaches from a namespace of a team, whatever they may write there.
NEVER = {"ConfidentialCluster", "Machine", "ReferenceValueSet", "AuditBatch", "CertificateSigningRequest", "Verdict"}


# The broker keeps what it was told to keep, in a namespace of its own. The controllers make user-data of pools, bootstrap tokens
# and tiles of the record, each where it belongs: that it is there alone is shown by `tests/component/realkube/test_accounts.py`.
WITHOUT_NAMES = {
    "account `fastness-broker`": {"secrets"}, "account `fastness-controllers`": {"secrets", "configmaps"},
    # Tokens by which machines of pools without attestation join, in a namespace that has nothing else.
    "account `fastness-configserver`": {"secrets"},
}  # fmt: skip


def test_the_owner_of_a_namespace_reaches_what_is_listed_and_nothing_else() -> None:
    assert {row.kind.plural for row in reaches(ANYTHING)} == set(FROM_A_NAMESPACE)


def test_the_owner_of_a_namespace_moves_nothing_that_attestation_rests_on() -> None:
    moved = {kind for row in reaches(ANYTHING) for kind in row.moves}
    assert not moved & NEVER
    # The webhook asks whether a namespace has an OperatorGroup, and refuses sandboxed pods of that namespace alone.
    assert {(row.kind.kind, door) for row in reaches(ANYTHING) for door in row.doors} <= {("OperatorGroup", "webhook")}


def test_the_test_can_fail() -> None:
    """The same rights, bound where objects count: there they move everything."""
    home = Holder("the same at home", Where.HOME, ANYTHING.rules)
    assert {kind for row in reaches(home) for kind in row.moves} & NEVER
    assert str(home.where) == HOME


@pytest.mark.parametrize("name", ["`view`", "`fastness-view`", "`fastness-reader`"])
def test_roles_that_look_write_nothing(name: str) -> None:
    assert reaches(HOLDERS[name]) == []


def test_who_decides_changes_machines_and_nothing_else() -> None:
    assert [row.name for row in reaches(HOLDERS["`fastness-decider`"])] == ["machines"]


def test_no_role_for_people_writes_a_status_or_the_record() -> None:
    """A status is what a controller saw; who may write one speaks in its name."""
    for title, holder in HOLDERS.items():
        if title.startswith("`fastness-"):
            names = {row.name for row in reaches(holder)}
            assert not {name for name in names if name.endswith("/status")}, title
            assert not names & {"auditbatches", "auditcheckpoints", "verdicts"}, title


@pytest.mark.parametrize("title", [title for title in HOLDERS if title.startswith("account")])
def test_a_door_writes_secrets_and_maps_only_by_name(title: str) -> None:
    """But for three, whose objects have names that nobody knows before."""
    wide = {row.kind.plural for row in reaches(HOLDERS[title]) if not row.names} & {"secrets", "configmaps"}
    assert wide <= WITHOUT_NAMES.get(title, set())
