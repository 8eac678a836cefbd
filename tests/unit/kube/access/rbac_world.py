"""Short ways to write roles and bindings in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastness.kube.access.user import AUTHENTICATED, User

Object = dict[str, Any]


def user(name: str, *groups: str) -> User:
    """An authenticated user."""
    return User(name, (*groups, AUTHENTICATED))


def rule(
    verbs: str, resources: str = "", groups: Sequence[str] = ("",), names: Sequence[str] = (), urls: Sequence[str] = ()
) -> Object:
    """A PolicyRule; verbs and resources are words between spaces."""
    if urls:
        return {"verbs": verbs.split(), "nonResourceURLs": list(urls)}
    rule_object: Object = {"verbs": verbs.split(), "apiGroups": list(groups), "resources": resources.split()}
    return {**rule_object, "resourceNames": list(names)} if names else rule_object


def cluster_role(
    name: str, *rules: Object, labels: dict[str, str] | None = None, picks: Sequence[Object] = ()
) -> Object:
    """A ClusterRole; `picks` are the label selectors of an aggregated one."""
    role: Object = {"kind": "ClusterRole", "metadata": {"name": name, "labels": labels or {}}, "rules": list(rules)}
    return {**role, "aggregationRule": {"clusterRoleSelectors": list(picks)}} if picks else role


def role(namespace: str, name: str, *rules: Object) -> Object:
    """A Role."""
    return {"kind": "Role", "metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def subject(kind: str, name: str, namespace: str = "") -> Object:
    """A subject of a binding."""
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def cluster_binding(name: str, to: str, *subjects: Object) -> Object:
    """A ClusterRoleBinding."""
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to},
        "subjects": list(subjects),
    }


def binding(namespace: str, name: str, to: str, *subjects: Object, kind: str = "Role") -> Object:
    """A RoleBinding."""
    return {
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
        "subjects": list(subjects),
    }
