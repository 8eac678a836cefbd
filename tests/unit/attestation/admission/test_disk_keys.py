"""Names of disk keys that somebody takes by hand, and Machines that have disks to lose."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.admission.acts import acts_of
from fastness.attestation.admission.disk_keys import (
    keys_are_not_let_go,
    lost_disks_are_told,
    no_binding_of_disks,
    no_secret_of_disks,
    pin_opens_what_is_asked,
)
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, REKEY
from fastness.kube.access.user import User
from fastness.kube.admission import Allowed, Denied
from fastness.kube.places import DISKS, EMBEDDED
from tests.unit.admission.writes import write

UID = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"
NOTHING: Any = None
PERSON = User("alice")


@pytest.mark.parametrize(
    ("resource", "refused"),
    [
        (f"machine/{UID}/disk-var", True), ("machine/*/disk-*", True), (f"default/{UID}/root", True),
        (f"default/{UID}/key", False), ("default/credentials/root", False), ("pool/worker/disk-var", False),
    ],
)  # fmt: skip
def test_no_binding_has_the_name_of_a_disk_key(resource: str, refused: bool) -> None:
    binding = {"metadata": {"name": "b"}, "spec": {"resource": resource, "subjects": {"pools": ["worker"]}}}
    request = write("CREATE", "resourcebindings.fastness.dev", binding, kind="ResourceBinding")
    assert isinstance(no_binding_of_disks(request, NOTHING), Denied) is refused


@pytest.mark.parametrize(
    ("name", "namespace", "refused"),
    [
        (UID, "fastness-system", True), (UID, "trustee-operator-system", True), (UID, "shop", False),
        ("credentials", "fastness-system", False), ("anything", DISKS, True),
    ],
)  # fmt: skip
def test_no_secret_has_the_name_of_a_disk_key(name: str, namespace: str, refused: bool) -> None:
    secret = {"metadata": {"name": name, "namespace": namespace}, "data": {"root": "AA=="}}
    request = write("CREATE", "secrets", secret, user=PERSON, namespace=namespace)
    assert isinstance(no_secret_of_disks(request, NOTHING), Denied) is refused


def machine(**more: Any) -> dict[str, Any]:
    meta = {"name": "m", "namespace": "fastness-system", "uid": UID, "finalizers": [HOLDS_KEYS], **more}
    return {"metadata": meta, "spec": {"id": UID}, "status": {"disks": [{"volume": "var", "state": "Open"}]}}


def test_a_person_does_not_let_go_of_a_machine_with_keys() -> None:
    request = write(
        "UPDATE",
        "machines.trusted-execution-clusters.io",
        machine(finalizers=[]),
        machine(),
        user=PERSON,
        namespace="fastness-system",
    )
    assert isinstance(keys_are_not_let_go(request, NOTHING), Denied)
    plane = User("system:fastness")
    request = write(
        "UPDATE",
        "machines.trusted-execution-clusters.io",
        machine(finalizers=[]),
        machine(),
        user=plane,
        namespace="fastness-system",
    )
    assert keys_are_not_let_go(request, NOTHING) is None


def test_deleting_a_machine_says_which_disks_are_lost() -> None:
    request = write(
        "DELETE", "machines.trusted-execution-clusters.io", None, machine(), user=PERSON, namespace="fastness-system"
    )
    answer = lost_disks_are_told(request, NOTHING)
    assert isinstance(answer, Allowed)
    assert "what is on var cannot be read again" in answer.warnings[0]
    bare = {**machine(), "status": {}}
    request = write(
        "DELETE", "machines.trusted-execution-clusters.io", None, bare, user=PERSON, namespace="fastness-system"
    )
    assert lost_disks_are_told(request, NOTHING) is None


def test_accepting_a_disk_and_asking_for_a_new_key_are_acts_of_a_person() -> None:
    accepted = machine()
    accepted["spec"] = {
        "id": UID,
        "disks": [{"volume": "var", "accepted": "2026-11-17T00:00:00Z", "reason": "restored"}],
    }
    request = write(
        "UPDATE",
        "machines.trusted-execution-clusters.io",
        accepted,
        machine(),
        user=PERSON,
        namespace="fastness-system",
    )
    assert [(act.what, dict(act.detail)) for act in acts_of(request, EMBEDDED)] == [
        ("act-accept-disk", {"var": "restored"})
    ]
    wished = machine(annotations={REKEY: "var"})
    request = write(
        "UPDATE", "machines.trusted-execution-clusters.io", wished, machine(), user=PERSON, namespace="fastness-system"
    )
    assert [(act.what, dict(act.detail)) for act in acts_of(request, EMBEDDED)] == [
        ("act-rekey-disk", {"volume": "var"})
    ]


def cluster(pin: str, disk: dict[str, str], *, first_use: bool = True) -> dict[str, Any]:
    pools = [
        {"name": "infra", "trustModel": "None"},
        {"name": "worker", "trustModel": "ConfidentialCluster", "disk": {"pin": pin, **disk}},
    ]
    return {"metadata": {"name": "cluster"}, "spec": {"pools": pools, "join": {"trustOnFirstUse": first_use}}}


def judged(new: Any, old: Any = None) -> Any:
    operation = "UPDATE" if old else "CREATE"
    request = write(operation, "confidentialclusters.fastness.dev", new, old, kind="ConfidentialCluster")
    return pin_opens_what_is_asked(request, NOTHING)


@pytest.mark.parametrize(
    ("disk", "field"),
    [
        ({}, "volume"), ({"volume": "var"}, "volume"), ({"volume": "none"}, "volume"),
        ({"volume": "root", "integrity": "hmac-sha256"}, "integrity"),
    ],
)  # fmt: skip
def test_the_pin_is_asked_for_nothing_but_a_root_without_integrity(disk: dict[str, str], field: str) -> None:
    denied = judged(cluster("Clevis", disk))
    assert isinstance(denied, Denied)
    assert [cause.field for cause in denied.causes] == [f"spec.pools[1].disk.{field}"]
    # One that was stored before anything acted on it does not stop other writes.
    assert judged(cluster("Clevis", disk), cluster("Clevis", disk)) is None
    assert judged(cluster("Agent", disk)) is None


def test_whoever_chooses_the_pin_reads_that_it_is_weaker_and_what_it_needs() -> None:
    allowed = judged(cluster("Clevis", {"volume": "root"}))
    assert isinstance(allowed, Allowed)
    assert "weaker than the agent" in allowed.warnings[0]
    needs = judged(cluster("Clevis", {"volume": "root"}, first_use=False))
    assert isinstance(needs, Allowed)
    assert "trustOnFirstUse" in needs.warnings[1]
    assert judged({"spec": {"pools": "x"}}) is None
