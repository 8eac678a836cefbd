"""Our decisions about access beside those of a real kube-apiserver.

Roles and bindings made by chance are created there and read back, and both sides are asked the same questions: RBAC decisions
with their reasons, grants beyond the own rights word by word, what a node may touch and write, reviews.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import httpx
import pytest

from fastness.apiserver.auth import Authorizer, Reviews
from fastness.kube.access.escalation import Refusal, refuse_binding, refuse_role
from fastness.kube.access.node import authorize_node
from fastness.kube.access.node_restriction import refuse_node_write
from fastness.kube.access.policy import Policy, authorize
from fastness.kube.access.reviews import review_self, review_self_rules
from fastness.kube.access.user import Attributes, User, refusal
from fastness.kube.admission import Denied
from fastness.kube.errors import ApiError
from tests.patience import PATIENCE
from tests.realkube.cluster import RealKube
from tests.unit.admission.writes import World, review, write
from tests.unit.apiserver.auth.accounts import Server
from tests.unit.crypto.seeded import NOW

Object = dict[str, Any]


RBAC = "/apis/rbac.authorization.k8s.io/v1"


NAMESPACES = ("access-a", "access-b")


USERS = ("ann", "ben", "system:serviceaccount:access-a:bot")


GROUPS = ("access-dev", "access-ops")


VERBS = ("get", "list", "create", "delete")


TARGETS = (("", "pods"), ("", "pods/log"), ("", "secrets"), ("apps", "deployments"), ("apps", "deployments/scale"))


PATHS = ("/access-x", "/access-x/y", "/access-z")


DELEGATE = "access-delegate"


NODE = User("system:node:access-n1", ("system:nodes", "system:authenticated"))


def _rule(chance: random.Random) -> Object:
    verbs = chance.sample([*VERBS, "*"], chance.randint(1, 2))
    if chance.random() < 0.2:
        return {"verbs": verbs, "nonResourceURLs": [chance.choice([*PATHS, "/access-x/*", "/access*"])]}
    groups = chance.sample(["", "apps", "*"], chance.randint(1, 2))
    pool = ["pods", "pods/log", "secrets", "deployments", "deployments/scale", "*/scale", "*/log", "*"]
    rule = {"verbs": verbs, "apiGroups": groups, "resources": chance.sample(pool, chance.randint(1, 2))}
    return {**rule, "resourceNames": chance.sample(["one", "two"], 1)} if chance.random() < 0.3 else rule


def _subject(chance: random.Random) -> Object:
    kind = chance.choice(("User", "Group", "ServiceAccount"))
    if kind == "ServiceAccount":
        return {"kind": kind, "name": "bot", "namespace": "access-a"}
    names = USERS[:2] if kind == "User" else GROUPS
    return {"kind": kind, "name": chance.choice(names), "apiGroup": "rbac.authorization.k8s.io"}


def _objects(chance: random.Random) -> Iterator[tuple[str, Object]]:
    """Collections and the objects to create there."""
    for index in range(6):
        meta = {"name": f"access-{index}"}
        yield f"{RBAC}/clusterroles", {"metadata": meta, "rules": [_rule(chance) for _ in range(chance.randint(0, 2))]}
        binding = {"metadata": meta, "subjects": [_subject(chance)], "roleRef": _ref("ClusterRole", f"access-{index}")}
        if index % 2:
            yield f"{RBAC}/clusterrolebindings", binding
        for namespace in NAMESPACES:
            resource_rules = [rule for rule in (_rule(chance) for _ in range(3)) if "resources" in rule]
            yield f"{RBAC}/namespaces/{namespace}/roles", {"metadata": meta, "rules": resource_rules}
            ref = _ref(chance.choice(("Role", "ClusterRole")), f"access-{chance.randrange(6)}")
            yield (
                f"{RBAC}/namespaces/{namespace}/rolebindings",
                {"metadata": meta, "subjects": [_subject(chance)], "roleRef": ref},
            )
    delegate = [
        {"verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
        {
            "verbs": ["bind"],
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"],
            "resourceNames": ["view"],
        },
    ]
    yield f"{RBAC}/clusterroles", {"metadata": {"name": DELEGATE}, "rules": delegate}
    subject = {"kind": "User", "name": DELEGATE, "apiGroup": "rbac.authorization.k8s.io"}
    yield (
        f"{RBAC}/clusterrolebindings",
        {"metadata": {"name": DELEGATE}, "subjects": [subject], "roleRef": _ref("ClusterRole", DELEGATE)},
    )


def _ref(kind: str, name: str) -> Object:
    return {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}


@pytest.fixture(scope="module")
def admin(real_kube: RealKube) -> Iterator[httpx.Client]:
    """The real server with our roles, once it decides by them."""
    with real_kube.client() as client:
        for namespace in NAMESPACES:
            client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
        for path, obj in _objects(random.Random(7)):
            client.post(path, json=obj).raise_for_status()
        last = Attributes(User(DELEGATE, ("system:authenticated",)), "get", resource="pods")
        deadline = time.monotonic() + PATIENCE
        while not real_decision(client, last)["allowed"] and time.monotonic() < deadline:
            time.sleep(0.05)
        yield client


@pytest.fixture(scope="module")
def policy(admin: httpx.Client) -> Policy:
    """Our policy out of the objects that the real server has."""
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    listed = [admin.get(f"{RBAC}/{kind}").raise_for_status().json()["items"] for kind in kinds]
    return Policy.build(*listed)


def real_decision(client: httpx.Client, attrs: Attributes) -> Object:
    """What the real server says to a SubjectAccessReview."""
    spec: Object = {"user": attrs.user.name, "groups": list(attrs.user.groups)}
    if attrs.is_resource_request:
        keys = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
        spec["resourceAttributes"] = {key: getattr(attrs, key) for key in keys}
        if attrs.field_selector:
            spec["resourceAttributes"]["fieldSelector"] = {"rawSelector": attrs.field_selector}
    else:
        spec["nonResourceAttributes"] = {"verb": attrs.verb, "path": attrs.path}
    answer = client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json={"spec": spec})
    status: Object = answer.raise_for_status().json()["status"]
    return status


def questions(chance: random.Random) -> Iterator[Attributes]:
    for _ in range(120):
        groups = chance.sample(GROUPS, chance.randint(0, 1))
        user = User(chance.choice(USERS), (*groups, "system:authenticated"))
        verb = chance.choice(VERBS)
        if chance.random() < 0.15:
            yield Attributes(user, verb, path=chance.choice(PATHS), is_resource_request=False)
            continue
        group, target = chance.choice(TARGETS)
        resource, _, subresource = target.partition("/")
        namespace, name = chance.choice(("", *NAMESPACES)), chance.choice(("", "one", "three"))
        yield Attributes(user, verb, group, "v1", resource, subresource, namespace, name)


def test_decisions_and_their_reasons_are_those_of_the_real_server(admin: httpx.Client, policy: Policy) -> None:
    answers = set()
    for attrs in questions(random.Random(11)):
        real, ours = real_decision(admin, attrs), authorize(attrs, policy)
        assert ours.allowed is real["allowed"], attrs
        answers.add(ours.allowed)
        grants = [
            grant
            for grant in policy.bound(attrs.user).counting_in(attrs.namespace)
            if any(rule.allows(attrs) for rule in grant.rules)
        ]
        if len(grants) == 1:
            assert ours.reason == real["reason"]
    assert answers == {True, False}, "the questions must have both answers"


def as_user(client: httpx.Client, name: str, *groups: str) -> Callable[[str, Object], httpx.Response]:
    headers = [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]
    return lambda path, body: client.post(path, json=body, headers=headers)


def test_refusal_reads_as_on_the_real_server(admin: httpx.Client) -> None:
    with_headers = {"Impersonate-User": "nobody"}
    nobody = User("nobody", ("system:authenticated",))
    cases = [
        ("/api/v1/namespaces/access-a/pods", Attributes(nobody, "list", resource="pods", namespace="access-a")),
        ("/api/v1/nodes/n", Attributes(nobody, "get", resource="nodes", name="n")),
        ("/metrics", Attributes(nobody, "get", path="/metrics", is_resource_request=False)),
        (
            "/apis/apps/v1/namespaces/access-a/deployments/d/scale",
            Attributes(nobody, "get", "apps", "v1", "deployments", "scale", "access-a", "d"),
        ),
    ]
    for path, attrs in cases:
        answer = admin.get(path, headers=with_headers)
        assert answer.status_code == 403
        assert answer.json()["message"] == refusal(attrs)


GRANTS: list[tuple[str, Object]] = [
    ("clusterroles", {"kind": "ClusterRole", "metadata": {"name": "access-grant-1"},
                      "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
    ("clusterroles", {"kind": "ClusterRole", "metadata": {"name": "access-grant-2"},
                      "rules": [{"verbs": ["get", "delete", "list"], "apiGroups": [""], "resources": ["pods", "secrets"]},
                                {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}),
    ("clusterroles", {"kind": "ClusterRole", "metadata": {"name": "access-grant-3"},
                      "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
                                {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]}]}),
    ("clusterroles", {"kind": "ClusterRole", "metadata": {"name": "access-grant-4"}, "rules": [],
                      "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    ("namespaces/access-a/roles", {"kind": "Role", "metadata": {"name": "access-grant-5", "namespace": "access-a"},
                                   "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}),
    ("clusterrolebindings", {"kind": "ClusterRoleBinding", "metadata": {"name": "access-grant-6"},
                             "subjects": [{"kind": "User", "name": "x"}], "roleRef": _ref("ClusterRole", "cluster-admin")}),
    ("clusterrolebindings", {"kind": "ClusterRoleBinding", "metadata": {"name": "access-grant-7"},
                             "subjects": [{"kind": "User", "name": "x"}], "roleRef": _ref("ClusterRole", "view")}),
    ("clusterrolebindings", {"kind": "ClusterRoleBinding", "metadata": {"name": "access-grant-8"},
                             "subjects": [{"kind": "User", "name": "x"}], "roleRef": _ref("ClusterRole", "access-nowhere")}),
    ("namespaces/access-a/rolebindings",
     {"kind": "RoleBinding", "metadata": {"name": "access-grant-9", "namespace": "access-a"},
      "subjects": [{"kind": "User", "name": "x"}], "roleRef": _ref("Role", "access-nowhere")}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("collection", "obj"), GRANTS, ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else ""
)
def test_grants_beyond_the_own_rights_are_refused_word_by_word(
    admin: httpx.Client, policy: Policy, collection: str, obj: Object
) -> None:
    user = User(DELEGATE, ("system:authenticated",))
    refuse = refuse_role if obj["kind"].endswith("Role") else refuse_binding
    ours: Refusal | None = refuse(user, obj, None, policy, lambda attrs: authorize(attrs, policy))
    answer = as_user(admin, DELEGATE)(f"{RBAC}/{collection}", obj)
    if ours is None:
        assert answer.status_code == 201, answer.text
        return
    real = answer.json()
    assert (answer.status_code, real["reason"], real["message"]) == (ours.code, ours.reason, ours.message)
    assert real["details"]["name"] == (ours.about or obj["metadata"]["name"])


class Nobody:
    """Lookups of a node without pods, configurations and requests."""

    def pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return None

    def pods_on(self, node: str) -> Iterable[Mapping[str, Any]]:
        return []

    def reads_trust(self, node: str) -> bool:
        return node != "confidential"

    def rendered_configs(self, node: str) -> Collection[str]:
        return []

    def unproved(self, node: str) -> str | None:
        return None

    def barred(self, node: str) -> str | None:
        return None

    def signing_request(self, name: str) -> Mapping[str, Any] | None:
        return None


def node_questions() -> Iterator[Attributes]:
    own, other = "access-n1", "access-n2"
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
        for name in (own, other, ""):
            fields = f"metadata.name={name}" if name and verb in ("list", "watch") else ""
            yield Attributes(NODE, verb, "", "v1", "nodes", "", "", name, field_selector=fields)
            yield Attributes(NODE, verb, "", "v1", "nodes", "status", "", name)
            for namespace in ("kube-node-lease", "default"):
                yield Attributes(NODE, verb, "coordination.k8s.io", "v1", "leases", "", namespace, name)
        for node in (own, other, ""):
            fields = f"spec.nodeName={node}" if node else ""
            yield Attributes(NODE, verb, "", "v1", "pods", "", "", "", field_selector=fields)
        for resource in ("secrets", "configmaps", "services", "events", "namespaces"):
            yield Attributes(
                NODE, verb, "", "v1", resource, "", "default", "" if verb in ("list", "watch", "create") else "x"
            )
        yield Attributes(NODE, verb, "node.k8s.io", "v1", "runtimeclasses", "", "", "")


def test_node_may_do_here_what_it_may_do_there(admin: httpx.Client) -> None:
    stricter: set[tuple[str, str, str]] = set()
    looser: set[tuple[str, str, str]] = set()
    for attrs in node_questions():
        ours, real = authorize_node(attrs, Nobody()).allowed, real_decision(admin, attrs)["allowed"]
        if ours is not real:
            (stricter if real else looser).add((attrs.verb, attrs.resource, attrs.subresource))
    # Kubernetes leaves other nodes and pods that are not named to its admission; here they do not get that far.
    later = {(verb, "nodes", part) for verb in ("patch", "update") for part in ("", "status")} | {
        ("delete", "pods", "")
    }
    assert stricter == later
    # The status is part of the Node that a node may read anyway.
    assert looser == {("get", "nodes", "status")}


NODE_WRITES: list[tuple[str, Object, bool]] = [
    ("own label", {"metadata": {"labels": {"example.com/rack": "7"}}}, True),
    ("zone", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}}, True),
    ("restricted label", {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "1"}}}, False),
    ("role label", {"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}}, False),
    ("label of kubernetes", {"metadata": {"labels": {"other.k8s.io/x": "1"}}}, False),
    ("taint", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, False),
    ("owner", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}, False),
    ("annotation", {"metadata": {"annotations": {"example.com/note": "1"}}}, True),
]


@pytest.mark.parametrize(
    ("name", "change", "allowed"), NODE_WRITES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_node_writes_into_its_own_node_what_the_real_server_lets_it_write(
    real_kube: RealKube, admin: httpx.Client, name: str, change: Object, allowed: bool
) -> None:
    node = f"access-node-{name.replace(' ', '-')}"
    path = f"/api/v1/nodes/{node}"
    old = admin.post("/api/v1/nodes", json={"metadata": {"name": node}}).raise_for_status().json()
    new = {
        **old,
        "metadata": {**old["metadata"], **change.get("metadata", {})},
        "spec": {**old["spec"], **change.get("spec", {})},
    }
    headers = [("Impersonate-User", f"system:node:{node}"), ("Impersonate-Group", "system:nodes"),
               ("Content-Type", "application/merge-patch+json")]  # fmt: skip
    answer = admin.patch(path, content=json.dumps(change), headers=headers)
    assert (answer.status_code == 200) is allowed, answer.text
    assert (refuse_node_write(node, "UPDATE", "", "nodes", "", new, old) is None) is allowed


NAMESPACE_WRITES: list[tuple[str, str, str]] = [
    ("CREATE", "configmaps", "access-nowhere"),
    ("CREATE", "configmaps", "access-ending"),
    ("DELETE", "namespaces", "default"),
    ("DELETE", "namespaces", "kube-system"),
]


@pytest.mark.parametrize(("operation", "resource", "namespace"), NAMESPACE_WRITES)
def test_namespaces_are_guarded_alike(admin: httpx.Client, operation: str, resource: str, namespace: str) -> None:
    ending = {"metadata": {"name": "access-ending"}, "status": {"phase": "Terminating"}}
    if namespace == "access-ending":
        admin.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
        held = {"metadata": {"name": "held", "finalizers": ["access.example.com/hold"]}}
        admin.post(f"/api/v1/namespaces/{namespace}/configmaps", json=held).raise_for_status()
        admin.delete(f"/api/v1/namespaces/{namespace}").raise_for_status()
    if operation == "DELETE":
        real, name = admin.delete(f"/api/v1/namespaces/{namespace}"), namespace
    else:
        real, name = admin.post(f"/api/v1/namespaces/{namespace}/configmaps", json={"metadata": {"name": "c"}}), "c"
    request = write(
        operation, resource, {"metadata": {"name": name}}, namespace="" if operation == "DELETE" else namespace
    )
    ours = review(request, World(namespaces={"access-ending": ending}))
    assert isinstance(ours, Denied)
    refusal = real.json()
    assert (ours.code, ours.reason, ours.message) == (refusal["code"], refusal["reason"], refusal["message"])
    kind, about = ours.about or (resource, name)
    assert (kind, about) == (refusal["details"]["kind"], refusal["details"]["name"])
    real_causes = [
        (cause["field"], cause["reason"], cause["message"]) for cause in refusal["details"].get("causes", ())
    ]
    assert [tuple(cause) for cause in ours.causes] == real_causes
    if namespace == "access-ending":
        release = {"Content-Type": "application/merge-patch+json"}
        path = f"/api/v1/namespaces/{namespace}/configmaps/held"
        admin.patch(path, content='{"metadata": {"finalizers": null}}', headers=release).raise_for_status()


def test_reviews_of_oneself_answer_alike(admin: httpx.Client, policy: Policy) -> None:
    user = User(DELEGATE, ("system:authenticated",))
    post = as_user(admin, DELEGATE)
    review: Object = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    real = post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).raise_for_status().json()
    assert review_self(review, user)["status"] == real["status"]
    review = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": "access-a"},
    }
    real = post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review).raise_for_status().json()
    ours = review_self_rules(review, user, policy)["status"]
    for part in ("resourceRules", "nonResourceRules"):
        our_rules, real_rules = (
            [json.dumps(rule, sort_keys=True) for rule in side[part]] for side in (ours, real["status"])
        )
        assert sorted(our_rules) == sorted(real_rules)
    assert ours["incomplete"] == real["status"]["incomplete"]


QUESTIONS: list[tuple[str, str, str, Object]] = [
    ("authorization.k8s.io", "subjectaccessreviews", "", {}),
    ("authorization.k8s.io", "subjectaccessreviews", "", {"user": "a"}),
    ("authorization.k8s.io", "subjectaccessreviews", "", {"resourceAttributes": {"verb": "get"}}),
    ("authorization.k8s.io", "subjectaccessreviews", "",
     {"user": "a", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "", {}),
    ("authorization.k8s.io", "localsubjectaccessreviews", "access-a",
     {"user": "a", "resourceAttributes": {"verb": "get", "namespace": "x"}}),
    ("authorization.k8s.io", "localsubjectaccessreviews", "access-a",
     {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/"}}),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "", {}),
    ("authentication.k8s.io", "tokenreviews", "", {}),
    ("authentication.k8s.io", "tokenreviews", "", {"token": "rubbish"}),
]  # fmt: skip


class Rules(Nobody):
    """No roles at all."""

    def rbac_generation(self) -> int:
        return 1

    def rbac_objects(self, resource: str) -> Iterable[Mapping[str, Any]]:
        return []


@pytest.mark.parametrize(("group", "resource", "namespace", "spec"), QUESTIONS)
def test_bad_questions_are_answered_alike(
    admin: httpx.Client, group: str, resource: str, namespace: str, spec: Object
) -> None:
    reviews = Reviews(Authorizer(Rules(), Rules()), Server().authenticator)
    place = f"namespaces/{namespace}/" if namespace else ""
    real = admin.post(f"/apis/{group}/v1/{place}{resource}", json={"spec": spec})
    try:
        ours = reviews.answer(group, resource, {"spec": spec}, User("admin"), namespace, NOW)["status"]
    except ApiError as error:
        ours = error.status()
    assert ours == (real.json()["status"] if real.status_code == 201 else real.json())
