"""Acting as somebody else, and asking what one may do."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.access.errors import BadImpersonation, EmptyReview, InvalidReview
from fastness.kube.access.impersonation import impersonation
from fastness.kube.access.policy import Policy, authorize
from fastness.kube.access.reviews import (
    review_local_subject_access,
    review_self,
    review_self_access,
    review_self_rules,
    review_subject_access,
)
from fastness.kube.access.user import NODES, Attributes, Decision, User
from tests.unit.kube.access.rbac_world import cluster_binding, cluster_role, rule, subject, user

ADMIN = user("admin")
POLICY = Policy.build(
    [cluster_role("r", rule("get list", "pods"), rule("get", "secrets", names=["s"]), rule("get", urls=["/healthz"]))],
    [cluster_binding("b", "r", subject("User", "alice"), subject("Group", "dev"))],
)


def decide(attrs: Attributes) -> Decision:
    return authorize(attrs, POLICY)


def needs(*headers: tuple[str, str]) -> list[tuple[str, str, str, str, str]]:
    impersonated = impersonation(ADMIN, headers)
    assert impersonated is not None
    assert all(need.user is ADMIN and need.verb == "impersonate" for need in impersonated.needs)
    return [(need.group, need.resource, need.subresource, need.namespace, need.name) for need in impersonated.needs]


def test_no_header_is_no_impersonation() -> None:
    assert impersonation(ADMIN, [("authorization", "Bearer x"), ("accept", "*/*")]) is None


def test_user_and_groups_need_a_permission_each() -> None:
    assert needs(("impersonate-user", "bob"), ("impersonate-group", "dev"), ("impersonate-group", "ops")) == [
        ("", "users", "", "", "bob"),
        ("", "groups", "", "", "dev"),
        ("", "groups", "", "", "ops"),
    ]


def test_effective_user_is_authenticated() -> None:
    impersonated = impersonation(ADMIN, [("impersonate-user", "bob"), ("impersonate-group", "dev")])
    assert impersonated is not None
    assert impersonated.user == User("bob", ("dev", "system:authenticated"))


def test_service_account_is_asked_for_by_namespace_and_gets_its_groups() -> None:
    name = "system:serviceaccount:ci:bot"
    assert needs(("impersonate-user", name)) == [("", "serviceaccounts", "", "ci", "bot")]
    impersonated = impersonation(ADMIN, [("impersonate-user", name)])
    assert impersonated is not None
    assert impersonated.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")


def test_explicit_groups_replace_those_of_the_service_account() -> None:
    impersonated = impersonation(
        ADMIN, [("impersonate-user", "system:serviceaccount:ci:bot"), ("impersonate-group", "g")]
    )
    assert impersonated is not None
    assert impersonated.user.groups == ("g", "system:authenticated")


def test_anonymous_stays_unauthenticated() -> None:
    impersonated = impersonation(ADMIN, [("impersonate-user", "system:anonymous")])
    assert impersonated is not None
    assert impersonated.user.groups == ("system:unauthenticated",)


def test_uid_and_extra_need_permissions_and_arrive() -> None:
    headers = [
        ("impersonate-user", "bob"),
        ("impersonate-uid", "u1"),
        ("impersonate-extra-example.com%2fscopes", "view"),
        ("impersonate-extra-example.com%2fscopes", "edit"),
    ]
    auth = "authentication.k8s.io"
    assert needs(*headers)[1:] == [
        (auth, "userextras", "example.com/scopes", "", "view"),
        (auth, "userextras", "example.com/scopes", "", "edit"),
        (auth, "uids", "", "", "u1"),
    ]
    impersonated = impersonation(ADMIN, headers)
    assert impersonated is not None
    assert impersonated.user.uid == "u1"
    assert impersonated.user.extra == {"example.com/scopes": ("view", "edit")}


@pytest.mark.parametrize(
    "headers",
    [
        [("impersonate-group", "system:masters")],
        [("impersonate-uid", "u")],
        [("impersonate-extra-a", "b")],
        [("impersonate-user", "")],
        [("impersonate-user", "a"), ("impersonate-user", "b")],
        [("impersonate-user", "a"), ("impersonate-uid", "1"), ("impersonate-uid", "2")],
    ],
)
def test_headers_that_do_not_fit_together_are_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(BadImpersonation):
        impersonation(ADMIN, headers)


def body(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "kept"}, "spec": spec}


def test_access_review_answers_for_somebody_else_and_keeps_the_body() -> None:
    review = body("SubjectAccessReview", user="alice", resourceAttributes={"verb": "get", "resource": "pods"})
    answer = review_subject_access(review, decide)
    assert answer["status"]["allowed"] is True
    assert answer["status"]["reason"].startswith("RBAC: allowed by ClusterRoleBinding")
    assert {key: answer[key] for key in review} == review
    assert "status" not in review


def test_access_review_of_a_stranger_is_not_allowed() -> None:
    review = body("SubjectAccessReview", user="bob", resourceAttributes={"verb": "get", "resource": "pods"})
    assert review_subject_access(review, decide)["status"] == {"allowed": False}


def test_access_review_of_a_group_alone() -> None:
    review = body("SubjectAccessReview", groups=["dev"], nonResourceAttributes={"verb": "get", "path": "/healthz"})
    assert review_subject_access(review, decide)["status"]["allowed"] is True


def test_self_access_review_asks_for_the_caller() -> None:
    review = body("SelfSubjectAccessReview", resourceAttributes={"verb": "get", "resource": "secrets", "name": "s"})
    assert review_self_access(review, user("alice"), decide)["status"]["allowed"] is True
    assert review_self_access(review, user("bob"), decide)["status"] == {"allowed": False}


def test_local_review_must_stay_in_its_namespace() -> None:
    resource = {"verb": "get", "resource": "pods", "namespace": "d"}
    review = body("LocalSubjectAccessReview", user="alice", resourceAttributes=resource)
    assert review_local_subject_access(review, "d", decide)["status"]["allowed"] is True
    with pytest.raises(InvalidReview) as caught:
        review_local_subject_access(review, "e", decide)
    assert caught.value.field == "spec.resourceAttributes.namespace"
    paths = body("LocalSubjectAccessReview", user="alice", nonResourceAttributes={"verb": "get", "path": "/"})
    with pytest.raises(InvalidReview):
        review_local_subject_access(paths, "d", decide)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"user": "a"},
        {"user": "a", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
        {"resourceAttributes": {"verb": "get"}},
        {"user": 5, "resourceAttributes": {"verb": "get"}},
        {"user": "a", "groups": "dev", "resourceAttributes": {"verb": "get"}},
        {"user": "a", "resourceAttributes": {"verb": ["get"]}},
    ],
)
def test_reviews_that_say_too_little_name_the_field(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidReview) as caught:
        review_subject_access(body("SubjectAccessReview", **spec), decide)
    assert all(field.startswith("spec") for field, _ in caught.value.causes)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidReview) as caught:
        review_subject_access(body("SubjectAccessReview"), decide)
    assert [field for field, _ in caught.value.causes] == ["spec.resourceAttributes", "spec.user"]


def test_review_without_a_spec_is_refused() -> None:
    with pytest.raises(InvalidReview):
        review_self_access({}, ADMIN, decide)


def test_rules_review_lists_resource_and_url_rules() -> None:
    answer = review_self_rules(body("SelfSubjectRulesReview", namespace="d"), user("alice"), POLICY)
    assert answer["status"] == {
        "resourceRules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        ],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        "incomplete": False,
    }


def test_rules_review_of_a_node_says_that_it_is_incomplete() -> None:
    status = review_self_rules(body("SelfSubjectRulesReview", namespace="d"), User("system:node:n", (NODES,)), POLICY)[
        "status"
    ]
    assert status["incomplete"] is True
    assert "node authorizer" in status["evaluationError"]


def test_rules_review_needs_a_namespace() -> None:
    with pytest.raises(EmptyReview, match="no namespace on request"):
        review_self_rules(body("SelfSubjectRulesReview"), ADMIN, POLICY)


def test_self_review_tells_who_the_caller_is() -> None:
    who = User("alice", ("dev",), "u1", {"k": ("v",)})
    assert review_self({"kind": "SelfSubjectReview"}, who) == {
        "kind": "SelfSubjectReview",
        "status": {"userInfo": {"username": "alice", "uid": "u1", "groups": ["dev"], "extra": {"k": ["v"]}}},
    }
