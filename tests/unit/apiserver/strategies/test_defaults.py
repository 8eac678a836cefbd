"""Defaults of native kinds: what is filled in, what stays, and that nothing is changed in place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from fastness.apiserver.strategies import defaults, workloads
from fastness.apiserver.strategies.natives import NATIVE

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def filled(function: Callable[[dict[str, Any]], None], obj: dict[str, Any]) -> dict[str, Any]:
    """The object after its defaults; fails when a nested value of the original was changed."""
    given = dict(obj)
    before = copy.deepcopy(obj)
    function(given)
    assert obj == before
    return given


def test_string_data_is_encoded_over_data_and_never_kept() -> None:
    made = filled(defaults.secret, {"metadata": {}, "data": {"a": "YQ=="}, "stringData": {"a": "over", "b": "b"}})
    assert made == {"metadata": {}, "data": {"a": "b3Zlcg==", "b": "Yg=="}, "type": "Opaque"}


def test_a_stated_type_of_a_secret_stays() -> None:
    assert filled(defaults.secret, {"type": "kubernetes.io/tls"})["type"] == "kubernetes.io/tls"


def test_a_namespace_carries_its_name_even_when_a_client_says_otherwise() -> None:
    made = filled(defaults.namespace, {"metadata": {"name": "n", "labels": {defaults.NAME_LABEL: "x", "a": "b"}}})
    assert made["metadata"]["labels"] == {defaults.NAME_LABEL: "n", "a": "b"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("registry.example:5000/app", "Always"),
        ("registry.example:5000/app:1", "IfNotPresent"),
        ("app@sha256:" + "0" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_that_may_move_are_pulled_always(image: str, policy: str) -> None:
    made = filled(workloads.pod, {"spec": {"containers": [{"name": "c", "image": image}]}})
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_what_a_pod_states_is_kept() -> None:
    made = filled(workloads.pod, {"spec": {"restartPolicy": "Never", "containers": []}})
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["enableServiceLinks"] is True


def test_a_deployment_that_recreates_does_not_roll() -> None:
    made = filled(workloads.deployment, {"spec": {"strategy": {"type": "Recreate"}, "template": TEMPLATE}})
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    assert made["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_half_a_rolling_update_is_completed() -> None:
    made = filled(workloads.deployment, {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}})
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": "25%"}


def test_a_job_with_many_pods_has_no_number_of_completions() -> None:
    assert "completions" not in filled(workloads.job, {"spec": {"parallelism": 3}})["spec"]
    assert filled(workloads.job, {"spec": {}})["spec"]["completions"] == 1


def test_a_network_policy_is_about_what_it_speaks_of() -> None:
    assert filled(defaults.network_policy, {"spec": {"egress": [{}]}})["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_users_of_a_binding_are_of_the_rbac_group_and_accounts_are_not() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    made = filled(defaults.binding, {"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects})
    assert made["roleRef"]["apiGroup"] == defaults.RBAC_GROUP
    assert [subject.get("apiGroup") for subject in made["subjects"]] == [defaults.RBAC_GROUP, None]


@pytest.mark.parametrize("key", sorted(NATIVE))
@pytest.mark.parametrize("spec", [None, {}, {"template": {}}, {"ports": [], "template": {"spec": {}}}])
def test_defaults_take_half_an_object_and_applying_them_twice_changes_nothing(key: tuple[str, str], spec: Any) -> None:
    function = NATIVE[key].defaults
    once = filled(function, {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": spec})
    assert filled(function, once) == once
