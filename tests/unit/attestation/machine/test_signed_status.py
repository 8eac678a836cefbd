"""What the signature over a Machine's status covers, and what is left of a status that nobody signed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastness.attestation.machine.chip import barring
from fastness.attestation.machine.proof_age import node_labels
from fastness.attestation.machine.signed_status import (
    Doubt,
    content,
    disbelieved,
    doubt_about,
    is_disbelieved,
    sign,
    signature_of,
    vouched_digest,
)
from fastness.attestation.verdict.machine_standing import State, machine_standing
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from tests.unit.attestation.verdict.test_machine_standing import INTERVAL, NOW

KEY = Ed25519Signer(SecretBytes(b"k" * 32))
OTHER = Ed25519Signer(SecretBytes(b"o" * 32))
WHEN = "2026-01-01T00:00:00Z"


def condition(kind: str, status: str = "True", reason: str = "Affirmed") -> JsonObject:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": WHEN}


STATUS: JsonObject = {
    "pool": "worker", "nodeName": "worker-1", "keyThumbprint": "sha256:" + "a" * 64, "tee": "snp", "endorsedBy": "Evidence",
    "chip": "snp:" + "c" * 128, "lastAttested": WHEN, "attestedUntil": "2099-01-01T00:00:00Z", "epoch": 3,
    "properties": {"tee": "snp", "endorsement": "Evidence"}, "conditions": [condition("Approved"), condition("Attested")],
}  # fmt: skip


def machine(
    status: JsonObject = STATUS, uid: str = "u-1", by: str = "broker", serial: int = 4, **spec: Any
) -> JsonObject:
    carried = sign(uid, status, by, serial, KEY).to_json()
    return {
        "metadata": {"name": "machine-1", "namespace": "fastness-system", "uid": uid},
        "spec": {"id": "x", "approval": "Approved", **spec}, "status": {**status, "signed": carried},
    }  # fmt: skip


def doubt(machine_object: JsonObject, key: Ed25519Signer = KEY) -> Doubt | None:
    signature = signature_of(machine_object)
    return Doubt.UNSIGNED if signature is None else doubt_about(machine_object, signature, key.verifier)


def test_a_signed_status_is_believed() -> None:
    assert doubt(machine()) is None


def test_the_signature_covers_every_field_that_a_status_can_have() -> None:
    fields = MACHINE.schema["properties"]["status"]["properties"]
    before = content("u-1", {}, "broker", 1)
    for name in fields:
        assert (content("u-1", {name: "x"}, "broker", 1) != before) is (name != "signed"), name


@pytest.mark.parametrize("name", [*STATUS, "overriddenUntil", "somethingNew"])
def test_a_status_that_was_changed_anywhere_is_not(name: str) -> None:
    changed = copy.deepcopy(machine())
    changed["status"][name] = "another"
    assert doubt(changed) is Doubt.WRONG
    changed["status"].pop(name)
    assert doubt(changed) is (Doubt.WRONG if name in STATUS else None)


def test_a_status_of_another_machine_or_place_in_the_order_or_part_is_not() -> None:
    copied = machine()
    copied["metadata"]["uid"] = "u-2"
    assert doubt(copied) is Doubt.WRONG
    for name, value in (("serial", 5), ("by", "controllers")):
        changed = machine()
        changed["status"]["signed"][name] = value
        assert doubt(changed) is Doubt.WRONG
    assert doubt(machine(), OTHER) is Doubt.WRONG
    signature = signature_of(machine())
    assert signature is not None
    assert doubt_about(machine(), signature, None) is Doubt.UNKNOWN_KEY


@pytest.mark.parametrize("carried", [None, "x", {}, {"by": "gate", "key": "k", "serial": 1, "signature": "AA=="},
                                     {"by": "broker", "key": "k", "serial": True, "signature": "AA=="},
                                     {"by": "broker", "key": "k", "serial": 1, "signature": "%"}])  # fmt: skip
def test_what_could_be_no_signature_is_none(carried: Any) -> None:
    unsigned = machine()
    unsigned["status"]["signed"] = carried
    assert doubt(unsigned) is Doubt.UNSIGNED


def test_enrolment_says_nothing_about_proofs() -> None:
    assert doubt(machine(by="enrolment")) is Doubt.NOT_ENTITLED
    plain = {name: value for name, value in STATUS.items() if name not in ("lastAttested", "conditions")}
    assert doubt(machine(plain, by="enrolment")) is None
    assert doubt(machine({**plain, "conditions": [condition("Attested")]}, by="enrolment")) is Doubt.NOT_ENTITLED
    assert doubt(machine({**plain, "overriddenUntil": WHEN}, by="enrolment")) is Doubt.NOT_ENTITLED


def test_a_machine_that_is_not_believed_never_attested_and_has_no_place() -> None:
    assert machine_standing(view(machine(), Machine), NOW, INTERVAL).state is State.PROVED
    read = disbelieved(machine(), Doubt.WRONG)
    machine_view = view(read, Machine)
    assert is_disbelieved(read)
    assert membership_of(machine_view) is Membership.PENDING
    assert machine_standing(machine_view, NOW, INTERVAL).state is State.WAITING
    assert (machine_view.status.key_thumbprint, machine_view.status.node_name, machine_view.status.pool) == ("", "", "")
    assert node_labels(machine_view) == {}


def test_a_machine_that_is_not_believed_still_bars_what_it_barred() -> None:
    quarantined = view(disbelieved(machine(approval="Quarantined"), Doubt.UNSIGNED), Machine)
    assert (barring(quarantined), quarantined.status.chip) == ("quarantined", STATUS["chip"])
    revoked = machine({**STATUS, "conditions": [condition("Revoked", reason="Distrusted")]})
    assert barring(view(disbelieved(revoked, Doubt.UNSIGNED), Machine)) == "revoked"


def test_a_person_vouches_for_all_of_a_status_but_what_we_tell_of_our_doubt() -> None:
    digest = vouched_digest(machine())
    displayed = machine()
    displayed["status"] |= {"standing": "Waiting", "standingReason": "StatusNotSigned"}
    displayed["status"]["conditions"] = [*STATUS["conditions"], condition("Believed", "False")]
    displayed["status"].pop("signed")
    assert vouched_digest(displayed) == digest
    assert vouched_digest(machine({**STATUS, "epoch": 0})) != digest
    assert vouched_digest(machine(uid="u-2")) != digest


@pytest.mark.parametrize(
    "status",
    [7, "text", [1], {"conditions": 3}, {"conditions": [4, None]}, {"signed": 5}, {"signed": {"by": [], "serial": 1}}],
)
def test_a_status_of_any_shape_is_doubted_and_breaks_nobody(status: object) -> None:
    machine = {"metadata": {"name": "m", "uid": "u"}, "status": status}
    assert signature_of(machine) is None
    assert is_disbelieved(disbelieved(machine, Doubt.UNSIGNED))
    assert vouched_digest(machine).startswith("sha256:")
