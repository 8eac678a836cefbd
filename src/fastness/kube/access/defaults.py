"""The roles and bindings that every new cluster has.

Kubernetes' own default roles are data, recorded from a real API server (`kinds/kubernetes`), so that `kubectl auth can-i` answers
here as it does there. This module makes the objects of the first start out of them: `default_objects` is what the embedded API
writes when they are missing.

* `system:node` is not bound: nodes get their permissions from the node authorizer (`node.py`).
* A role that an administrator changed is completed, never reduced: `reconciled` adds the rules that are missing, as Kubernetes
  does after an upgrade, unless `rbac.authorization.kubernetes.io/autoupdate` says "false".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.definitions import default_roles
from fastness.kinds.objects import annotations_of, object_name
from fastness.kube.access.policy import RBAC_GROUP
from fastness.kube.access.rules import rules_of, uncovered

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


def default_objects() -> list[JsonObject]:
    """Kubernetes' own roles and bindings, ready to be created."""
    return bootstrap_objects(default_roles())


def bootstrap_objects(recorded: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """The objects to create in an empty cluster, out of recorded ones: without what a server fills in."""
    return [_clean(obj) for obj in recorded if obj.get("kind") in _KINDS]


def reconciled(current: Mapping[str, Any], default: Mapping[str, Any]) -> JsonObject | None:
    """The object that `current` must become so that it grants at least what `wanted` does; None when it already does."""
    # The documented way out of auto-reconciliation (RBAC, "Auto-reconciliation"): an administrator who restricted a role meant
    # it.
    if annotations_of(current).get(AUTOUPDATE) == "false":
        return None
    if default.get("kind") in ("Role", "ClusterRole"):
        if default.get("aggregationRule"):
            return None
        missing = uncovered(rules_of(default), rules_of(current))
        if not missing:
            return None
        return {**current, "rules": [*(current.get("rules") or ()), *(rule.to_object() for rule in missing)]}
    absent = [subject for subject in default.get("subjects") or () if subject not in (current.get("subjects") or ())]
    if not absent or current.get("roleRef") != default.get("roleRef"):
        return None
    return {**current, "subjects": [*(current.get("subjects") or ()), *absent]}


def _clean(obj: Mapping[str, Any]) -> JsonObject:
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVER_FIELDS}
    cleaned: JsonObject = {"apiVersion": f"{RBAC_GROUP}/v1", "kind": obj["kind"], "metadata": meta}
    cleaned.update({key: obj[key] for key in ("aggregationRule", "rules", "roleRef", "subjects") if obj.get(key)})
    if obj["kind"] in ("Role", "ClusterRole"):
        cleaned.setdefault("rules", [])
    # As in Kubernetes since 1.8: bound to the group, every node would read the Secrets of all of them.
    if obj["kind"] == "ClusterRoleBinding" and object_name(obj).name == "system:node":
        cleaned.pop("subjects", None)
    return cleaned
