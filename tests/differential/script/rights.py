"""RBAC: denials, escalation, impersonation, and the reviews that explain them."""

from __future__ import annotations

from tests.differential.script.objects import RBAC, TICKETS, begin, config_map, inside, obj
from tests.differential.step import MERGE, Step, as_user

F = "rights"
GROUP = "rbac.authorization.k8s.io"
V = f"{GROUP}/v1"
MAPS = inside(F, "configmaps")
ROLES, BINDINGS = inside(F, "roles", group=V), inside(F, "rolebindings", group=V)
ALICE, BOB, NODE = as_user("alice"), as_user("bob"), as_user("system:node:worker-9", "system:nodes")
AUTHZ = "/apis/authorization.k8s.io/v1"
READ_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _subject(name: str, kind: str = "User") -> dict[str, str]:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _review(label: str, kind: str, spec: object, headers: dict[str, str] | None = None, path: str = AUTHZ) -> Step:
    group = path.removeprefix("/apis/")
    body = (
        {"apiVersion": group, "kind": kind, "spec": spec} if spec is not None else {"apiVersion": group, "kind": kind}
    )
    return Step(f"rights.{label}", "POST", f"{path}/{kind.lower()}s", body, headers=headers or {})


def _asks(verb: str, resource: str, namespace: str = "${run}-rights", **more: str) -> dict[str, object]:
    return {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": namespace, **more}}


STEPS = (
    begin(F),
    Step("rights.seed", "POST", MAPS, config_map("one", {"a": "1"})),
    Step("rights.get-denied", "GET", f"{MAPS}/one", headers=ALICE),
    Step("rights.list-denied", "GET", MAPS, headers=ALICE),
    Step("rights.watch-denied", "GET", MAPS, query={"watch": "1"}, headers=ALICE),
    Step("rights.create-denied", "POST", MAPS, config_map("two"), headers=ALICE),
    Step("rights.bad-body-denied", "POST", MAPS, b"{", headers=ALICE),
    Step("rights.patch-denied", "PATCH", f"{MAPS}/one", {}, type=MERGE, headers=ALICE),
    Step("rights.delete-denied", "DELETE", f"{MAPS}/one", headers=ALICE),
    Step("rights.collection-denied", "DELETE", MAPS, headers=ALICE),
    Step("rights.cluster-denied", "GET", "/api/v1/nodes/x", headers=ALICE),
    Step("rights.custom-denied", "GET", TICKETS, headers=ALICE),
    Step("rights.status-denied", "PATCH", f"{TICKETS}/x/status", {}, type=MERGE, headers=ALICE),
    Step("rights.unknown-resource-denied", "GET", "/apis/nowhere.example/v1/widgets", headers=ALICE),
    Step("rights.path-denied", "GET", "/metrics", headers=ALICE),
    Step("rights.unknown-path-denied", "GET", "/nothing", headers=ALICE),
    Step("rights.discovery-allowed", "GET", "/api", headers=ALICE),
    Step("rights.version-allowed", "GET", "/version/", headers=ALICE),
    # Give alice something, and see how far it reaches.
    Step("rights.role", "POST", ROLES, obj(V, "Role", "reader", rules=[READ_MAPS])),
    Step(
        "rights.binding",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "alice", subjects=[_subject("alice")], roleRef=_ref("Role", "reader")),
    ),
    Step("rights.get-allowed", "GET", f"{MAPS}/one", headers=ALICE, until=200),
    Step("rights.elsewhere-denied", "GET", "/api/v1/namespaces/default/configmaps", headers=ALICE),
    Step("rights.all-namespaces-denied", "GET", "/api/v1/configmaps", headers=ALICE),
    Step("rights.missing-for-alice", "GET", f"{MAPS}/none", headers=ALICE),
    # Bad roles and bindings.
    Step(
        "rights.role-without-verbs",
        "POST",
        ROLES,
        obj(V, "Role", "bad", rules=[{"apiGroups": [""], "resources": ["pods"]}]),
    ),
    Step(
        "rights.role-without-resources",
        "POST",
        ROLES,
        obj(V, "Role", "bad", rules=[{"apiGroups": [""], "verbs": ["get"]}]),
    ),
    Step(
        "rights.role-without-groups",
        "POST",
        ROLES,
        obj(V, "Role", "bad", rules=[{"resources": ["pods"], "verbs": ["get"]}]),
    ),
    Step(
        "rights.role-with-paths",
        "POST",
        ROLES,
        obj(V, "Role", "bad", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
    ),
    Step(
        "rights.role-mixed",
        "POST",
        f"{RBAC}/clusterroles",
        obj(
            V,
            "ClusterRole",
            "${run}-bad",
            rules=[{"nonResourceURLs": ["/x"], "resources": ["pods"], "apiGroups": [""], "verbs": ["get"]}],
        ),
    ),
    Step("rights.binding-without-ref", "POST", BINDINGS, obj(V, "RoleBinding", "bad", subjects=[])),
    Step("rights.binding-bad-ref-kind", "POST", BINDINGS, obj(V, "RoleBinding", "bad", roleRef=_ref("Thing", "x"))),
    Step(
        "rights.binding-bad-ref-group",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "bad", roleRef={"apiGroup": "x", "kind": "Role", "name": "x"}),
    ),
    Step(
        "rights.binding-bad-subject",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "bad", subjects=[{"kind": "Robot", "name": "x"}], roleRef=_ref("Role", "reader")),
    ),
    Step(
        "rights.binding-account-without-namespace",
        "POST",
        BINDINGS,
        obj(
            V, "RoleBinding", "bad", subjects=[{"kind": "ServiceAccount", "name": "x"}], roleRef=_ref("Role", "reader")
        ),
    ),
    Step(
        "rights.binding-subject-defaults",
        "POST",
        BINDINGS,
        obj(
            V,
            "RoleBinding",
            "defaults",
            subjects=[{"kind": "User", "name": "x"}, {"kind": "ServiceAccount", "name": "y", "namespace": "z"}],
            roleRef={"kind": "Role", "name": "reader"},
        ),
    ),
    Step(
        "rights.cluster-binding-to-role",
        "POST",
        f"{RBAC}/clusterrolebindings",
        obj(V, "ClusterRoleBinding", "${run}-bad", roleRef=_ref("Role", "x")),
    ),
    Step("rights.binding-change-ref", "PATCH", f"{BINDINGS}/alice", {"roleRef": {"name": "other"}}, type=MERGE),
    # Escalation: bob may write roles and bindings but holds little.
    Step(
        "rights.bob-role",
        "POST",
        ROLES,
        obj(
            V,
            "Role",
            "writer",
            rules=[{"apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": ["*"]}, READ_MAPS],
        ),
    ),
    Step(
        "rights.bob-binding",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "bob", subjects=[_subject("bob")], roleRef=_ref("Role", "writer")),
    ),
    Step("rights.bob-may", "GET", ROLES, headers=BOB, until=200),
    Step(
        "rights.escalate-role",
        "POST",
        ROLES,
        obj(V, "Role", "more", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]),
        headers=BOB,
    ),
    Step("rights.same-role", "POST", ROLES, obj(V, "Role", "same", rules=[READ_MAPS]), headers=BOB),
    Step(
        "rights.escalate-patch",
        "PATCH",
        f"{ROLES}/same",
        {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
        type=MERGE,
        headers=BOB,
    ),
    Step(
        "rights.escalate-binding",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "more", subjects=[_subject("bob")], roleRef=_ref("ClusterRole", "admin")),
        headers=BOB,
    ),
    Step(
        "rights.bind-missing-role",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "none", subjects=[_subject("bob")], roleRef=_ref("Role", "none")),
        headers=BOB,
    ),
    Step(
        "rights.bind-held-role",
        "POST",
        BINDINGS,
        obj(V, "RoleBinding", "held", subjects=[_subject("carol")], roleRef=_ref("Role", "reader")),
        headers=BOB,
    ),
    # Impersonation.
    Step("rights.impersonate-group-only", "GET", MAPS, headers={"Impersonate-Group": "x"}),
    Step(
        "rights.impersonate-account", "GET", MAPS, headers={"Impersonate-User": "system:serviceaccount:default:default"}
    ),
    Step("rights.impersonate-anonymous", "GET", MAPS, headers={"Impersonate-User": "system:anonymous"}),
    Step(
        "rights.impersonate-extra",
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        headers={
            "Impersonate-User": "dora",
            "Impersonate-Group": "g1",
            "Impersonate-Uid": "u-1",
            "Impersonate-Extra-Scopes": "view",
        },
    ),
    # A node touches its own and nothing of another.
    Step("rights.node-own-missing", "GET", "/api/v1/nodes/worker-9", headers=NODE),
    Step("rights.node-create-other", "POST", "/api/v1/nodes", obj("v1", "Node", "worker-8"), headers=NODE),
    Step("rights.node-secret", "GET", "/api/v1/namespaces/default/secrets/x", headers=NODE),
    Step("rights.node-configmaps", "GET", "/api/v1/namespaces/default/configmaps", headers=NODE),
    # Reviews.
    _review("ssar-allowed", "SelfSubjectAccessReview", _asks("get", "configmaps"), ALICE),
    _review("ssar-denied", "SelfSubjectAccessReview", _asks("delete", "configmaps"), ALICE),
    _review("ssar-admin", "SelfSubjectAccessReview", _asks("delete", "configmaps")),
    _review(
        "ssar-path", "SelfSubjectAccessReview", {"nonResourceAttributes": {"verb": "get", "path": "/healthz"}}, ALICE
    ),
    _review("ssar-empty", "SelfSubjectAccessReview", {}),
    _review(
        "ssar-both",
        "SelfSubjectAccessReview",
        {**_asks("get", "pods"), "nonResourceAttributes": {"verb": "get", "path": "/"}},
    ),
    _review("ssar-subresource", "SelfSubjectAccessReview", _asks("create", "pods", subresource="eviction"), ALICE),
    _review("sar", "SubjectAccessReview", {"user": "alice", **_asks("get", "configmaps")}),
    _review("sar-group", "SubjectAccessReview", {"groups": ["system:masters"], **_asks("get", "configmaps")}),
    _review("sar-nobody", "SubjectAccessReview", _asks("get", "configmaps")),
    _review("sar-denied", "SubjectAccessReview", {"user": "x", **_asks("get", "pods")}, ALICE),
    Step(
        "rights.lsar",
        "POST",
        f"{AUTHZ}/namespaces/${{run}}-rights/localsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": "${run}-rights"},
            "spec": {"user": "alice", **_asks("list", "configmaps")},
        },
    ),
    Step(
        "rights.lsar-other-namespace",
        "POST",
        f"{AUTHZ}/namespaces/${{run}}-rights/localsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": "${run}-rights"},
            "spec": {"user": "alice", **_asks("list", "configmaps", "default")},
        },
    ),
    _review("ssrr", "SelfSubjectRulesReview", {"namespace": "${run}-rights"}, ALICE),
    _review("ssrr-empty", "SelfSubjectRulesReview", {}, ALICE),
    _review("whoami", "SelfSubjectReview", None, ALICE, "/apis/authentication.k8s.io/v1"),
    _review("token-review-bad", "TokenReview", {"token": "nonsense"}, path="/apis/authentication.k8s.io/v1"),
    _review("token-review-empty", "TokenReview", {}, path="/apis/authentication.k8s.io/v1"),
    Step("rights.bad-token", "GET", MAPS, headers={"Authorization": "Bearer nonsense"}, bare=True),
    Step("rights.bad-scheme", "GET", MAPS, headers={"Authorization": "Basic YTpi"}, bare=True),
    Step("rights.bad-token-health", "GET", "/healthz", headers={"Authorization": "Bearer nonsense"}, bare=True),
)
