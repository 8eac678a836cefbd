"""Which changes of a Node or a Machine make the attestation loop look: an update writes both, and changes no standing."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fastness.attestation.loops.proof_age import _counting
from fastness.attestation.machine.proof_age import CORDONED, TAINT_KEY
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import NOTE, SENT
from fastness.kube.controllers.reads import Changes

NODE: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u", "labels": {"a": "b"}, "annotations": {NOTE: "Affirmed"}}, "spec": {},
}  # fmt: skip
MACHINE: dict[str, Any] = {
    "metadata": {"name": "m", "uid": "u"}, "spec": {"approval": "Approved"},
    "status": {"desiredConfig": "old", "currentConfig": "old", "attestedUntil": "2026-01-01T00:00:00Z"},
}  # fmt: skip


def updating(node: dict[str, Any]) -> dict[str, Any]:
    """The node in the middle of an update."""
    busy = deepcopy(node)
    busy["metadata"]["annotations"] |= {names.DESIRED_DRAIN: "drain-x", names.DESIRED_CONFIG: "x"}
    busy["spec"]["unschedulable"] = True
    busy["spec"]["taints"] = [
        *busy["spec"].get("taints", ()),
        {"key": "UpdateInProgress", "effect": "PreferNoSchedule"},
    ]
    return busy


def test_an_update_of_a_node_in_service_is_no_reason_to_look() -> None:
    assert _counting(updating(NODE)) == _counting(NODE)


def test_an_update_of_a_node_that_was_taken_out_of_service_is() -> None:
    tainted, cordoned = deepcopy(NODE), deepcopy(NODE)
    tainted["spec"]["taints"] = [{"key": TAINT_KEY, "effect": "NoSchedule"}]
    cordoned["metadata"]["annotations"][CORDONED] = "standing"
    for node in (tainted, cordoned):
        assert _counting(node) != _counting(NODE)
        assert _counting(updating(node)) != _counting(node)


def test_where_a_machine_is_sent_says_nothing_of_its_standing_and_all_else_does() -> None:
    sent, older, barred = deepcopy(MACHINE), deepcopy(MACHINE), deepcopy(MACHINE)
    sent["status"]["desiredConfig"] = "new"
    older["status"]["attestedUntil"] = "2025-01-01T00:00:00Z"
    barred["spec"]["approval"] = "Quarantined"
    looks = [Changes().concern(None, MACHINE, changed, SENT) for changed in (sent, older, barred)]
    assert looks == [False, True, True]
