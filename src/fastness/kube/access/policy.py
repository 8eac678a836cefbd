"""The snapshot of all roles and bindings, indexed for `authorize`.

`Policy.build` reads the four RBAC kinds once. Bindings are indexed by subject, so that a decision looks only at what is bound to
the asking user and their groups; the rules of an aggregated ClusterRole are those of the roles that its selectors pick.

* A ClusterRoleBinding counts everywhere; a RoleBinding counts in its namespace, also when it refers to a ClusterRole.
* A binding to a role that does not exist grants nothing.
* Members of `system:masters` are allowed everything before any rule is read: no edit of roles can lock the owner out.
* Answers are kept per user for (verb, resource, namespace) — the name decides only where `resourceNames` occur. The cache lives
  and dies with the snapshot, so a changed policy never answers from an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import LabelSelector, label_selector_from_object
from fastness.kinds.objects import labels_of, object_name
from fastness.kube.access.rules import Rule, rules_of, url_matches
from fastness.kube.access.user import NO_OPINION, Attributes, Decision, User, service_account_name

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
# Names and verbs come from requests: without a bound, made-up ones would grow the caches for as long as a policy lives.
MAX_USERS: Final = 4096
MAX_ANSWERS: Final = 4096
_MASTER: Final = Decision(True)

Objects = Iterable[Mapping[str, Any]]
RoleKey = tuple[str, str]  # namespace (empty for a ClusterRole) and name


class RoleRef(NamedTuple):
    """The role that a binding refers to."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Grant:
    """One role bound to one subject, with the words that explain it."""

    namespace: str
    rules: tuple[Rule, ...]
    reason: str


class _Answer(NamedTuple):
    """What is known for one (verb, resource, namespace): allowed for any name, or for these."""

    always: Decision | None
    by_name: Mapping[str, Decision]


@dataclass(slots=True)
class _Bound:
    """What one user has, by namespace (empty: everywhere), and the answers already given to them."""

    grants: Mapping[str, tuple[Grant, ...]]
    answers: dict[tuple[str, str, str, str, str], _Answer] = field(default_factory=dict)
    paths: dict[tuple[str, str], Decision] = field(default_factory=dict)

    def counting_in(self, namespace: str) -> tuple[Grant, ...]:
        """The grants that count in a namespace, those of the whole cluster first."""
        everywhere = self.grants.get("", ())
        return (*everywhere, *self.grants.get(namespace, ())) if namespace else everywhere


class Policy:
    """All roles and bindings at one generation."""

    def __init__(
        self,
        roles: Mapping[RoleKey, tuple[Rule, ...]],
        grants: Mapping[tuple[str, str], tuple[Grant, ...]],
        generation: int,
    ) -> None:
        self.generation = generation
        self._roles = roles
        self._grants = grants
        self._users: dict[tuple[str, tuple[str, ...]], _Bound] = {}

    @classmethod
    def build(
        cls,
        cluster_roles: Objects = (),
        cluster_role_bindings: Objects = (),
        roles: Objects = (),
        role_bindings: Objects = (),
        generation: int = 0,
    ) -> Policy:
        """Index raw objects; what cannot be understood grants nothing."""
        resolved = _resolve(list(cluster_roles))
        resolved.update({(object_name(role).namespace, object_name(role).name): rules_of(role) for role in roles})
        grants: dict[tuple[str, str], list[Grant]] = {}
        for binding in cluster_role_bindings:
            _index(binding, "", resolved, grants)
        for binding in role_bindings:
            namespace = object_name(binding).namespace
            if namespace:
                _index(binding, namespace, resolved, grants)
        return cls(resolved, {subject: tuple(bound) for subject, bound in grants.items()}, generation)

    def role_rules(self, ref: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in `namespace` refers to, or None when there is none."""
        return self._roles.get(("" if ref.kind == "ClusterRole" else namespace, ref.name))

    def bound(self, user: User) -> _Bound:
        """What is bound to the user, cluster-wide first."""
        key = (user.name, user.groups)
        grants = self._users.get(key)
        if grants is None:
            if len(self._users) >= MAX_USERS:
                self._users.clear()
            grants = self._users[key] = _Bound(self._collect(user))
        return grants

    def _collect(self, user: User) -> dict[str, tuple[Grant, ...]]:
        subjects = [("User", user.name), *(("Group", group) for group in dict.fromkeys(user.groups))]
        by_namespace: dict[str, dict[int, Grant]] = {}
        for subject in subjects:
            for grant in self._grants.get(subject, ()):
                # The same role bound twice says nothing new: the first binding gives the reason.
                by_namespace.setdefault(grant.namespace, {}).setdefault(id(grant.rules), grant)
        return {namespace: tuple(grants.values()) for namespace, grants in by_namespace.items()}


def authorize(attrs: Attributes, policy: Policy) -> Decision:
    """Whether the policy allows the request, and by which binding."""
    user = attrs.user
    if user.is_master:
        return _MASTER
    bound = policy.bound(user)
    if not attrs.is_resource_request:
        return _authorize_path(attrs, bound)
    key = (attrs.verb, attrs.group, attrs.resource, attrs.subresource, attrs.namespace)
    answer = bound.answers.get(key)
    if answer is None:
        if len(bound.answers) >= MAX_ANSWERS:
            bound.answers.clear()
        answer = bound.answers[key] = _answer(attrs, bound.counting_in(attrs.namespace))
    return answer.always or answer.by_name.get(attrs.name, NO_OPINION)


def rules_for(user: User, policy: Policy, namespace: str = "") -> tuple[Rule, ...]:
    """The rules that hold for the user in a namespace (empty: at the cluster scope)."""
    return tuple(rule for grant in policy.bound(user).counting_in(namespace) for rule in grant.rules)


def aggregated_rules(cluster_roles: Objects) -> dict[str, tuple[Rule, ...]]:
    """The rules that every aggregated ClusterRole should show: what a controller writes back into the objects."""
    roles = list(cluster_roles)
    resolved = _resolve(roles)
    names = (object_name(role).name for role in roles if isinstance(role.get("aggregationRule"), dict))
    return {name: resolved["", name] for name in names}


def _authorize_path(attrs: Attributes, bound: _Bound) -> Decision:
    key = (attrs.verb, attrs.path)
    decision = bound.paths.get(key)
    if decision is None:
        if len(bound.paths) >= MAX_ANSWERS:
            bound.paths.clear()
        decision = bound.paths[key] = next(
            (
                Decision(True, grant.reason)
                for grant in bound.counting_in("")
                for rule in grant.rules
                if rule.allows_verb(attrs.verb) and any(url_matches(pattern, attrs.path) for pattern in rule.urls)
            ),
            NO_OPINION,
        )
    return decision


def _answer(attrs: Attributes, grants: Iterable[Grant]) -> _Answer:
    by_name: dict[str, Decision] = {}
    for grant in grants:
        for rule in grant.rules:
            if not (rule.allows_verb(attrs.verb) and rule.selects(attrs.group, attrs.resource, attrs.subresource)):
                continue
            decision = Decision(True, grant.reason)
            if not rule.names:
                return _Answer(decision, {})
            for name in rule.names:
                by_name.setdefault(name, decision)
    # A request without a name (create, list) is never one of `resourceNames`, whatever they hold.
    by_name.pop("", None)
    return _Answer(None, by_name)


def _resolve(cluster_roles: list[Mapping[str, Any]]) -> dict[RoleKey, tuple[Rule, ...]]:
    """Every ClusterRole with its rules; an aggregated one has those of the roles that it selects, transitively."""
    own = {object_name(role).name: rules_of(role) for role in cluster_roles}
    picks = {object_name(role).name: _selectors(role) for role in cluster_roles}
    labels = {object_name(role).name: labels_of(role) for role in cluster_roles}
    members = {
        name: [other for other in own if other != name and any(s.matches(labels[other]) for s in selectors)]
        for name, selectors in picks.items()
        if selectors
    }
    return {("", name): _aggregated(name, own, members) for name in own}


def _aggregated(name: str, own: Mapping[str, tuple[Rule, ...]], members: Mapping[str, list[str]]) -> tuple[Rule, ...]:
    if name not in members:
        return own[name]
    rules: dict[Rule, None] = {}
    # Roles may select each other: without `visited` an administrator's slip would be a loop without an end.
    visited, queue = {name}, [name]
    while queue:
        current = queue.pop(0)
        if current not in members:
            rules.update(dict.fromkeys(own[current]))
            continue
        fresh = [member for member in sorted(members[current]) if member not in visited]
        visited.update(fresh)
        queue += fresh
    return tuple(rules)


def _selectors(role: Mapping[str, Any]) -> list[LabelSelector]:
    rule = role.get("aggregationRule")
    entries = rule.get("clusterRoleSelectors") if isinstance(rule, dict) else None
    selectors = []
    for entry in entries or ():
        try:
            selectors.append(label_selector_from_object(entry))
        except SelectorError:
            continue  # a selector that cannot be read selects nothing
    return selectors


def _index(
    binding: Mapping[str, Any],
    namespace: str,
    roles: Mapping[RoleKey, tuple[Rule, ...]],
    grants: dict[tuple[str, str], list[Grant]],
) -> None:
    ref = role_ref(binding)
    # A ClusterRoleBinding has no namespace in which a Role could be looked for.
    if not namespace and ref.kind != "ClusterRole":
        return
    rules = roles.get(("" if ref.kind == "ClusterRole" else namespace, ref.name))
    if not rules:
        return
    name = object_name(binding).name
    kind, label = ("RoleBinding", f"{name}/{namespace}") if namespace else ("ClusterRoleBinding", name)
    for subject in binding.get("subjects") or ():
        holder = _subject(subject, namespace) if isinstance(subject, dict) else None
        if holder is not None:
            key, words = holder
            reason = f'RBAC: allowed by {kind} "{label}" of {ref.kind} "{ref.name}" to {words}'
            grants.setdefault(key, []).append(Grant(namespace, rules, reason))


def role_ref(binding: Mapping[str, Any]) -> RoleRef:
    """The role that a binding refers to."""
    ref = binding.get("roleRef")
    ref = ref if isinstance(ref, dict) else {}
    return RoleRef(str(ref.get("kind") or ""), str(ref.get("name") or ""))


def _subject(subject: Mapping[str, Any], namespace: str) -> tuple[tuple[str, str], str] | None:
    """The index key of a subject, and how it is written in a reason."""
    kind, name = subject.get("kind"), subject.get("name")
    if not isinstance(name, str) or not name:
        return None
    match kind:
        case "User" | "Group":
            return (kind, name), f'{kind} "{name}"'
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            if not isinstance(home, str) or not home:
                return None
            return ("User", service_account_name(home, name)), f'ServiceAccount "{name}/{home}"'
        case _:
            return None
