"""The feature-gate ConfigMap: every key, its spellings, and nonsense."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.mode import (
    DeploymentMode,
    FeatureGates,
    UpdateStrategy,
    change_refused,
    read_gates,
    resolve,
)

DEFAULTS = FeatureGates()


@pytest.mark.parametrize("config_map", [None, {}, {"data": None}, {"data": {}}, {"data": []}])
def test_without_gates_every_default_holds(config_map: Any) -> None:
    assert read_gates(config_map) == DEFAULTS
    assert read_gates(config_map).problems == ()


@pytest.mark.parametrize(
    ("text", "truth"),
    [(text, True) for text in ("1", "t", "T", "true", "TRUE", "True")]
    + [(text, False) for text in ("0", "f", "F", "false", "FALSE", "False")],
)
def test_truth_is_spelled_as_go_spells_it(text: str, truth: bool) -> None:
    assert read_gates({"data": {"confidential": text}}).confidential is truth
    assert read_gates({"data": {"layeredImageDeployment": text}}).layered_image is truth


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("confidential", "yes"), ("confidential", "tRUE"), ("confidential", ""), ("confidential", " true"),
        ("deploymentMode", "daemonset"), ("deploymentMode", "<deployment_mode>"), ("deploymentMode", ""),
        ("layeredImageDeployment", "on"), ("memoryOverheadMB", "-1"), ("memoryOverheadMB", "0"), ("memoryOverheadMB", "1.5"),
        ("memoryOverheadMB", "٣"), ("memoryOverheadMB", "9" * 30), ("caaUpdateStrategy", "Sometimes"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_and_costs_only_its_own_key(key: str, text: str) -> None:
    others = {"confidential": "true", "deploymentMode": "DaemonSet"}
    gates = read_gates({"data": {**others, key: text}})
    assert [problem.partition(":")[0] for problem in gates.problems] == [key]
    assert gates.confidential is (key != "confidential")
    assert (gates.deployment_mode is DeploymentMode.DAEMON_SET) is (key != "deploymentMode")


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    assert read_gates({"data": {"Confidental": "true"}}).problems == (
        "Confidental: unknown, did you mean confidential?",
    )
    assert read_gates({"data": {"zzz": "1"}}).problems == ("zzz: unknown",)


def test_all_keys_are_read() -> None:
    data = {
        "confidential": "true", "deploymentMode": "DaemonSetFallback", "layeredImageDeployment": "1",
        "memoryOverheadMB": "512", "caaUpdateStrategy": "OnDelete",
    }  # fmt: skip
    gates = FeatureGates(True, DeploymentMode.FALLBACK, True, 512, UpdateStrategy.ON_DELETE)
    assert read_gates({"data": data}) == gates


@given(st.dictionaries(st.text(max_size=12), st.one_of(st.none(), st.text(max_size=30), st.integers(), st.booleans())))
def test_no_content_stops_the_reading(data: dict[str, Any]) -> None:
    gates = read_gates({"data": data})
    assert len(gates.problems) <= len(data)


@pytest.mark.parametrize(
    ("gate", "served", "result"),
    [
        ("MachineConfig", True, "MachineConfig"), ("MachineConfig", False, None),
        ("DaemonSet", True, "DaemonSet"), ("DaemonSet", False, "DaemonSet"),
        ("DaemonSetFallback", True, "MachineConfig"), ("DaemonSetFallback", False, "DaemonSet"),
    ],
)  # fmt: skip
def test_the_mode_follows_from_what_is_asked_and_what_is_served(gate: str, served: bool, result: str | None) -> None:
    if result is None:
        with pytest.raises(Refused) as caught:
            resolve(DeploymentMode(gate), served)
        assert caught.value.message == "deployment mode is MachineConfig but it is not available"
    else:
        assert resolve(DeploymentMode(gate), served) == result


def test_another_mode_is_refused_while_the_first_one_is_in_use() -> None:
    used, other = DeploymentMode.MACHINE_CONFIG, DeploymentMode.DAEMON_SET
    assert "delete the KataConfig to change it" in str(change_refused(used, other, True))
    assert change_refused(used, DeploymentMode.FALLBACK, True) is None
    assert "delete the KataConfig" in str(change_refused(used, DeploymentMode.FALLBACK, False))
    assert change_refused(other, DeploymentMode.FALLBACK, False) is None
    assert change_refused(None, other, False) is None
    assert "goes on as DaemonSet" in str(change_refused(other, used, False))
