"""What a Machine of Cluster API boots with, and what is waited for before."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.formats import json
from fastness.machineconfig.scaling.bootstrap import (
    Waits,
    data_secret,
    is_created,
    is_paused,
    owner,
    pointer_for,
    secret_name,
    status,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
POINTER = json.encode(
    {"ignition": {"version": "3.2.0", "config": {"merge": [{"source": "https://doors.example/config/worker"}]}}}
)
OWNER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "u"}
CONFIG: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "ns", "uid": "c-uid", "ownerReferences": [OWNER]}, "spec": {"pool": "worker"},
}  # fmt: skip
MACHINE = {"metadata": {"name": "m"}, "spec": {"clusterName": "one"}}
CLUSTER = {"metadata": {"name": "one"}, "status": {"initialization": {"infrastructureProvisioned": True}}}


def user_data(content: bytes = POINTER) -> dict[str, Any]:
    return {"data": {"userData": base64.b64encode(content).decode()}}


def test_the_pointer_of_the_pool_is_handed_on_and_nothing_else() -> None:
    assert pointer_for(CONFIG, MACHINE, CLUSTER, user_data()) == POINTER
    secret = data_secret(CONFIG, "one", POINTER)
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "one"}
    assert list(secret["data"]) == ["value"]
    assert base64.b64decode(secret["data"]["value"]) == POINTER
    (reference,) = secret["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("FastnessConfig", "c-uid", True)


@pytest.mark.parametrize(
    ("machine", "cluster", "data", "reason"),
    [
        (None, CLUSTER, user_data(), "WaitingForMachine"),
        (MACHINE, None, user_data(), "WaitingForCluster"),
        (MACHINE, {"metadata": {"name": "one"}}, user_data(), "WaitingForInfrastructure"),
        (MACHINE, CLUSTER, None, "WaitingForUserData"),
        (MACHINE, CLUSTER, {"data": {"userData": "?"}}, "WaitingForUserData"),
        (MACHINE, CLUSTER, user_data(b"{"), "WaitingForUserData"),
        (MACHINE, CLUSTER, user_data(json.encode({"ignition": {}, "storage": {"files": []}})), "NotAPointer"),
    ],
)
def test_what_is_not_there_yet_is_waited_for_by_name(machine: Any, cluster: Any, data: Any, reason: str) -> None:
    outcome = pointer_for(CONFIG, machine, cluster, data)
    assert isinstance(outcome, Waits)
    assert outcome.reason == reason
    reported = status(CONFIG, outcome, NOW)
    assert "dataSecretName" not in reported
    assert reported["conditions"][0]["message"] == outcome.message


def test_what_was_told_once_stays_told_and_the_name_never_changes() -> None:
    told = status(CONFIG, None, NOW)
    assert told["dataSecretName"] == "c-bootstrap"
    assert told["initialization"] == {"dataSecretCreated": True}
    later = {**CONFIG, "status": {**told, "dataSecretName": "named-before"}}
    assert secret_name(later) == "named-before"
    waiting = status(later, Waits("WaitingForUserData", "gone"), NOW)
    assert (waiting["dataSecretName"], waiting["initialization"]) == ("named-before", {"dataSecretCreated": True})
    assert waiting["conditions"][0]["status"] == "False"


def test_only_a_machine_of_cluster_api_owns_a_config() -> None:
    assert owner(CONFIG) == "m"
    for other in ({"kind": "MachinePool"}, {"apiVersion": "machine.openshift.io/v1beta1"}):
        assert owner({"metadata": {"ownerReferences": [{**OWNER, **other}]}}) == ""
    assert owner({"metadata": {}}) == ""


def test_paused_and_created_are_read_as_cluster_api_writes_them() -> None:
    assert is_paused({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}, None)
    assert is_paused(CONFIG, {"spec": {"paused": True}})
    assert not is_paused(CONFIG, CLUSTER)
    assert is_created({"status": {"initialization": {"infrastructureProvisioned": True}}})
    assert not is_created(MACHINE)
