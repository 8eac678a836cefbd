"""Nobody grants more than they have.

Writing a role, or binding one, hands its rules to others. Both are allowed only to somebody who already holds every one of those
rules in that namespace, or who holds the verb `escalate` (for the role) or `bind` (for the reference), or is a master.

* An update that leaves the rules, or the reference and the subjects, as they are is no grant.
* An aggregated role may collect anything later, so setting `aggregationRule` asks for every permission there is.
* Binding a role that does not exist is refused as not found, unless `bind` is held: otherwise somebody could bind first and
  wait for the role to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastness.kinds.objects import object_name
from fastness.kube.access.policy import RBAC_GROUP, Policy, role_ref, rules_for
from fastness.kube.access.rules import EVERYTHING, Rule, quoted, rules_of, uncovered
from fastness.kube.access.user import Attributes, Decision, User

Authorize = Callable[[Attributes], Decision]
Object = Mapping[str, Any]


class Refusal(NamedTuple):
    """Why a write is refused: the HTTP code, the Kubernetes reason, a sentence, and the name that it is about if another."""

    code: int
    reason: str
    message: str
    about: str = ""


def refuse_role(user: User, role: Object, old: Object | None, policy: Policy, authorize: Authorize) -> Refusal | None:
    """Why this user may not write this Role or ClusterRole, or None when they may."""
    aggregates = bool(role.get("aggregationRule"))
    same_rules = old is not None and old.get("rules") == role.get("rules")
    same_aggregation = old is not None and old.get("aggregationRule") == role.get("aggregationRule")
    if user.is_master or (same_rules and (same_aggregation or not aggregates)):
        return None
    namespace, name = object_name(role)
    resource = "roles" if role.get("kind") == "Role" else "clusterroles"
    # Before the rules are compared: `escalate` is granted to controllers that make roles which they do not hold themselves.
    if _holds(user, "escalate", resource, namespace, name, authorize):
        return None
    if aggregates and not same_aggregation:
        # Whoever may label a ClusterRole decides later what is collected, so what is granted now cannot be known.
        missing = uncovered(EVERYTHING, rules_for(user, policy))
        if missing:
            return _too_much(
                user, resource, name, missing, "must have cluster-admin privileges to use the aggregationRule"
            )
    return _beyond(user, rules_of(role), policy, namespace, resource, name)


def refuse_binding(
    user: User, binding: Object, old: Object | None, policy: Policy, authorize: Authorize
) -> Refusal | None:
    """Why this user may not write this RoleBinding or ClusterRoleBinding, or None when they may."""
    same = old is not None and all(old.get(key) == binding.get(key) for key in ("roleRef", "subjects"))
    if user.is_master or same:
        return None
    namespace, name = object_name(binding)
    ref = role_ref(binding)
    kind = "roles" if ref.kind == "Role" else "clusterroles"
    if _holds(user, "bind", kind, namespace, ref.name, authorize):
        return None
    resource = "rolebindings" if binding.get("kind") == "RoleBinding" else "clusterrolebindings"
    rules = policy.role_rules(ref, namespace)
    if rules is None:
        # The name of the role under the resource of the binding: that is how a real server says it.
        return Refusal(404, "NotFound", f'{resource}.{RBAC_GROUP} "{ref.name}" not found', ref.name)
    return _beyond(user, rules, policy, namespace, resource, name)


def _holds(user: User, verb: str, resource: str, namespace: str, name: str, authorize: Authorize) -> bool:
    return authorize(Attributes(user, verb, RBAC_GROUP, "v1", resource, namespace=namespace, name=name)).allowed


def _beyond(
    user: User, rules: tuple[Rule, ...], policy: Policy, namespace: str, resource: str, name: str
) -> Refusal | None:
    missing = uncovered(rules, rules_for(user, policy, namespace))
    return _too_much(user, resource, name, missing) if missing else None


def _too_much(user: User, resource: str, name: str, missing: list[Rule], why: str = "") -> Refusal:
    lines = "\n".join(map(str, missing))
    message = why or (
        f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not currently held:'
        f"\n{lines}"
    )
    return Refusal(403, "Forbidden", f'{resource}.{RBAC_GROUP} "{name}" is forbidden: {message}')
