"""Nobody grants more than they have, by writing roles or by binding them."""

from __future__ import annotations

from typing import Any

from fastness.kube.access.escalation import Refusal, refuse_binding, refuse_role
from fastness.kube.access.policy import Policy, authorize
from fastness.kube.access.user import User
from tests.unit.kube.access.rbac_world import binding, cluster_binding, cluster_role, role, rule, subject, user

Object = dict[str, Any]
RBAC = ["rbac.authorization.k8s.io"]
ALICE = user("alice", "dev")


def world(*extra: Object) -> Policy:
    """Alice may get pods everywhere, and get secrets in namespace `d`; `extra` are rules that she has besides."""
    return Policy.build(
        [cluster_role("alice", rule("get", "pods"), *extra), cluster_role("strong", rule("*", "*", ["*"])),
         cluster_role("weak", rule("get", "pods"))],
        [cluster_binding("a", "alice", subject("User", "alice"))],
        [role("d", "alice", rule("get", "secrets"))],
        [binding("d", "a", "alice", subject("User", "alice"))],
    )  # fmt: skip


def write_role(
    new: Object, old: Object | None = None, policy: Policy | None = None, who: User = ALICE
) -> Refusal | None:
    effective_policy = policy or world()
    return refuse_role(who, new, old, effective_policy, lambda attrs: authorize(attrs, effective_policy))


def bind(new: Object, old: Object | None = None, policy: Policy | None = None, who: User = ALICE) -> Refusal | None:
    effective_policy = policy or world()
    return refuse_binding(who, new, old, effective_policy, lambda attrs: authorize(attrs, effective_policy))


def test_role_within_the_writers_own_rules_is_allowed() -> None:
    assert write_role(cluster_role("x", rule("get", "pods"))) is None
    assert write_role(role("d", "x", rule("get", "pods secrets"))) is None
    assert write_role(cluster_role("x", rule("get", "pods", names=["one"]))) is None


def test_role_beyond_the_writers_own_rules_is_refused_and_named() -> None:
    refused = write_role(cluster_role("x", rule("get delete list", "pods"), rule("get", "secrets")))
    assert refused is not None
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )


def test_rules_held_in_one_namespace_do_not_count_in_another() -> None:
    assert write_role(role("e", "x", rule("get", "secrets"))) is not None


def test_wildcards_need_wildcards() -> None:
    for wide in (rule("*", "pods"), rule("get", "*"), rule("get", "pods", ["*"]), rule("get", urls=["*"])):
        assert write_role(cluster_role("x", wide)) is not None
    assert write_role(cluster_role("x", rule("*", "*", ["*"])), policy=world(rule("*", "*", ["*"]))) is None


def test_unlimited_rule_is_not_covered_by_named_ones() -> None:
    policy = world(rule("get", "configmaps", names=["a"]))
    assert write_role(cluster_role("x", rule("get", "configmaps")), policy=policy) is not None
    assert write_role(cluster_role("x", rule("get", "configmaps", names=["a", "b"])), policy=policy) is not None
    assert write_role(cluster_role("x", rule("get", "configmaps", names=["a"])), policy=policy) is None


def test_update_that_keeps_the_rules_is_no_grant() -> None:
    strong = cluster_role("x", rule("*", "*", ["*"]))
    assert write_role({**strong, "metadata": {"name": "x", "labels": {"a": "b"}}}, old=strong) is None
    assert write_role(strong, old=cluster_role("x", rule("get", "pods"))) is not None


def test_escalate_allows_any_rule_in_its_scope() -> None:
    policy = world(rule("escalate", "clusterroles", RBAC, names=["x"]))
    assert write_role(cluster_role("x", rule("*", "*", ["*"])), policy=policy) is None
    assert write_role(cluster_role("y", rule("*", "*", ["*"])), policy=policy) is not None


def test_aggregation_asks_for_everything() -> None:
    aggregated = cluster_role("x", picks=[{"matchLabels": {"a": "b"}}])
    refused = write_role(aggregated)
    assert refused is not None
    assert "aggregationRule" in refused.message
    assert write_role(aggregated, old=aggregated) is None
    owner = world(rule("*", "*", ["*"]), rule("*", urls=["*"]))
    assert write_role(aggregated, policy=owner) is None


def test_masters_write_anything() -> None:
    root = user("root", "system:masters")
    assert write_role(cluster_role("x", rule("*", "*", ["*"])), policy=Policy.build(), who=root) is None
    assert bind(cluster_binding("b", "nowhere", subject("User", "x")), policy=Policy.build(), who=root) is None


def test_binding_a_role_within_the_own_rules_is_allowed() -> None:
    assert bind(cluster_binding("b", "weak", subject("User", "bob"))) is None
    assert bind(binding("d", "b", "alice", subject("User", "bob"))) is None


def test_binding_a_stronger_role_is_refused() -> None:
    refused = bind(cluster_binding("b", "strong", subject("User", "alice")))
    assert refused is not None
    assert refused.message.startswith('clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: user "alice"')
    assert bind(binding("e", "b", "strong", subject("User", "alice"), kind="ClusterRole")) is not None


def test_bind_verb_allows_the_reference() -> None:
    policy = world(rule("bind", "clusterroles", RBAC, names=["strong"]))
    assert bind(cluster_binding("b", "strong", subject("User", "bob")), policy=policy) is None
    assert bind(cluster_binding("b", "cluster-admin", subject("User", "bob")), policy=policy) is not None


def test_binding_a_missing_role_is_not_found() -> None:
    refused = bind(cluster_binding("b", "later", subject("User", "alice")))
    assert refused is not None
    assert (refused.code, refused.reason) == (404, "NotFound")
    assert refused.message == 'clusterrolebindings.rbac.authorization.k8s.io "later" not found'


def test_unchanged_binding_is_no_grant_but_a_new_subject_is() -> None:
    old = cluster_binding("b", "strong", subject("User", "bob"))
    assert bind({**old, "metadata": {"name": "b", "labels": {}}}, old=old) is None
    assert bind(cluster_binding("b", "strong", subject("User", "alice")), old=old) is not None
