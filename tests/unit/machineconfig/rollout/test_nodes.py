"""The predicates of a node, its pool, its taint, and the words of the drain handshake."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.rollout.nodes import (
    Counts,
    Goal,
    count,
    counted,
    drain_pending,
    drain_request,
    facts,
    selector_labels,
    taint_change,
    unlabelled_pool,
)
from fastness.pools.membership import SeveralPools, membership, selects_all
from tests.unit.machineconfig.build import node, pool

POOLS = [pool(name) for name in ("master", "worker", "infra", "storage", "arbiter")]
NEW, OLD = Goal("rendered-worker-new"), "rendered-worker-old"


@pytest.mark.parametrize(
    ("roles", "pools", "alert"),
    [
        ((), (), False),
        (("master", "worker"), ("master",), False),
        (("worker", "infra"), ("infra", "worker"), False),
        (("master", "infra"), ("master",), True),
        (("worker",), ("worker",), False),
        (("infra",), ("infra",), False),
        (("arbiter",), ("arbiter",), False),
    ],
)
def test_the_pool_of_a_node(roles: tuple[str, ...], pools: tuple[str, ...], alert: bool) -> None:
    """Appendix A.7 of the behaviour."""
    placement = membership(node("n", *roles), POOLS)
    assert (placement.pools, placement.alert) == (pools, alert)
    assert placement.primary == (pools[0] if pools else "")


def test_two_custom_pools_claim_a_node_and_neither_gets_it() -> None:
    with pytest.raises(SeveralPools, match="2 custom pools: infra, storage") as caught:
        membership(node("n", "infra", "storage"), POOLS)
    assert caught.value.pools == ("infra", "storage")
    assert caught.value.hint


def test_a_windows_node_is_in_no_pool() -> None:
    windows = node("n", "worker")
    windows["metadata"]["labels"][names.OS_LABEL] = "windows"
    assert membership(windows, POOLS).pools == ()


@pytest.mark.parametrize(
    "selector", [{}, {"matchLabels": {}}, None, {"matchExpressions": [{"key": "a", "operator": "Is"}]}]
)
def test_a_pool_whose_selector_matches_all_or_nothing_gets_no_node(selector: Any) -> None:
    assert membership(node("n", "worker"), [pool("odd", nodeSelector=selector)]).pools == ()
    assert selects_all(pool("odd", nodeSelector=selector)) == (selector in ({}, {"matchLabels": {}}))


def test_missing_conditions_are_fine_and_bad_ones_are_not() -> None:
    bare = node("n")
    bare["status"] = {}
    assert facts(bare).ready
    assert not facts(node("n", ready=False)).ready
    assert not facts(node("n", unschedulable=True)).ready
    for kind in ("DiskPressure", "NetworkUnavailable"):
        sick = node("n")
        sick["status"]["conditions"].append({"type": kind, "status": "Unknown"})
        assert not facts(sick).ready


def test_done_needs_config_state_and_image() -> None:
    assert facts(node("n", current="a")).done
    assert not facts(node("n", current="a", desired="b")).done
    assert not facts(node("n", current="a", state="Working")).done
    assert not facts(node("n")).done
    assert facts(node("n", current="a", images=("i", "i"))).done
    assert not facts(node("n", current="a", images=("i", "j"))).done
    assert not facts(node("n", current="a", images=("i", None))).done
    assert not facts(node("n", current="a", images=(None, "i"))).done


@pytest.mark.parametrize("state", ["Degraded", "Unreconcilable"])
def test_a_failing_node_that_can_be_scheduled_is_available(state: str) -> None:
    failing = facts(node("n", current="a", desired="b", state=state))
    assert failing.failing
    assert not failing.unavailable
    assert facts(node("n", current="a", desired="b", state=state, unschedulable=True)).unavailable
    drifted = facts(node("n", current="a", state=state))
    assert not drifted.failing
    assert drifted.unavailable


def test_working_and_unready_nodes_are_unavailable() -> None:
    assert facts(node("n", current="a", desired="b", state="Working")).unavailable
    assert facts(node("n", current="a", ready=False)).unavailable
    assert not facts(node("n", current="a")).unavailable


def test_a_goal_with_an_image_is_reached_by_both() -> None:
    goal = Goal("c", "i")
    assert facts(node("n", current="c", images=("i", "i"))).updated(goal)
    assert not facts(node("n", current="c")).updated(goal)
    left_over = facts(node("n", current="c", images=("i", "i")))
    assert not left_over.targets(Goal("c")), "leaving image mode is a change"


def test_counts_add_and_subtract() -> None:
    nodes = [
        facts(node("a", current=NEW.config)),
        facts(node("b", current=NEW.config, ready=False)),
        facts(node("c", current=OLD, desired=NEW.config, state="Degraded")),
        facts(node("d", current=OLD)),
    ]
    total = count(nodes, NEW)
    assert total == Counts(total=4, updated=2, ready=1, unavailable=1, degraded=1)
    assert total.minus(counted(nodes[0], NEW)).plus(counted(nodes[0], NEW)) == total


def test_a_node_waits_with_a_taint_and_loses_it_when_told_to_go() -> None:
    waiting = node("n", current=OLD)
    waiting["spec"]["taints"] = [{"key": "mine", "effect": "NoSchedule"}]
    taints = taint_change(waiting, NEW)
    assert taints == [{"key": "mine", "effect": "NoSchedule"}, names.UPDATE_TAINT]
    waiting["spec"]["taints"] = taints
    assert taint_change(waiting, NEW) is None
    waiting["metadata"]["annotations"][names.DESIRED_CONFIG] = NEW.config
    assert taint_change(waiting, NEW) == [{"key": "mine", "effect": "NoSchedule"}]


def test_the_words_of_the_drain_handshake() -> None:
    """Appendix A.8 of the behaviour."""
    assert drain_request("rendered-worker-1") == "drain-rendered-worker-1"
    assert drain_request("rendered-worker-1", uncordon=True) == "uncordon-rendered-worker-1"
    assert names.drain_verb("drain-rendered-worker-1") == "drain"
    assert names.drain_verb("uncordon-rendered-worker-1") == "uncordon"
    draining = node("n")
    draining["metadata"]["annotations"][names.DESIRED_DRAIN] = "drain-x"
    assert drain_pending(draining) == "drain-x"
    draining["metadata"]["annotations"][names.LAST_APPLIED_DRAIN] = "drain-x"
    assert drain_pending(draining) == ""


@pytest.mark.parametrize(
    ("desired", "request_", "pending"),
    [("x", "drain-x", True), ("y", "drain-x", False), ("", "drain-x", True), ("y", "uncordon-x", True)],
)
def test_a_drain_for_a_withdrawn_config_is_no_request(desired: str, request_: str, pending: bool) -> None:
    draining = node("n")
    draining["metadata"]["annotations"] = {names.DESIRED_CONFIG: desired, names.DESIRED_DRAIN: request_}
    assert drain_pending(draining) == (request_ if pending else "")


def test_labels_that_put_a_node_into_a_pool() -> None:
    assert selector_labels(pool("infra")) == {"node-role.kubernetes.io/infra": ""}
    expressions = [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "Exists"}]
    assert selector_labels(pool("x", nodeSelector={"matchExpressions": expressions})) == {"a": "b", "c": ""}
    for unclear in ({"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "a", "operator": "DoesNotExist"}):
        assert selector_labels(pool("x", nodeSelector={"matchExpressions": [unclear]})) is None


@pytest.mark.parametrize(
    ("roles", "claims", "machine", "expected"),
    [
        ([], "rendered-worker-" + 32 * "a", "", "worker"),
        ([], "rendered-infra-" + 32 * "a", "", "infra"),
        ([], "rendered-master-" + 32 * "a", "", ""),
        ([], "rendered-master-" + 32 * "a", "worker", "worker"),
        ([], "", "master", "master"),
        (["infra"], "rendered-worker-" + 32 * "a", "", ""),
        ([], "", "", ""),
    ],
    ids=[
        "worker",
        "custom",
        "a claim to the control plane",
        "its Machine says otherwise",
        "by its Machine",
        "has one",
        "nothing",
    ],
)
def test_the_pool_that_a_node_without_labels_belongs_to(
    roles: list[str], claims: str, machine: str, expected: str
) -> None:
    bare = node("n", *roles)
    bare["metadata"]["annotations"][names.FIRST_PIVOT_CONFIG] = claims
    assert unlabelled_pool(bare, machine) == expected
    bare["metadata"]["annotations"][names.CUSTOM_POOL_LABELS_APPLIED] = ""
    assert unlabelled_pool(bare, machine) == "", "once"
