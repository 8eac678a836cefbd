"""An operator that was removed leaves its KataConfig alone; where none was ever seen, the KataConfig is acted on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastness.kinds.kata import names
from fastness.workloads.kata.inputs import Operator, Remember, read_operator
from fastness.workloads.kata.mode import DeploymentMode, FeatureGates
from tests.unit.workloads.kata.pretend_cluster import PretendCluster

NEW, OLD = f"{names.OPERATOR}.v1.12.0", f"{names.OPERATOR}.v1.11.1"
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
THERE, REMOVED = Operator(installed=NEW, recorded=NEW), Operator(recorded=NEW)


def version(name: str, **meta: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": names.NAMESPACE, **meta}}


def subscription(package: str = names.OPERATOR, **meta: str) -> dict[str, Any]:
    return {**version("mine", **meta), "spec": {"name": package}}


def home(recorded: str) -> dict[str, Any]:
    return {"metadata": {"name": "fastness-system", "annotations": {names.OPERATOR_SEEN: recorded}}}


@pytest.mark.parametrize(
    ("versions", "subscriptions", "recorded", "expected", "against"),
    [
        ([], [], {}, Operator(), None),
        ([version(NEW)], [subscription()], {}, Operator(NEW, "mine"), None),
        ([version(NEW)], [], home(NEW), THERE, None),
        ([], [], home(NEW), REMOVED, (False, "OperatorMissing")),
        ([], [subscription()], home(NEW), Operator("", "mine", NEW), (False, "OperatorMissing")),
        ([version(NEW, **GONE)], [], home(NEW), REMOVED, (False, "OperatorMissing")),
        ([], [subscription()], {}, Operator("", "mine"), (True, "WaitingForOperator")),
        ([], [subscription(**GONE)], {}, Operator(), None),
        ([version("nfd.4.21.0")], [subscription("nfd")], {}, Operator(), None),
        ([version("nfd.4.21.0")], [{**version("x"), "spec": None}], home(NEW), REMOVED, (False, "OperatorMissing")),
    ],
)
def test_what_the_objects_of_an_installation_say(
    versions: list[Any], subscriptions: list[Any], recorded: Any, expected: Operator, against: tuple[bool, str] | None
) -> None:
    operator = read_operator(versions, subscriptions, recorded)
    assert operator == expected
    assert (operator.against and operator.against[:2]) == against


def test_the_newest_version_counts_and_each_is_written_down_once() -> None:
    both = [
        version(NEW, creationTimestamp="2026-01-02T00:00:00Z"),
        version(OLD, creationTimestamp="2026-01-01T00:00:00Z"),
    ]
    assert read_operator(both, [], home(OLD)).installed == NEW
    assert read_operator(both, [], home(OLD)).unrecorded
    assert not read_operator(both, [], home(NEW)).unrecorded


@pytest.mark.parametrize("mode", [DeploymentMode.MACHINE_CONFIG, DeploymentMode.DAEMON_SET])
@pytest.mark.parametrize("operator", [REMOVED, Operator(subscription="mine")])
def test_nothing_begins_without_the_operator_and_it_goes_on_when_it_is_back(
    mode: DeploymentMode, operator: Operator
) -> None:
    here = PretendCluster(FeatureGates(deployment_mode=mode), 2)
    here.operator = operator
    before = copy.deepcopy(here.nodes)
    assert here.look().actions == ()
    here.settle()
    assert operator.against is not None
    assert here.in_progress == (str(operator.against.status), operator.against.reason)
    assert (here.nodes, here.objects) == (before, {})
    here.operator = THERE
    here.settle()
    assert here.in_progress == ("False", "")
    assert "kata" in here.classes


@pytest.mark.parametrize("mode", [DeploymentMode.MACHINE_CONFIG, DeploymentMode.DAEMON_SET])
def test_what_is_installed_stays_as_it_is_while_the_operator_is_away(mode: DeploymentMode) -> None:
    here = PretendCluster(FeatureGates(deployment_mode=mode), 2)
    here.operator = THERE
    here.settle()
    stored = copy.deepcopy(here.config or {})["status"]
    here.operator = REMOVED
    here.add("worker-2")
    before = copy.deepcopy((here.nodes, here.objects))
    here.settle()
    here.delete()
    here.settle()
    assert (here.nodes, here.objects) == before
    assert here.in_progress == ("False", "OperatorMissing")
    assert here.config is not None
    unchanged = {key: here.config["status"][key] for key in ("kataNodes", "runtimeClasses")}
    assert unchanged == {key: stored[key] for key in unchanged}
    here.operator = THERE
    here.settle()
    assert here.classes == []
    assert "kata" not in str(here.nodes)


def test_a_version_is_written_down_even_without_a_kataconfig() -> None:
    here = PretendCluster(FeatureGates(), 1)
    here.config, here.operator = None, Operator(installed=NEW)
    assert here.look().actions == (Remember(NEW),)
    assert here.operator == THERE
    assert here.look().actions == ()
