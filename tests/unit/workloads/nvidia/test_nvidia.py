"""GPUs for confidential guests: ClusterPolicy, labels, and the mode of a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.selectors import EVERYTHING
from fastness.kinds.kata.names import Tee
from fastness.workloads.kata.classes import plan_classes
from fastness.workloads.kata.eligibility import NodeRequirements
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.nvidia.ccmode import READY, REQUESTED, STATE, STEPS, CcState, follows, mode_of
from fastness.workloads.nvidia.labels import CONFIDENTIAL_CLASS, NEEDED, ORDINARY_CLASS, able, missing
from fastness.workloads.nvidia.policy import REQUIRED_ENV, REQUIRED_FIELDS, check, cluster_policy

Object = dict[str, Any]


def test_our_own_policy_has_nothing_wrong_with_it() -> None:
    assert check(cluster_policy()) == []


@pytest.mark.parametrize("field", [field for field, _, _ in REQUIRED_FIELDS])
def test_each_wrong_field_is_named_with_what_to_set_and_why(field: str) -> None:
    policy = cluster_policy()
    section, _, name = field.partition(".")
    right = policy["spec"][section][name]
    policy["spec"][section][name] = (not right) if isinstance(right, bool) else "other"
    (wrong,) = check(policy)
    assert wrong.field == field
    written = str(right).lower() if isinstance(right, bool) else f'"{right}"'
    assert f"spec.{field} is " in wrong.sentence
    assert f"set it to {written}, because {wrong.reason}" in wrong.sentence
    del policy["spec"][section][name]
    assert [other.present for other in check(policy)] == ["not set"]


@pytest.mark.parametrize(("field", "name"), [(field, name) for field, name, _, _ in REQUIRED_ENV])
def test_environment_is_judged_by_its_name(field: str, name: str) -> None:
    policy = cluster_policy()
    section, _, key = field.partition(".")
    policy["spec"][section][key] = [entry for entry in policy["spec"][section][key] if entry["name"] != name]
    assert [wrong.field for wrong in check(policy)] == [f"{field}[{name}]"]


def test_truth_in_quotes_is_not_truth() -> None:
    policy = cluster_policy()
    policy["spec"]["ccManager"]["enabled"] = "true"
    policy["spec"]["dcgm"]["enabled"] = 0
    assert {wrong.field for wrong in check(policy)} == {"ccManager.enabled", "dcgm.enabled"}


def test_fields_that_are_nobodys_business_may_be_anything() -> None:
    policy = cluster_policy()
    policy["spec"]["mig"] = {"strategy": "mixed"}
    policy["spec"]["something"] = 5
    assert check(policy) == []


KEYS = st.sampled_from(["spec", "ccManager", "enabled", "vfioManager", "env", "name"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(ANYTHING)
def test_checking_any_object_ends_with_findings(policy: Any) -> None:
    assert len(check({"spec": policy})) >= len(REQUIRED_FIELDS) + len(REQUIRED_ENV) - 2


def node(**labels: str) -> Object:
    return {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "true", **labels}}}


def mode(
    state: str | None, requested: str | None = None, ready: str | None = None, users: tuple[str, ...] = ()
) -> CcState:
    labels = {STATE: state, REQUESTED: requested, READY: ready}
    return mode_of(node(**{name: value for name, value in labels.items() if value is not None}), users).state


@pytest.mark.parametrize(
    ("state", "requested", "ready", "users", "expected"),
    [
        (None, None, None, (), CcState.UNMANAGED),
        (None, "on", None, (), CcState.UNMANAGED),
        ("on", "on", "true", (), CcState.ON),
        ("on", None, "true", (), CcState.ON),
        ("on", "on", "false", (), CcState.CHANGING),
        ("on", "on", None, (), CcState.CHANGING),
        ("off", "off", "false", (), CcState.OFF),
        ("off", None, None, (), CcState.OFF),
        ("off", None, "true", (), CcState.CHANGING),
        ("off", "on", "false", (), CcState.CHANGING),
        ("off", "on", "false", ("a/p",), CcState.BLOCKED),
        ("on", "off", "true", ("a/p",), CcState.BLOCKED),
        ("on", "on", "true", ("a/p",), CcState.ON),
        ("devtools", None, "true", (), CcState.DEVTOOLS),
        ("failed", "on", "false", (), CcState.FAILED),
        ("failed", "on", "false", ("a/p",), CcState.FAILED),
        ("half", None, None, (), CcState.UNKNOWN),
        ("on", "onn", "true", (), CcState.UNKNOWN),
    ],
)
def test_labels_say_where_the_gpus_are(
    state: str | None, requested: str | None, ready: str | None, users: tuple[str, ...], expected: CcState
) -> None:
    assert mode(state, requested, ready, users) is expected


def test_only_settled_modes_serve_anybody_and_bad_states_say_what_to_do() -> None:
    for state in CcState:
        labels = {"On": ("on", "true"), "Off": ("off", "false")}.get(state.value)
        if labels:
            gpu_mode = mode_of(node(**{STATE: labels[0], READY: labels[1]}))
            assert (gpu_mode.confidential, gpu_mode.ordinary) == (state is CcState.ON, state is CcState.OFF)
    for bad in (mode_of(node(**{STATE: "failed"})), mode_of(node()), mode_of(node(**{STATE: "half"}))):
        assert not bad.confidential
        assert not bad.ordinary
        assert bad.hint
    assert mode_of({"metadata": {"name": "n"}}).state is CcState.NO_GPU
    blocked = mode_of(node(**{STATE: "off", REQUESTED: "on"}), ("a/1", "a/2", "a/3", "a/4"))
    assert blocked.reason == "a/1, a/2, a/3 and 1 more use a GPU that should go from off to on"


def test_modes_do_not_jump() -> None:
    assert set(STEPS) == set(CcState)
    assert not follows(CcState.OFF, CcState.ON), "a GPU is reset on the way"
    assert not follows(CcState.FAILED, CcState.ON)
    assert follows(CcState.OFF, CcState.CHANGING)
    assert follows(CcState.CHANGING, CcState.ON)
    assert all(follows(state, state) for state in CcState)


def complete() -> Object:
    labels = {needed.label: needed.value for needed in NEEDED[CONFIDENTIAL_CLASS]}
    return {"metadata": {"name": "n", "labels": {**labels, Tee.SNP.label: "true"}}}


def test_a_node_with_all_labels_is_able_and_each_missing_one_is_told() -> None:
    assert able([complete()], CONFIDENTIAL_CLASS) == [complete()]
    for needed in NEEDED[CONFIDENTIAL_CLASS]:
        lacking = complete()
        del lacking["metadata"]["labels"][needed.label]
        (sentence,) = missing(lacking, CONFIDENTIAL_CLASS)
        assert sentence.startswith(f"{needed.label}={needed.value} (it is not set): {needed.reason}; set by ")
    bare = complete()
    del bare["metadata"]["labels"][Tee.SNP.label]
    assert "the guest itself must be confidential" in missing(bare, CONFIDENTIAL_CLASS)[0]
    assert [sentence.split("=")[0] for sentence in missing(complete(), ORDINARY_CLASS)] == [STATE, READY]


def test_classes_select_by_the_same_labels() -> None:
    nodes = [
        {
            "metadata": {
                "name": "n",
                "labels": {**complete()["metadata"]["labels"], "node-role.kubernetes.io/worker": ""},
            }
        }
    ]
    requirements = NodeRequirements(EVERYTHING, check=False, converged=False)
    specs = {spec.name: spec for spec in plan_classes(FeatureGates(confidential=True), requirements, nodes).classes}
    for name, needed in NEEDED.items():
        assert dict(specs[name].labels) == {label.label: label.value for label in needed}, name


@pytest.mark.parametrize(
    ("requested", "made"), [("on", True), (None, True), ("off", False), ("devtools", False), ("nonsense", False)]
)
def test_no_class_counts_a_node_whose_gpus_are_on_their_way_to_another_mode(requested: str | None, made: bool) -> None:
    labels = {**complete()["metadata"]["labels"], "node-role.kubernetes.io/worker": ""}
    nodes = [{"metadata": {"name": "n", "labels": {**labels, **({REQUESTED: requested} if requested else {})}}}]
    plan = plan_classes(
        FeatureGates(confidential=True), NodeRequirements(EVERYTHING, check=True, converged=False), nodes
    )
    assert (CONFIDENTIAL_CLASS in [spec.name for spec in plan.classes]) is made
    if requested == "off":
        assert "the mode goes from on to off" in plan.left_out[CONFIDENTIAL_CLASS]
