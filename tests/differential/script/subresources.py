"""Status, scale, eviction, binding, tokens and what else hangs below an object."""

from __future__ import annotations

from tests.differential.script.objects import begin, captures, inside, obj, pod
from tests.differential.step import JSON_PATCH, MERGE, STRATEGIC, Step

F = "subresources"
PODS = inside(F, "pods")
ACCOUNTS = inside(F, "serviceaccounts")
DEPLOYMENTS = inside(F, "deployments", group="apps/v1")
BUDGETS = inside(F, "poddisruptionbudgets", group="policy/v1")
LABELS = {"app": "guarded"}
READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
TEMPLATE = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}


def _eviction(name: str, **more: object) -> object:
    return obj("policy/v1", "Eviction", name, meta={"namespace": "${run}-subresources"}, **more)


def _token(**spec: object) -> object:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


STEPS = (
    begin(F),
    # Status of a native kind.
    Step("subresources.pod", "POST", PODS, pod("p", labels=LABELS), capture=captures("p")),
    Step("subresources.pod-status", "PATCH", f"{PODS}/p/status", READY, type=STRATEGIC),
    Step("subresources.pod-status-get", "GET", f"{PODS}/p/status"),
    Step(
        "subresources.pod-status-spec-ignored", "PATCH", f"{PODS}/p/status", {"spec": {"hostNetwork": True}}, type=MERGE
    ),
    Step("subresources.pod-status-through-object", "PATCH", f"{PODS}/p", {"status": {"phase": "Failed"}}, type=MERGE),
    Step("subresources.pod-status-missing", "PATCH", f"{PODS}/none/status", READY, type=STRATEGIC),
    Step("subresources.pod-status-type-error", "PATCH", f"{PODS}/p/status", {"status": {"phase": 5}}, type=MERGE),
    Step("subresources.map-status", "GET", inside(F, "configmaps", "x/status")),
    # Eviction against budgets.
    Step("subresources.evict-missing", "POST", f"{PODS}/none/eviction", _eviction("none")),
    Step("subresources.evict-wrong-name", "POST", f"{PODS}/p/eviction", _eviction("other")),
    Step("subresources.evict-wrong-kind", "POST", f"{PODS}/p/eviction", pod("p")),
    Step(
        "subresources.budget",
        "POST",
        BUDGETS,
        obj("policy/v1", "PodDisruptionBudget", "b", spec={"minAvailable": 1, "selector": {"matchLabels": LABELS}}),
    ),
    Step("subresources.evict-blocked", "POST", f"{PODS}/p/eviction", _eviction("p")),
    Step(
        "subresources.budget-two",
        "POST",
        BUDGETS,
        obj("policy/v1", "PodDisruptionBudget", "b2", spec={"minAvailable": 1, "selector": {"matchLabels": LABELS}}),
    ),
    Step("subresources.evict-two-budgets", "POST", f"{PODS}/p/eviction", _eviction("p")),
    Step("subresources.budgets-gone", "DELETE", BUDGETS),
    Step("subresources.evict-dry-run", "POST", f"{PODS}/p/eviction", _eviction("p", deleteOptions={"dryRun": ["All"]})),
    Step(
        "subresources.evict-precondition",
        "POST",
        f"{PODS}/p/eviction",
        _eviction("p", deleteOptions={"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
    ),
    Step("subresources.evict", "POST", f"{PODS}/p/eviction", _eviction("p", deleteOptions={"gracePeriodSeconds": 0})),
    Step("subresources.evicted", "GET", f"{PODS}/p", until=404),
    # Binding.
    Step("subresources.pod-to-bind", "POST", PODS, pod("q")),
    Step("subresources.bind-nowhere", "POST", f"{PODS}/q/binding", obj("v1", "Binding", "q", target={"kind": "Node"})),
    Step(
        "subresources.bind",
        "POST",
        f"{PODS}/q/binding",
        obj("v1", "Binding", "q", target={"kind": "Node", "name": "n1"}),
    ),
    Step(
        "subresources.bind-again",
        "POST",
        f"{PODS}/q/binding",
        obj("v1", "Binding", "q", target={"kind": "Node", "name": "n2"}),
    ),
    Step("subresources.bound", "GET", f"{PODS}/q"),
    # Scale.
    Step(
        "subresources.deployment",
        "POST",
        DEPLOYMENTS,
        obj("apps/v1", "Deployment", "d", spec={"selector": {"matchLabels": {"app": "d"}}, "template": TEMPLATE}),
        capture=captures("d"),
    ),
    Step("subresources.scale-get", "GET", f"{DEPLOYMENTS}/d/scale"),
    Step("subresources.scale-patch", "PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}}, type=MERGE),
    Step(
        "subresources.scale-json-patch",
        "PATCH",
        f"{DEPLOYMENTS}/d/scale",
        [{"op": "replace", "path": "/spec/replicas", "value": 2}],
        type=JSON_PATCH,
    ),
    Step(
        "subresources.scale-put",
        "PUT",
        f"{DEPLOYMENTS}/d/scale",
        obj("autoscaling/v1", "Scale", "d", meta={"namespace": "${run}-subresources"}, spec={"replicas": 5}),
    ),
    Step(
        "subresources.scale-put-stale",
        "PUT",
        f"{DEPLOYMENTS}/d/scale",
        obj(
            "autoscaling/v1",
            "Scale",
            "d",
            meta={"namespace": "${run}-subresources", "resourceVersion": "${d.version}"},
            spec={"replicas": 6},
        ),
    ),
    Step("subresources.scale-put-wrong-kind", "PUT", f"{DEPLOYMENTS}/d/scale", obj("v1", "Pod", "d")),
    Step("subresources.scale-negative", "PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, type=MERGE),
    Step("subresources.scale-missing", "GET", f"{DEPLOYMENTS}/none/scale"),
    Step("subresources.scale-of-map", "GET", inside(F, "configmaps", "x/scale")),
    Step(
        "subresources.deployment-selector",
        "PATCH",
        f"{DEPLOYMENTS}/d",
        {"spec": {"selector": {"matchLabels": {"app": "e"}}}},
        type=MERGE,
    ),
    Step(
        "subresources.deployment-mismatch",
        "POST",
        DEPLOYMENTS,
        obj("apps/v1", "Deployment", "bad", spec={"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}),
    ),
    Step(
        "subresources.deployment-status",
        "PATCH",
        f"{DEPLOYMENTS}/d/status",
        {"status": {"replicas": 1, "observedGeneration": 1}},
        type=MERGE,
    ),
    Step("subresources.deployment-read", "GET", f"{DEPLOYMENTS}/d"),
    # Tokens.
    Step("subresources.account", "POST", ACCOUNTS, obj("v1", "ServiceAccount", "sa")),
    Step("subresources.token", "POST", f"{ACCOUNTS}/sa/token", _token(), capture={"token": "status.token"}),
    Step("subresources.token-works", "GET", "/api", headers={"Authorization": "Bearer ${token}"}, bare=True),
    Step("subresources.token-denied", "GET", PODS, headers={"Authorization": "Bearer ${token}"}, bare=True),
    Step(
        "subresources.token-audience",
        "POST",
        f"{ACCOUNTS}/sa/token",
        _token(audiences=["vault"], expirationSeconds=600),
    ),
    Step("subresources.token-short", "POST", f"{ACCOUNTS}/sa/token", _token(expirationSeconds=5)),
    Step("subresources.token-long", "POST", f"{ACCOUNTS}/sa/token", _token(expirationSeconds=1 << 33)),
    Step("subresources.token-missing", "POST", f"{ACCOUNTS}/none/token", _token()),
    Step(
        "subresources.token-bound-missing",
        "POST",
        f"{ACCOUNTS}/sa/token",
        _token(boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "none"}),
    ),
    Step("subresources.token-wrong-kind", "POST", f"{ACCOUNTS}/sa/token", obj("v1", "Pod", "sa")),
    Step(
        "subresources.token-review",
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "${token}"}},
    ),
    Step(
        "subresources.token-review-audience",
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "${token}", "audiences": ["vault"]},
        },
    ),
    # Namespaces: finalize is a replacement of spec.finalizers only.
    Step("subresources.finalize-patch", "PATCH", "/api/v1/namespaces/${run}-subresources/finalize", {}, type=MERGE),
    Step(
        "subresources.finalize-keeps",
        "PUT",
        "/api/v1/namespaces/${run}-subresources/finalize",
        obj("v1", "Namespace", "${run}-subresources", spec={"finalizers": ["kubernetes"]}),
    ),
)
