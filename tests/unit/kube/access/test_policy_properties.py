"""`authorize` with all its indexes and caches agrees with a naive reading of the objects."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.kube.access.policy import Policy, authorize, rules_for
from fastness.kube.access.rules import Rule, uncovered
from fastness.kube.access.user import Attributes, User

Object = dict[str, Any]

VERBS = ("get", "list", "create", "*")
GROUPS = ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "secrets", "*", "*/log")
NAMES = ("a", "b")
URLS = ("/x", "/x/*", "*")
NAMESPACES = ("n1", "n2")
ROLES = ("r1", "r2")
USERS = ("alice", "system:serviceaccount:n1:bot")
GROUPS_OF_USERS = ("g1", "g2")


def some(values: tuple[str, ...], least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2, unique=True)


rules = st.one_of(
    st.fixed_dictionaries(
        {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(RESOURCES), "resourceNames": some(NAMES)}
    ),
    st.fixed_dictionaries({"verbs": some(VERBS), "nonResourceURLs": some(URLS)}),
)
subjects = st.one_of(
    st.builds(lambda name: {"kind": "User", "name": name}, st.sampled_from(USERS)),
    st.builds(lambda name: {"kind": "Group", "name": name}, st.sampled_from(GROUPS_OF_USERS)),
    st.builds(
        lambda namespace: {"kind": "ServiceAccount", "name": "bot", **({"namespace": namespace} if namespace else {})},
        st.sampled_from(("", *NAMESPACES)),
    ),
)


def made(namespaces: tuple[str, ...]) -> st.SearchStrategy[Object]:
    return st.builds(
        lambda name, namespace, listed_rules: {
            "metadata": {"name": name, "namespace": namespace},
            "rules": listed_rules,
        },
        st.sampled_from(ROLES),
        st.sampled_from(namespaces),
        st.lists(rules, max_size=3),
    )


def bindings(namespaces: tuple[str, ...], kinds: tuple[str, ...]) -> st.SearchStrategy[Object]:
    return st.builds(
        lambda namespace, kind, name, listed_subjects: {
            "metadata": {"name": "b", "namespace": namespace},
            "roleRef": {"kind": kind, "name": name},
            "subjects": listed_subjects,
        },
        st.sampled_from(namespaces),
        st.sampled_from(kinds),
        st.sampled_from(ROLES),
        st.lists(subjects, max_size=2),
    )


def unique(roles: list[Object]) -> list[Object]:
    return list({(role["metadata"]["namespace"], role["metadata"]["name"]): role for role in roles}.values())


worlds = st.fixed_dictionaries({
    "cluster_roles": st.lists(made(("",)), max_size=2).map(unique),
    "roles": st.lists(made(NAMESPACES), max_size=3).map(unique),
    "cluster_role_bindings": st.lists(bindings(("",), ("ClusterRole",)), max_size=2),
    "role_bindings": st.lists(bindings(NAMESPACES, ("Role", "ClusterRole")), max_size=3),
})  # fmt: skip
users = st.builds(User, st.sampled_from(USERS), st.lists(st.sampled_from(GROUPS_OF_USERS), unique=True).map(tuple))
requests = st.one_of(
    st.builds(
        lambda user, verb, group, resource, sub, namespace, name: Attributes(
            user, verb, group, "v1", resource, sub, namespace, name
        ),
        users, st.sampled_from(("get", "list", "create", "delete")), st.sampled_from(("", "apps", "batch")),
        st.sampled_from(("pods", "secrets", "jobs")), st.sampled_from(("", "log")), st.sampled_from(("", *NAMESPACES)),
        st.sampled_from(("", "a", "c")),
    ),
    st.builds(
        lambda user, verb, path: Attributes(user, verb, path=path, is_resource_request=False),
        users, st.sampled_from(("get", "create")), st.sampled_from(("/x", "/x/y", "/z")),
    ),
)  # fmt: skip


def build(world: dict[str, list[Object]]) -> Policy:
    return Policy.build(world["cluster_roles"], world["cluster_role_bindings"], world["roles"], world["role_bindings"])


def naive(attrs: Attributes, world: dict[str, list[Object]]) -> bool:
    """The definition, without an index: some binding that names the user refers to some rule that allows."""

    def is_meant(subject: Object, home: str) -> bool:
        if subject["kind"] == "User":
            return bool(subject["name"] == attrs.user.name)
        if subject["kind"] == "Group":
            return subject["name"] in attrs.user.groups
        namespace = subject.get("namespace") or home
        return bool(namespace) and attrs.user.name == f"system:serviceaccount:{namespace}:{subject['name']}"

    for binding in [*world["cluster_role_bindings"], *world["role_bindings"]]:
        home = binding["metadata"]["namespace"]
        if home and home != attrs.namespace:
            continue
        if not any(is_meant(subject, home) for subject in binding["subjects"]):
            continue
        pool = world["cluster_roles"] if binding["roleRef"]["kind"] == "ClusterRole" else world["roles"]
        role_namespace = "" if binding["roleRef"]["kind"] == "ClusterRole" else home
        for role in pool:
            meta = role["metadata"]
            if (meta["namespace"], meta["name"]) != (role_namespace, binding["roleRef"]["name"]):
                continue
            if any(Rule.from_object(rule).allows(attrs) for rule in role["rules"]):
                return True
    return False


@given(worlds, st.lists(requests, min_size=1, max_size=20))
def test_authorize_agrees_with_the_naive_reading(world: dict[str, list[Object]], questions: list[Attributes]) -> None:
    policy = build(world)
    for attrs in [*questions, *questions]:  # twice: the second answer comes from the cache
        assert authorize(attrs, policy).allowed is naive(attrs, world)


@given(worlds, requests)
def test_what_is_allowed_is_among_the_rules_of_the_user(world: dict[str, list[Object]], attrs: Attributes) -> None:
    policy = build(world)
    held = rules_for(attrs.user, policy, attrs.namespace)
    assert authorize(attrs, policy).allowed is any(rule.allows(attrs) for rule in held)


@given(requests)
def test_no_rule_means_no_access(attrs: Attributes) -> None:
    assert not authorize(attrs, Policy.build()).allowed


@given(st.lists(rules, max_size=3), st.lists(rules, max_size=3), requests)
def test_covered_rules_allow_nothing_that_the_owner_may_not(
    requested_rules: list[Object], held: list[Object], attrs: Attributes
) -> None:
    granted = [Rule.from_object(rule) for rule in requested_rules]
    owned = [Rule.from_object(rule) for rule in held]
    if not uncovered(granted, owned) and any(rule.allows(attrs) for rule in granted):
        assert any(rule.allows(attrs) for rule in owned)


@given(st.lists(rules, max_size=4))
def test_every_set_of_rules_covers_itself(rules: list[Object]) -> None:
    mine = [Rule.from_object(rule) for rule in rules]
    assert uncovered(mine, mine) == []
    missing = uncovered(mine, [])
    assert uncovered(missing, mine) == []
    assert uncovered(mine, missing) == []
