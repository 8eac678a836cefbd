"""Names that follow from a key, and what a Machine says about its place in the cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.machine.chip import standing_against
from fastness.attestation.machine.machine import (
    SUPERSEDED,
    Newcomer,
    approval_condition,
    attestation_key_object,
    machine_object,
    machine_status,
    of_same_tpm,
    predecessor_of,
    replaced_by,
    subject_of,
)
from fastness.crypto.errors import BadDigest
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.protocol.machine_names import endorsement_label, key_name, machine_name, machine_of_node, node_name

NOW = datetime(2026, 6, 1, tzinfo=UTC)
KEY, OTHER, EK = (f"sha256:{digit * 64}" for digit in "abc")
UID = "316809b1-ea29-448c-accb-78c5c6bf5206"
HEX = st.binary(min_size=32, max_size=32).map(lambda data: f"sha256:{data.hex()}")


def newcomer(**changes: Any) -> Newcomer:
    defaults: dict[str, Any] = {
        "thumbprint": KEY, "public": b"key", "tee": "tpm", "pool": "worker", "ticket": "t", "approved": True,
        "endorsement": EK, "root": OTHER,
    }  # fmt: skip
    return Newcomer(**{**defaults, **changes})


def stored(made: str = "2026-06-01T00:00:00Z", uid: str = UID, revoked: str = "", **changes: Any) -> JsonObject:
    """A Machine as the API gives it back."""
    approval = changes.pop("approval", None)
    who = newcomer(**changes)
    machine = machine_object(who, UID)
    if approval:
        machine["spec"]["approval"] = approval
    machine["metadata"] |= {"uid": uid, "creationTimestamp": made}
    machine["status"] = machine_status(who, machine["metadata"]["name"], NOW)
    if revoked:
        machine["status"]["conditions"].append({"type": "Revoked", "status": "True", "reason": revoked})
    return machine


def standing(machine: JsonObject) -> Membership:
    return membership_of(view(machine, Machine))


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True), HEX, HEX)
def test_node_names_are_host_names_and_differ_where_keys_do(pool: str, thumbprint: str, other: str) -> None:
    name = node_name(pool, KeyKind.AK, thumbprint)
    assert len(name) <= 63
    assert name.replace("-", "").isalnum()
    assert name == name.lower()
    if machine_name(KeyKind.AK, thumbprint) != machine_name(KeyKind.AK, other):
        assert name != node_name(pool, KeyKind.AK, other)


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True), HEX, HEX)
def test_no_name_of_a_guest_key_is_one_of_an_attestation_key(pool: str, ak: str, guest: str) -> None:
    node = node_name(pool, KeyKind.GUEST, guest)
    assert node != node_name(pool, KeyKind.AK, ak)
    assert machine_name(KeyKind.GUEST, guest) != machine_name(KeyKind.AK, ak)
    assert len(node) <= 63
    assert node.replace("-", "").isalnum()


@pytest.mark.parametrize("kind", KeyKind)
def test_the_name_of_a_node_leads_back_to_its_machine_and_no_other_name_does(kind: KeyKind) -> None:
    assert machine_of_node(node_name("worker", kind, KEY)) == machine_name(kind, KEY)
    for foreign in ("worker-1", f"worker-{'a' * 19}", f"worker-{'a' * 21}", f"worker-h{'a' * 20}", "a" * 20, ""):
        assert machine_of_node(foreign) == ""


def test_all_names_follow_from_the_key() -> None:
    assert (machine_name(KeyKind.AK, KEY), key_name(KEY), node_name("worker", KeyKind.AK, KEY)) == (
        f"machine-{'a' * 20}", f"ak-{'a' * 20}", f"worker-{'a' * 20}",
    )  # fmt: skip
    assert endorsement_label(EK) == "c" * 40


@pytest.mark.parametrize("text", ["", "a" * 64, "sha256:", "sha256:../../x", "sha1:" + "a" * 40, "sha256:" + "A" * 64])
def test_what_is_no_thumbprint_names_nobody(text: str) -> None:
    for name in (partial(machine_name, KeyKind.AK), key_name, endorsement_label):
        with pytest.raises(BadDigest):
            name(text)


def test_an_approval_counts_when_decision_and_record_agree() -> None:
    assert standing(stored()) is Membership.APPROVED
    assert standing(stored(approved=False)) is Membership.PENDING
    assert standing(stored(approved=False, approval="Approved")) is Membership.PENDING
    assert standing(stored(approval="Pending")) is Membership.PENDING
    unknown = stored()
    del unknown["spec"]["approval"]
    assert standing(unknown) is Membership.PENDING
    nameless = stored()
    nameless["status"]["keyThumbprint"] = ""
    assert standing(nameless) is Membership.PENDING


def test_a_quarantine_counts_whatever_the_status_says_and_a_revocation_whatever_the_spec_says() -> None:
    assert standing(stored(approval="Quarantined")) is Membership.QUARANTINED
    assert standing(stored(revoked="Distrusted")) is Membership.REVOKED
    assert standing(stored(approval="Quarantined", revoked=SUPERSEDED)) is Membership.REVOKED


def test_the_condition_follows_the_decision_and_rests_when_it_has() -> None:
    machine = stored(approved=False, approval="Approved")
    changed = approval_condition(machine, NOW)
    assert changed != machine["status"]["conditions"]
    machine["status"]["conditions"] = changed
    assert approval_condition(machine, NOW) == changed
    assert standing(machine) is Membership.APPROVED
    assert approval_condition(stored(), NOW) == stored()["status"]["conditions"]


def test_the_subject_of_a_machine_is_its_key_and_its_uid() -> None:
    subject = subject_of(view(stored(simulated=True), Machine))
    assert (subject.machine, subject.thumbprint, subject.pool, subject.simulated) == (UID, KEY, "worker", True)


def test_the_key_belongs_to_the_machine_and_is_pem() -> None:
    key = attestation_key_object(newcomer(public=bytes(100)), stored())
    assert key["spec"]["uuid"] == UID
    assert key["metadata"]["ownerReferences"][0]["uid"] == UID
    lines = key["spec"]["publicKey"].splitlines()
    assert (lines[0], lines[-1]) == ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----")
    assert max(map(len, lines)) == 64


def test_a_machine_without_a_tpm_says_nothing_of_an_endorsement() -> None:
    machine = stored(tee="snp", endorsement="", root="")
    assert "endorsement" not in machine["status"]
    assert machine["status"]["conditions"][0]["reason"] == "KeyProved"


def test_the_newest_approved_machine_of_a_tpm_replaces_the_older_ones() -> None:
    first = stored("2026-01-01T00:00:00Z", "1", thumbprint="sha256:" + "1" * 64)
    second = stored("2026-01-02T00:00:00Z", "2", thumbprint="sha256:" + "2" * 64)
    waiting = stored("2026-01-03T00:00:00Z", "3", thumbprint="sha256:" + "3" * 64, approved=False)
    gone = stored("2025-01-01T00:00:00Z", "4", thumbprint="sha256:" + "4" * 64, revoked=SUPERSEDED)
    foreign = stored("2025-01-01T00:00:00Z", "5", thumbprint="sha256:" + "5" * 64, endorsement=OTHER)
    replacements = replaced_by([waiting, second, gone, foreign, first])
    assert [(old["metadata"]["uid"], new["metadata"]["uid"]) for old, new in replacements] == [("1", "2")]
    assert replaced_by([waiting, foreign]) == []


@pytest.mark.parametrize("names", ["123", "321", "213"])
def test_of_machines_that_enrolled_in_one_second_the_one_that_supersedes_is_newer(names: str) -> None:
    prints = [f"sha256:{digit * 64}" for digit in names]
    machines = [stored(uid="a", thumbprint=prints[0])]
    machines.append(stored(uid="b", thumbprint=prints[1], supersedes="a"))
    machines.append(stored(uid="c", thumbprint=prints[2], supersedes="b"))
    replacements = replaced_by(reversed(machines))
    assert [(old["metadata"]["uid"], new["metadata"]["uid"]) for old, new in replacements] == [("a", "c"), ("b", "c")]
    assert predecessor_of(of_same_tpm(newcomer(), machines)) == "c"


def test_two_machines_that_name_each_other_are_ordered_and_end_no_loop() -> None:
    pair = [stored(uid="a", thumbprint="sha256:" + "1" * 64, supersedes="b"), stored(uid="b", supersedes="a")]
    assert [(old["metadata"]["uid"], new["metadata"]["uid"]) for old, new in replaced_by(pair)] == [("a", "b")]


def test_a_tpm_in_quarantine_or_distrusted_bars_its_other_keys_and_a_replaced_one_does_not() -> None:
    def against(**changes: Any) -> str | None:
        text = standing_against(of_same_tpm(newcomer(), [stored(thumbprint=OTHER, **changes)]))
        return text.rpartition(" ")[2] if text is not None else None

    assert against() is None
    assert against(approval="Quarantined") == "quarantined"
    assert against(revoked="Distrusted") == "revoked"
    assert against(revoked=SUPERSEDED) is None
    assert against(approval="Quarantined", revoked=SUPERSEDED) == "quarantined"
    assert against(endorsement=OTHER, approval="Quarantined") is None
    assert of_same_tpm(newcomer(), [stored(approval="Quarantined")]) == []


def test_a_newcomer_replaces_the_newest_machine_of_its_tpm_that_still_counts() -> None:
    peers = [
        stored("2026-06-01T00:00:00Z", "old", thumbprint=OTHER),
        stored("2026-06-02T00:00:00Z", "new", thumbprint=EK),
        stored("2026-06-03T00:00:00Z", "gone", thumbprint=EK, revoked=SUPERSEDED),
    ]
    assert predecessor_of(of_same_tpm(newcomer(), peers)) == "new"
    assert predecessor_of(()) == ""
