"""What a machine set does next follows from the set and its Machines alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.scaling.sets import (
    BURST,
    MOST,
    NodeState,
    Refused,
    SetPlan,
    acts,
    new_machine,
    owner_reference,
    plan,
)

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
LABELS = {"set": "worker-a"}


def machine_set(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": "worker-a", "namespace": "openshift-machine-api", "uid": "set-1", "generation": 3},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS, "annotations": {"a": "b"}}, "spec": {"providerSpec": {}}},
            **spec,
        },
    }


def machine(name: str, *, owner: str = "set-1", node: str = "", created: int = 0, **meta: Any) -> dict[str, Any]:
    owners = [{"kind": "MachineSet", "uid": owner, "controller": True}] if owner else []
    stamp = (NOW + timedelta(seconds=created)).isoformat()
    return {
        "metadata": {"name": name, "labels": LABELS, "ownerReferences": owners, "creationTimestamp": stamp, **meta},
        "status": {"nodeRef": {"name": node}} if node else {},
    }


def decided(spec: dict[str, Any], *machines: dict[str, Any], nodes: dict[str, NodeState] | None = None) -> SetPlan:
    result = plan(machine_set(**spec), machines, (nodes or {}).get, NOW)
    assert isinstance(result, SetPlan), result
    return result


def test_missing_machines_are_made_a_few_at_a_time() -> None:
    assert decided({}).create == 2
    assert decided({"replicas": 50}).create == BURST
    assert decided({}, machine("a"), machine("b")).create == 0


def test_machines_that_go_already_are_missing() -> None:
    leaving = machine("b", deletionTimestamp=NOW.isoformat())
    assert decided({}, machine("a"), leaving).create == 1


def test_machines_of_another_set_are_not_counted() -> None:
    assert decided({}, machine("a", owner="set-2"), machine("b", owner="set-2")).create == 2


def test_machines_that_nobody_controls_are_adopted() -> None:
    result = decided({}, machine("a", owner=""), machine("b", owner=""))
    assert (result.adopt, result.create) == (("a", "b"), 0)


@pytest.mark.parametrize(
    ("policy", "goes"), [("", "a"), ("Random", "a"), ("Newest", "c"), ("Oldest", "a")]
)  # all have nodes, so the policy decides
def test_who_goes_first(policy: str, goes: str) -> None:
    machines = [machine(name, node=name, created=age) for age, name in enumerate("abc")]
    assert decided({"deletePolicy": policy}, *machines).delete == (goes,)


def test_a_marked_machine_goes_before_one_that_failed_and_that_before_a_node() -> None:
    marked = machine("z", node="z", annotations={"machine.openshift.io/delete-machine": ""})
    never = machine("y")
    node = machine("a", node="a")
    assert decided({"replicas": 2}, marked, never, node).delete == ("z",)
    assert decided({"replicas": 1}, marked, never, node).delete == ("z", "y")


def test_what_a_set_reports() -> None:
    nodes = {"a": NodeState(True, NOW - timedelta(seconds=5)), "b": NodeState(True, NOW - timedelta(seconds=60))}
    machines = (machine("a", node="a"), machine("b", node="b"), machine("c"))
    status = decided({"replicas": 3, "minReadySeconds": 30}, *machines, nodes=nodes).status
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 3,
        "labelSelector": "set=worker-a",
    }


@pytest.mark.parametrize(
    ("spec", "field", "way"),
    [
        ({"replicas": -1}, "spec.replicas", "whole number"),
        ({"replicas": "5"}, "spec.replicas", "whole number"),
        ({"replicas": MOST + 1}, "spec.replicas", "several sets"),
        ({"deletePolicy": "Biggest"}, "spec.deletePolicy", "Random, Newest, Oldest"),
        ({"selector": {"matchLabels": {"set": "other"}}}, "spec.selector", "same label"),
        ({"selector": {}}, "spec.selector", "same label"),
        ({"selector": {"matchExpressions": [{"key": "set", "operator": "Near"}]}}, "spec.selector", "same label"),
    ],
)
def test_a_set_that_cannot_be_kept_is_refused_by_field(spec: dict[str, Any], field: str, way: str) -> None:
    refused = plan(machine_set(**spec), (), lambda _name: None, NOW)
    assert isinstance(refused, Refused)
    assert refused.field == field
    assert way in str(refused)


def test_a_set_of_another_authority_is_left_alone() -> None:
    assert acts(machine_set())
    assert acts(machine_set(authoritativeAPI="MachineAPI"))
    assert not acts(machine_set(authoritativeAPI="ClusterAPI"))
    assert not acts({**machine_set(), "metadata": {"deletionTimestamp": NOW.isoformat()}})


def test_a_new_machine_is_the_template_and_belongs_to_its_set() -> None:
    made = new_machine(machine_set())
    assert made["metadata"]["generateName"] == "worker-a-"
    assert made["metadata"]["labels"] == LABELS
    assert made["metadata"]["annotations"] == {"a": "b"}
    assert made["metadata"]["finalizers"] == ["machine.machine.openshift.io"]
    assert made["metadata"]["ownerReferences"] == [owner_reference(machine_set())]
    assert made["spec"] == {"providerSpec": {}}


@given(st.integers(0, 30), st.integers(0, 30))
def test_carrying_out_plans_ends_at_the_number_that_was_asked_for(replicas: int, present: int) -> None:
    names = [f"m{number}" for number in range(present)]
    for _ in range(40):
        result = decided({"replicas": replicas}, *(machine(name) for name in names))
        if not result.create and not result.delete:
            break
        assert not (result.create and result.delete)
        names = [name for name in names if name not in result.delete]
        names += [f"n{len(names)}-{number}" for number in range(result.create)]
    assert len(names) == replicas
