"""The current policy is asked, nodes first by their own table, and reviews are answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from fastness.apiserver.auth import Authorizer, Reviews
from fastness.kube.access.user import NODES, Attributes, User
from fastness.kube.errors import BadRequest, Forbidden, Invalid, NotFound
from tests.unit.apiserver.auth.accounts import ISSUER, Server
from tests.unit.crypto.seeded import NOW
from tests.unit.kube.access.rbac_world import cluster_binding, cluster_role, rule, subject, user

Object = Mapping[str, Any]
AUTHZ, AUTHN = "authorization.k8s.io", "authentication.k8s.io"
NODE = User("system:node:n1", (NODES, "system:authenticated"))


class Store:
    """RBAC objects that count their changes, and no pods."""

    def __init__(self) -> None:
        self.generation = 1
        self.objects: dict[str, list[dict[str, Any]]] = {
            "clusterroles": [cluster_role("r", rule("get", "pods nodes"), rule("impersonate", "users", names=["bob"]))],
            "clusterrolebindings": [cluster_binding("b", "r", subject("User", "alice"))],
        }
        self.reads = 0

    def rbac_generation(self) -> int:
        return self.generation

    def rbac_objects(self, resource: str) -> Iterable[Object]:
        self.reads += 1
        return self.objects.get(resource, [])

    def pod(self, namespace: str, name: str) -> Object | None:
        return None

    def pods_on(self, node: str) -> Iterable[Object]:
        return []

    def reads_trust(self, node: str) -> bool:
        return node != "confidential"

    def rendered_configs(self, node: str) -> Collection[str]:
        return []

    def unproved(self, node: str) -> str | None:
        return None

    def barred(self, node: str) -> str | None:
        return None

    def signing_request(self, name: str) -> Object | None:
        return None


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def authorizer(store: Store) -> Authorizer:
    return Authorizer(store, store)


@pytest.fixture
def reviews(authorizer: Authorizer) -> Reviews:
    return Reviews(authorizer, Server().authenticator)


def get_pods(who: User) -> Attributes:
    return Attributes(who, "get", resource="pods", namespace="d", name="p")


def test_policy_is_built_once_per_generation(store: Store, authorizer: Authorizer) -> None:
    for _ in range(5):
        assert authorizer.decide(get_pods(user("alice"))).allowed
    assert store.reads == 4
    store.objects["clusterrolebindings"] = []
    store.generation += 1
    assert not authorizer.decide(get_pods(user("alice"))).allowed
    assert store.reads == 8


def test_refusal_is_a_403_in_the_words_of_kubernetes(authorizer: Authorizer) -> None:
    authorizer.require(get_pods(user("alice")))
    with pytest.raises(Forbidden) as caught:
        authorizer.require(get_pods(user("bob")))
    status = caught.value.status()
    assert status["message"] == (
        'pods "p" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "d"'
    )
    assert status["details"] == {"name": "p", "kind": "pods"}


def test_node_is_allowed_by_its_table_or_by_a_role(store: Store, authorizer: Authorizer) -> None:
    assert authorizer.decide(Attributes(NODE, "get", resource="nodes", name="n1")).allowed
    other = Attributes(NODE, "get", resource="nodes", name="n2")
    refused = authorizer.decide(other)
    assert not refused.allowed
    assert "only its own" in refused.reason
    store.objects["clusterrolebindings"].append(cluster_binding("n", "r", subject("Group", NODES)))
    store.generation += 1
    assert authorizer.decide(other).allowed


def test_impersonation_needs_the_permission(authorizer: Authorizer) -> None:
    alice = user("alice")
    assert authorizer.impersonated(alice, [("accept", "*/*")]) is alice
    assert authorizer.impersonated(alice, [("impersonate-user", "bob")]).name == "bob"
    with pytest.raises(Forbidden, match="impersonate"):
        authorizer.impersonated(alice, [("impersonate-user", "carol")])
    with pytest.raises(Forbidden, match="groups"):
        authorizer.impersonated(alice, [("impersonate-user", "bob"), ("impersonate-group", "system:masters")])
    with pytest.raises(BadRequest):
        authorizer.impersonated(alice, [("impersonate-group", "dev")])


def ask(reviews: Reviews, group: str, resource: str, spec: Any, who: str = "alice", namespace: str = "") -> Any:
    return reviews.answer(group, resource, {"kind": "K", "spec": spec}, user(who), namespace, NOW)["status"]


def test_every_review_is_answered(reviews: Reviews) -> None:
    attributes = {"verb": "get", "resource": "pods", "namespace": "d"}
    spec = {"user": "alice", "resourceAttributes": attributes}
    assert ask(reviews, AUTHZ, "subjectaccessreviews", spec, "bob")["allowed"] is True
    assert ask(reviews, AUTHZ, "localsubjectaccessreviews", spec, "bob", "d")["allowed"] is True
    assert ask(reviews, AUTHZ, "selfsubjectaccessreviews", spec, "bob")["allowed"] is False
    assert ask(reviews, AUTHZ, "selfsubjectrulesreviews", {"namespace": "d"})["resourceRules"][0]["verbs"] == ["get"]
    assert ask(reviews, AUTHN, "selfsubjectreviews", {})["userInfo"]["username"] == "alice"


def test_other_resources_are_not_reviews(reviews: Reviews) -> None:
    assert reviews.answers(AUTHZ, "subjectaccessreviews")
    assert not reviews.answers("", "pods")
    with pytest.raises(NotFound):
        ask(reviews, "", "pods", {})


def test_bad_review_is_invalid_with_the_field(reviews: Reviews) -> None:
    with pytest.raises(Invalid) as caught:
        ask(reviews, AUTHZ, "subjectaccessreviews", {})
    assert caught.value.causes[0].field.startswith("spec")


@pytest.fixture
def server() -> Server:
    return Server()


def review_token(server: Server, store: Store, spec: Any) -> Any:
    reviews = Reviews(Authorizer(store, store), server.authenticator)
    return ask(reviews, AUTHN, "tokenreviews", spec)


def test_token_review_tells_whose_token_it_is(server: Server, store: Store) -> None:
    status = review_token(server, store, {"token": server.token()})
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:ci:bot"
    assert status["audiences"] == [ISSUER, "fastness"]


def test_token_review_answers_for_the_audience_that_was_asked(server: Server, store: Store) -> None:
    token = server.token(audiences=["vault"])
    assert review_token(server, store, {"token": token, "audiences": ["vault", "x"]})["audiences"] == ["vault"]
    assert "authenticated" not in review_token(server, store, {"token": token})
    assert "authenticated" not in review_token(server, store, {"token": token, "audiences": ["other"]})


@pytest.mark.parametrize("token", ["rubbish", "a.b.c", "."])
def test_token_review_of_rubbish_says_no_more_than_that(server: Server, store: Store, token: str) -> None:
    assert review_token(server, store, {"token": token}) == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize("spec", [{}, {"token": ""}, {"token": 5}, None])
def test_token_review_needs_a_token(server: Server, store: Store, spec: Any) -> None:
    with pytest.raises(BadRequest, match="token is required"):
        review_token(server, store, spec)


def test_token_review_needs_audiences_that_are_text(server: Server, store: Store) -> None:
    with pytest.raises(Invalid):
        review_token(server, store, {"token": "x", "audiences": "y"})
