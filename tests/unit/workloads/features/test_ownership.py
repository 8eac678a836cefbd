"""What is written to a Node: only differences, only what is owned is removed, and twice is once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.patch import apply_merge_patch
from fastness.workloads.features.book import NodeOutcome
from fastness.workloads.features.ownership import LABELS, RESOURCES, TAINTS, changes
from fastness.workloads.features.rules import Taint

PREFIX = "feature.node.kubernetes.io/"


def _applied(node: dict[str, Any], outcome: NodeOutcome) -> dict[str, Any]:
    difference = changes(node, outcome)
    for patch in (difference.status, difference.node):
        node = apply_merge_patch(node, patch) if patch else node
    return node


_NAMES = st.sampled_from([f"{PREFIX}a", f"{PREFIX}b", "x.com/c"])
_TEXTS = st.dictionaries(_NAMES, st.sampled_from(["1", "2"]), max_size=3)
_TAINTS = st.lists(
    st.builds(
        Taint, st.sampled_from(["x.com/t", "x.com/u"]), st.sampled_from(["NoSchedule", "NoExecute"]), st.sampled_from(["", "v"]),
    ),
    max_size=2, unique_by=lambda taint: (taint.key, taint.effect),
)  # fmt: skip
_WANTED = st.builds(NodeOutcome, labels=_TEXTS, annotations=_TEXTS, resources=_TEXTS, taints=_TAINTS)
_FOREIGN = {"labels": {"mine": "1"}, "annotations": {"note": "x"}, "resourceVersion": "1"}


@given(st.lists(_WANTED, min_size=1, max_size=4))
def test_any_sequence_ends_with_the_last_and_leaves_what_is_not_ours(sequence: list[NodeOutcome]) -> None:
    foreign = {"key": "other", "effect": "NoSchedule"}
    node: dict[str, Any] = {"metadata": _FOREIGN, "spec": {"taints": [foreign]}, "status": {"capacity": {"cpu": "4"}}}
    for outcome in sequence:
        node = _applied(node, outcome)
        assert changes(node, outcome).node is None
        assert changes(node, outcome).status is None
    last = sequence[-1]
    assert node["metadata"]["labels"] == {"mine": "1", **last.labels}
    assert node["status"]["capacity"] == {"cpu": "4", **last.resources}
    taints = {(taint["key"], taint["effect"], taint.get("value", "")) for taint in node["spec"]["taints"]}
    assert taints == {("other", "NoSchedule", ""), *((taint.key, taint.effect, taint.value) for taint in last.taints)}
    cleaned = _applied(node, NodeOutcome())
    assert cleaned["metadata"]["labels"] == {"mine": "1"}
    assert cleaned["metadata"]["annotations"] == {"note": "x"}
    assert cleaned["spec"]["taints"] == [foreign]


def test_the_usual_prefix_is_left_out_of_the_notes() -> None:
    patch = changes({}, NodeOutcome(labels={f"{PREFIX}a": "1", "x.com/b": "1"}, resources={"x.com/r": "1"})).node
    assert patch is not None
    assert patch["metadata"]["annotations"] == {LABELS: "a,x.com/b", RESOURCES: "x.com/r"}


def test_the_same_amount_in_another_notation_is_not_written_again() -> None:
    node = {
        "metadata": {"annotations": {RESOURCES: "x.com/r"}},
        "status": {"capacity": {"x.com/r": "4k"}, "allocatable": {"x.com/r": "4k"}},
    }
    assert changes(node, NodeOutcome(resources={"x.com/r": "4000"})).status is None


def test_a_list_of_taints_is_only_replaced_in_the_version_that_was_seen() -> None:
    patch = changes(
        {"metadata": {"resourceVersion": "7"}}, NodeOutcome(taints=[Taint("x.com/t", "NoExecute", "v")])
    ).node
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["metadata"]["annotations"][TAINTS] == "x.com/t=v:NoExecute"
