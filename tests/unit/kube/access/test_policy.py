"""RBAC answers as Kubernetes does: by binding, by namespace, by rule, and no by default."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.access.policy import Policy, aggregated_rules, authorize, rules_for
from fastness.kube.access.user import Attributes, User, refusal
from tests.growth import lines
from tests.unit.kube.access.rbac_world import binding, cluster_binding, cluster_role, role, rule, subject, user

ALICE = user("alice", "dev")


def asks(who: User, verb: str, resource: str, namespace: str = "", name: str = "", **more: Any) -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(who, verb, resource=resource, subresource=subresource, namespace=namespace, name=name, **more)


def path(who: User, verb: str, url: str) -> Attributes:
    return Attributes(who, verb, path=url, is_resource_request=False)


def test_nothing_is_allowed_without_a_rule() -> None:
    decision = authorize(asks(ALICE, "get", "pods", "default"), Policy.build())
    assert not decision.allowed
    assert not decision.reason


def test_cluster_binding_counts_in_every_namespace_and_says_why() -> None:
    policy = Policy.build([cluster_role("reader", rule("get list", "pods"))],
                          [cluster_binding("b", "reader", subject("User", "alice"))])  # fmt: skip
    for namespace in ("", "default", "other"):
        decision = authorize(asks(ALICE, "list", "pods", namespace), policy)
        assert decision.allowed
        assert decision.reason == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "alice"'
    assert not authorize(asks(ALICE, "delete", "pods", "default"), policy).allowed
    assert not authorize(asks(user("bob"), "list", "pods", "default"), policy).allowed


def test_role_binding_counts_in_its_namespace_only() -> None:
    policy = Policy.build(
        roles=[role("default", "reader", rule("get", "pods"))],
        role_bindings=[binding("default", "b", "reader", subject("Group", "dev"))],
    )
    decision = authorize(asks(ALICE, "get", "pods", "default", "p"), policy)
    assert decision.allowed
    assert decision.reason == 'RBAC: allowed by RoleBinding "b/default" of Role "reader" to Group "dev"'
    assert not authorize(asks(ALICE, "get", "pods", "other", "p"), policy).allowed
    assert not authorize(asks(ALICE, "get", "pods", "", "p"), policy).allowed


def test_role_binding_to_a_cluster_role_stays_in_its_namespace() -> None:
    policy = Policy.build(
        [cluster_role("reader", rule("*", "*", ["*"]), rule("*", urls=["*"]))],
        role_bindings=[binding("default", "b", "reader", subject("User", "alice"), kind="ClusterRole")],
    )
    assert authorize(asks(ALICE, "delete", "secrets", "default", "s"), policy).allowed
    assert not authorize(asks(ALICE, "delete", "secrets", "kube-system", "s"), policy).allowed
    assert not authorize(asks(ALICE, "get", "nodes"), policy).allowed
    assert not authorize(path(ALICE, "get", "/metrics"), policy).allowed


def test_cluster_binding_cannot_refer_to_a_role() -> None:
    wrong = cluster_binding("b", "reader", subject("User", "alice"))
    wrong["roleRef"]["kind"] = "Role"
    policy = Policy.build(roles=[role("", "reader", rule("get", "pods"))], cluster_role_bindings=[wrong])
    assert not authorize(asks(ALICE, "get", "pods", "default"), policy).allowed


def test_binding_to_a_missing_role_grants_nothing() -> None:
    policy = Policy.build(cluster_role_bindings=[cluster_binding("b", "gone", subject("User", "alice"))])
    assert not authorize(asks(ALICE, "get", "pods", "default"), policy).allowed


def test_service_account_subjects_are_users_of_their_namespace() -> None:
    policy = Policy.build(
        [cluster_role("reader", rule("get", "pods"))],
        [cluster_binding("b", "reader", subject("ServiceAccount", "bot", "ci"), subject("ServiceAccount", "lost"))],
        role_bindings=[binding("ci", "l", "reader", subject("ServiceAccount", "local"), kind="ClusterRole")],
    )
    bot = user("system:serviceaccount:ci:bot")
    assert 'to ServiceAccount "bot/ci"' in authorize(asks(bot, "get", "pods", "x"), policy).reason
    assert not authorize(asks(user("system:serviceaccount:other:bot"), "get", "pods", "x"), policy).allowed
    assert not authorize(asks(user("system:serviceaccount::lost"), "get", "pods", "x"), policy).allowed
    assert authorize(asks(user("system:serviceaccount:ci:local"), "get", "pods", "ci"), policy).allowed


def test_subresources_need_their_own_rule() -> None:
    policy = Policy.build(
        [cluster_role("r", rule("get", "pods"), rule("update", "*/scale", ["apps"]), rule("create", "pods/exec"))],
        [cluster_binding("b", "r", subject("User", "alice"))],
    )
    assert not authorize(asks(ALICE, "get", "pods/log", "d", "p"), policy).allowed
    assert authorize(asks(ALICE, "create", "pods/exec", "d", "p"), policy).allowed
    assert not authorize(asks(ALICE, "create", "pods", "d"), policy).allowed
    assert authorize(asks(ALICE, "update", "deployments/scale", "d", "p", group="apps"), policy).allowed
    assert not authorize(asks(ALICE, "update", "deployments", "d", "p", group="apps"), policy).allowed
    assert not authorize(asks(ALICE, "update", "deployments/scale", "d", "p"), policy).allowed


def test_resource_names_limit_to_those_objects() -> None:
    policy = Policy.build(
        [cluster_role("r", rule("get delete create list", "secrets", names=["a", "b"]))],
        [cluster_binding("b", "r", subject("User", "alice"))],
    )
    assert authorize(asks(ALICE, "get", "secrets", "d", "a"), policy).allowed
    assert authorize(asks(ALICE, "get", "secrets", "d", "b"), policy).allowed
    assert not authorize(asks(ALICE, "get", "secrets", "d", "c"), policy).allowed
    assert not authorize(asks(ALICE, "list", "secrets", "d"), policy).allowed
    assert not authorize(asks(ALICE, "create", "secrets", "d"), policy).allowed


def test_empty_resource_name_opens_no_list() -> None:
    policy = Policy.build(
        [cluster_role("r", rule("list", "secrets", names=[""]))], [cluster_binding("b", "r", subject("User", "alice"))]
    )
    assert not authorize(asks(ALICE, "list", "secrets", "d"), policy).allowed


@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("/metrics*", "/metrics/slis", True),
        ("*", "/anything", True),
        ("/apis/*/x", "/apis/y/x", False),
    ],
)
def test_urls_match_exactly_or_by_a_trailing_star(pattern: str, url: str, allowed: bool) -> None:
    policy = Policy.build(
        [cluster_role("r", rule("get", urls=[pattern]))], [cluster_binding("b", "r", subject("User", "alice"))]
    )
    assert authorize(path(ALICE, "get", url), policy).allowed is allowed
    assert not authorize(path(ALICE, "post", url), policy).allowed


def test_masters_need_no_policy() -> None:
    root = user("root", "system:masters")
    assert authorize(asks(root, "delete", "nodes", "", "n"), Policy.build()).allowed
    assert authorize(path(root, "get", "/metrics"), Policy.build()).allowed


def test_aggregated_role_has_the_rules_of_those_it_selects() -> None:
    roles = [
        cluster_role("admin", rule("get", "stale"), picks=[{"matchLabels": {"to-admin": "true"}}]),
        cluster_role("edit", labels={"to-admin": "true"}, picks=[{"matchLabels": {"to-edit": "true"}}]),
        cluster_role("crd", rule("get", "widgets", ["example.com"]), labels={"to-edit": "true"}),
        cluster_role("other", rule("get", "secrets")),
    ]
    policy = Policy.build(roles, [cluster_binding("b", "admin", subject("User", "alice"))])
    assert authorize(asks(ALICE, "get", "widgets", "d", group="example.com"), policy).allowed
    assert not authorize(asks(ALICE, "get", "secrets", "d"), policy).allowed
    assert not authorize(asks(ALICE, "get", "stale", "d"), policy).allowed
    assert [str(entry) for entry in aggregated_rules(roles)["admin"]] == [
        '{APIGroups:["example.com"], Resources:["widgets"], Verbs:["get"]}'
    ]


def test_aggregation_in_a_circle_ends() -> None:
    roles = [
        cluster_role("a", labels={"to": "b"}, picks=[{"matchLabels": {"to": "a"}}]),
        cluster_role("b", labels={"to": "a"}, picks=[{"matchLabels": {"to": "b"}}]),
        cluster_role("c", rule("get", "pods"), labels={"to": "a"}),
    ]
    policy = Policy.build(roles, [cluster_binding("x", "b", subject("User", "alice"))])
    assert authorize(asks(ALICE, "get", "pods", "d"), policy).allowed


def test_unreadable_objects_grant_nothing_and_do_not_crash() -> None:
    policy = Policy.build(
        [{"metadata": {"name": "r"}, "rules": [None, 5, {"verbs": "get", "resources": [1]}]},
         {"metadata": {"name": "s"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": 5}]}}, {}],
        [{"metadata": {"name": "b"}, "roleRef": None, "subjects": [None, {"kind": "User"}, {"kind": "Alien", "name": "x"}]}],
        [{}], [{"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}}],
    )  # fmt: skip
    assert not authorize(asks(ALICE, "get", "pods", "d"), policy).allowed


def test_rules_for_lists_cluster_rules_and_those_of_the_namespace() -> None:
    policy = Policy.build(
        [cluster_role("r", rule("get", "pods"))],
        [cluster_binding("b", "r", subject("User", "alice"))],
        [role("d", "w", rule("create", "pods"))],
        [binding("d", "b", "w", subject("User", "alice"))],
    )
    assert [entry.verbs for entry in rules_for(ALICE, policy, "d")] == [("get",), ("create",)]
    assert [entry.verbs for entry in rules_for(ALICE, policy, "e")] == [("get",)]


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        (asks(ALICE, "list", "pods", "d"),
         'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "d"'),
        (asks(ALICE, "get", "deployments/scale", "d", "x", group="apps"),
         'deployments.apps "x" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" in the '
         'namespace "d"'),
        (asks(ALICE, "get", "nodes", "", "n"),
         'nodes "n" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope'),
        (path(ALICE, "get", "/metrics"), 'forbidden: User "alice" cannot get path "/metrics"'),
    ],
)  # fmt: skip
def test_refusal_reads_as_kubernetes_writes_it(attrs: Attributes, text: str) -> None:
    assert refusal(attrs) == text
    assert refusal(attrs, "why") == f"{text}: why"


def test_hot_answer_is_remembered_and_cheap() -> None:
    roles = [cluster_role(f"r{i}", *(rule("get list watch", f"things{j}") for j in range(20))) for i in range(50)]
    bindings = [cluster_binding(f"b{i}", f"r{i}", subject("User", "alice")) for i in range(50)]
    policy = Policy.build(roles, bindings)
    attributes = asks(ALICE, "get", "pods", "default", "p")
    first = lines(lambda: authorize(attributes, policy))
    # 3 µs is the aim, measured in bench; here a thousand rules are looked through once, and never again.
    assert first > 1000
    assert lines(lambda: authorize(attributes, policy)) < 50


def test_cache_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastness.kube.access import policy as module

    monkeypatch.setattr(module, "MAX_USERS", 8)
    monkeypatch.setattr(module, "MAX_ANSWERS", 8)
    policy = Policy.build()
    for index in range(100):
        authorize(asks(user(f"u{index}"), "get", "pods", "d"), policy)
        authorize(asks(ALICE, "get", "pods", f"n{index}"), policy)
        authorize(path(ALICE, "get", f"/{index}"), policy)
    assert len(policy._users) <= 8
    assert len(policy.bound(ALICE).answers) <= 8
    assert len(policy.bound(ALICE).paths) <= 8
