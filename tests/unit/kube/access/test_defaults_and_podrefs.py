"""Default roles behave as on Kubernetes; every reference of a pod is found."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.access.defaults import default_objects, reconciled
from fastness.kube.access.pod_references import Reference, references
from fastness.kube.access.policy import Policy, aggregated_rules, authorize
from fastness.kube.access.rules import rules_of, uncovered
from fastness.kube.access.user import Attributes, User
from tests.unit.kube.access.rbac_world import binding, cluster_binding, cluster_role, rule, subject, user

OBJECTS = default_objects()


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [obj for obj in OBJECTS if obj["kind"] == kind]


def policy() -> Policy:
    return Policy.build(
        of_kind("ClusterRole"),
        of_kind("ClusterRoleBinding"),
        role_bindings=[
            binding("d", "v", "view", subject("User", "viewer"), kind="ClusterRole"),
            binding("d", "e", "edit", subject("User", "editor"), kind="ClusterRole"),
            binding("d", "a", "admin", subject("User", "owner"), kind="ClusterRole"),
        ],
    )


@pytest.mark.parametrize(
    ("who", "verb", "resource", "namespace", "allowed"),
    [
        ("viewer", "list", "pods", "d", True),
        ("viewer", "get", "secrets", "d", False),
        ("viewer", "create", "pods", "d", False),
        ("viewer", "list", "pods", "e", False),
        ("editor", "create", "pods", "d", True),
        ("editor", "get", "secrets", "d", True),
        ("owner", "create", "roles.rbac.authorization.k8s.io", "d", True),
        ("editor", "create", "roles.rbac.authorization.k8s.io", "d", False),
        ("owner", "create", "nodes", "d", False),
        ("stranger", "create", "selfsubjectaccessreviews.authorization.k8s.io", "", True),
        ("stranger", "create", "selfsubjectreviews.authentication.k8s.io", "", True),
        ("stranger", "list", "pods", "d", False),
    ],
)
def test_default_roles_allow_what_they_allow_on_kubernetes(
    who: str, verb: str, resource: str, namespace: str, allowed: bool
) -> None:
    plural, _, group = resource.partition(".")
    attrs = Attributes(user(who), verb, group, "v1", plural, namespace=namespace)
    assert authorize(attrs, policy()).allowed is allowed


def test_every_authenticated_user_may_discover_the_api() -> None:
    for path in ("/api", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz"):
        attrs = Attributes(user("anyone"), "get", path=path, is_resource_request=False)
        assert authorize(attrs, policy()).allowed, path


def test_nodes_get_nothing_from_roles() -> None:
    node = User("system:node:n", ("system:nodes", "system:authenticated"))
    assert not authorize(Attributes(node, "get", resource="secrets", namespace="d", name="s"), policy()).allowed
    assert not authorize(Attributes(node, "get", resource="nodes", name="n"), policy()).allowed


def test_default_objects_carry_no_server_fields() -> None:
    assert OBJECTS
    for obj in OBJECTS:
        assert obj["apiVersion"] == "rbac.authorization.k8s.io/v1"
        assert not {"uid", "resourceVersion", "creationTimestamp", "managedFields"} & obj["metadata"].keys()


def test_recorded_rules_of_aggregated_roles_are_what_their_selectors_give() -> None:
    roles = of_kind("ClusterRole")
    for name, rules in aggregated_rules(roles).items():
        recorded = rules_of(next(role for role in roles if role["metadata"]["name"] == name))
        assert uncovered(recorded, rules) == []
        assert uncovered(rules, recorded) == []


def test_reconciling_adds_what_is_missing_and_keeps_what_was_added() -> None:
    default_role = cluster_role("r", rule("get list", "pods"))
    current = cluster_role("r", rule("get", "pods"), rule("get", "mine"))
    fixed = reconciled(current, default_role)
    assert fixed is not None
    assert uncovered(rules_of(default_role), rules_of(fixed)) == []
    assert rule("get", "mine") in fixed["rules"]
    assert reconciled(fixed, default_role) is None


def test_reconciling_respects_the_opt_out() -> None:
    current = cluster_role("r")
    current["metadata"]["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    assert reconciled(current, cluster_role("r", rule("get", "pods"))) is None


def test_reconciling_a_binding_adds_subjects() -> None:
    default_binding = cluster_binding("b", "r", subject("Group", "g"))
    fixed = reconciled(cluster_binding("b", "r", subject("User", "u")), default_binding)
    assert fixed is not None
    assert fixed["subjects"] == [subject("User", "u"), subject("Group", "g")]
    assert reconciled(fixed, default_binding) is None
    assert reconciled(cluster_binding("b", "other"), default_binding) is None


def test_reconciling_every_default_object_with_itself_changes_nothing() -> None:
    assert [obj["metadata"]["name"] for obj in OBJECTS if reconciled(obj, obj) is not None] == []


POD: dict[str, Any] = {
    "spec": {
        "serviceAccountName": "bot",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"secret": {"secretName": "vol"}},
            {"configMap": {"name": "map"}},
            {"persistentVolumeClaim": {"claimName": "claim"}},
            {"projected": {"sources": [{"secret": {"name": "proj"}}, {"configMap": {"name": "projmap"}}]}},
            {"csi": {"nodePublishSecretRef": {"name": "csi"}}},
            {"azureFile": {"secretName": "azure"}},
            {"rbd": {"secretRef": {"name": "rbd"}}},
        ],
        "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}, {"name": "plain", "value": "x"}]}],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "from"}}, {"configMapRef": {"name": "frommap"}}]}],
        "ephemeralContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "envmap"}}}]}],
    }
}


def test_every_place_that_refers_to_something_is_found() -> None:
    secrets = {"pull", "vol", "proj", "csi", "azure", "rbd", "env", "from"}
    maps = {"map", "projmap", "frommap", "envmap"}
    assert references(POD) == (
        {Reference("secrets", name) for name in secrets}
        | {Reference("configmaps", name) for name in maps}
        | {Reference("persistentvolumeclaims", "claim"), Reference("serviceaccounts", "bot")}
    )


@pytest.mark.parametrize("spec", [None, [], "x", {"volumes": "x", "containers": [None, {"env": {}}]}])
def test_unreadable_pod_refers_only_to_its_default_account(spec: Any) -> None:
    assert references({"spec": spec}) == {Reference("serviceaccounts", "default")}
