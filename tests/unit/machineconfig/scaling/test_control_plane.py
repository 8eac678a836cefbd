"""A ControlPlaneMachineSet: one index at a time, a replacement before the old one goes, and words where it does not act."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.objects import condition
from fastness.machineconfig.scaling.control_plane import (
    MACHINE_TYPE,
    ControlPlanePlan,
    new_machine,
    refused,
    template_of,
    wanted_shapes,
)
from fastness.machineconfig.scaling.control_plane import plan as control_plane_plan
from fastness.machineconfig.scaling.providers import METAL3

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LABELS = {"role": "master"}


def a_set(shape: str = "new", replicas: int = 3, strategy: str = "RollingUpdate", **template: Any) -> dict[str, Any]:
    value = {"kind": METAL3, "image": shape}
    part = {"metadata": {"labels": LABELS}, "spec": {"providerSpec": {"value": value}}, **template}
    return {
        "apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet",
        "metadata": {"name": "cluster", "namespace": "ns", "uid": "set"},
        "spec": {
            "state": "Active", "replicas": replicas, "strategy": {"type": strategy}, "selector": {"matchLabels": LABELS},
            "template": {"machineType": MACHINE_TYPE, MACHINE_TYPE: part},
        },
    }  # fmt: skip


def machine(name: str, shape: str = "new", *, node: bool = True, deleted: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": LABELS}
    meta |= {"deletionTimestamp": "2026-06-01T00:00:00Z"} if deleted else {}
    status = {"nodeRef": {"name": name}} if node else {}
    return {"metadata": meta, "spec": {"providerSpec": {"value": {"kind": METAL3, "image": shape}}}, "status": status}


def three(shape: str = "old") -> list[dict[str, Any]]:
    return [machine(f"master-{index}", shape) for index in range(3)]


def plan(machine_set: dict[str, Any], machines: list[dict[str, Any]], ready: Any, now: datetime) -> ControlPlanePlan:
    return control_plane_plan(machine_set, machines, ready, now, {})


def is_updated(machine_set: dict[str, Any], each: dict[str, Any]) -> bool:
    return wanted_shapes(machine_set, [each], {}).fits(each)


def all_ready(_name: str) -> bool:
    return True


def test_a_set_whose_machines_are_of_its_shape_does_nothing_and_is_available() -> None:
    decided = plan(a_set(), three("new"), all_ready, NOW)
    assert (decided.create, decided.delete) == (None, "")
    status = {"status": decided.status}
    assert (decided.status["replicas"], decided.status["updatedReplicas"], decided.status["unavailableReplicas"]) == (
        3,
        3,
        0,
    )
    assert [(condition(status, kind) or {})["status"] for kind in ("Available", "Progressing", "Degraded")] == [
        "True", "False", "False",
    ]  # fmt: skip


def test_one_index_is_replaced_and_its_old_machine_goes_when_the_new_one_is_a_node() -> None:
    machines = three()
    created = plan(a_set(), machines, all_ready, NOW).create
    assert created is not None
    assert created["metadata"]["name"].startswith("cluster-master-")
    assert created["metadata"]["name"].endswith("-0")
    assert is_updated(a_set(), created)
    assert created["metadata"]["ownerReferences"][0]["controller"]
    coming = {**machine(created["metadata"]["name"], node=False)}
    waiting = plan(a_set(), [*machines, coming], all_ready, NOW)
    assert (waiting.create, waiting.delete) == (None, "")
    assert (condition({"status": waiting.status}, "Progressing") or {})["message"] == "index 0 is replaced"
    there = machine(created["metadata"]["name"])
    assert plan(a_set(), [*machines, there], all_ready, NOW).delete == "master-0"
    unready = plan(a_set(), [*machines, there], lambda name: name != there["metadata"]["name"], NOW)
    assert (unready.create, unready.delete) == (None, "")


def test_no_second_index_begins_while_one_goes_or_a_node_is_away() -> None:
    leaving = [machine("master-0", "old", deleted=True), machine("x-0"), *three()[1:]]
    assert plan(a_set(), leaving, all_ready, NOW).create is None
    away = plan(a_set(), three(), lambda name: name != "master-2", NOW).create
    assert away is not None
    assert away["metadata"]["name"].endswith("-2"), "who is away goes first, and nobody beside it"
    assert plan(a_set(), three(), lambda name: name == "master-0", NOW).create is None


def test_on_delete_replaces_what_somebody_deletes_and_nothing_else() -> None:
    lazy = a_set(strategy="OnDelete")
    assert plan(lazy, three(), all_ready, NOW).create is None
    deleted = [machine("master-0", "old", deleted=True), *three()[1:]]
    created = plan(lazy, deleted, all_ready, NOW).create
    assert created is not None
    assert created["metadata"]["name"].endswith("-0")
    missing = plan(lazy, three()[1:], all_ready, NOW).create
    assert missing is not None
    assert missing["metadata"]["name"].endswith("-0")


def test_a_step_that_is_taken_twice_makes_each() -> None:
    first, second = (plan(a_set(), three(), all_ready, NOW).create for _ in range(2))
    assert first == second
    assert first is not None
    other = plan(a_set("newer"), three(), all_ready, NOW).create
    assert other is not None
    assert other["metadata"]["name"] != first["metadata"]["name"]


def test_a_control_plane_without_machines_gets_none_and_says_why() -> None:
    decided = plan(a_set(), [], all_ready, NOW)
    assert decided.create is None
    assert "was not made of Machines" in (condition({"status": decided.status}, "Degraded") or {})["message"]
    odd = plan(a_set(), [*three("new"), machine("alone")], all_ready, NOW)
    assert odd.create is None
    assert "alone end in no index" in (condition({"status": odd.status}, "Degraded") or {})["message"]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (a_set(replicas=4), "spec.replicas"),
        (a_set(strategy="Recreate"), "spec.strategy.type"),
        (a_set(failureDomains={"platform": "AWS", "aws": [{}]}), "failureDomains"),
        ({**a_set(), "metadata": {"name": "other"}}, "metadata.name"),
        ({**a_set(), "spec": {"replicas": 3, "template": {}}}, "spec.template.machineType"),
        ({"metadata": {"name": "cluster"}}, "spec.replicas"),
    ],
)
def test_a_set_that_cannot_be_followed_names_the_field(changed: dict[str, Any], field: str) -> None:
    assert field in str(refused(changed, {}))
    assert refused(a_set(), {}) is None
    assert template_of({"spec": {"template": {MACHINE_TYPE: "text"}}}) == {}


@given(st.sampled_from([3, 5]), st.lists(st.sampled_from(["node", "gone", "shape", "delete", "look"]), max_size=40))
def test_any_story_keeps_all_but_one_ready_and_ends_in_the_wanted_shape(size: int, story: list[str]) -> None:
    machines = {f"m-{index}": machine(f"m-{index}", "s0") for index in range(size)}
    shape = 0

    def look() -> bool:
        decided = plan(a_set(f"s{shape}", size), list(machines.values()), all_ready, NOW)
        if decided.create is not None:
            name = decided.create["metadata"]["name"]
            assert name not in machines
            machines[name] = machine(name, f"s{shape}", node=False)
        if decided.delete:
            machines[decided.delete]["metadata"]["deletionTimestamp"] = "now"
        return decided.create is not None or bool(decided.delete)

    def advance(what: str) -> None:
        coming = [each for each in machines.values() if not each["status"]]
        leaving = [each for each in machines.values() if "deletionTimestamp" in each["metadata"]]
        if what == "node" and coming:
            coming[0]["status"] = {"nodeRef": {"name": coming[0]["metadata"]["name"]}}
        elif what == "gone" and leaving:
            del machines[leaving[0]["metadata"]["name"]]

    for what in story:
        if what == "shape":
            shape += 1
        advance(what)
        look()
        indices = [
            name.rpartition("-")[2] for name, each in machines.items() if "deletionTimestamp" not in each["metadata"]
        ]
        assert len(indices) - len(set(indices)) <= 1, "never are two indices doubled at once"
        ready = {name.rpartition("-")[2] for name, each in machines.items() if each["status"]}
        assert len(ready) >= size - 1
    for _ in range(20 * size):
        advance("node")
        advance("gone")
        look()
    assert all(is_updated(a_set(f"s{shape}", size), each) and each["status"] for each in machines.values())
    assert len(machines) == size
    assert not look(), "a second look changes nothing"


def test_the_prefix_of_names_is_the_sets_or_the_clusters() -> None:
    named = a_set()
    named["spec"]["machineNamePrefix"] = "cp"
    assert new_machine(named, wanted_shapes(named, [], {}), 1, None)["metadata"]["name"].startswith("cp-")
