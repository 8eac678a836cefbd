"""Native kinds: what the server fills in and what it refuses."""

from __future__ import annotations

from typing import Any

from tests.differential.script.objects import begin, captures, config_map, inside, obj, pod
from tests.differential.step import MERGE, STRATEGIC, Step

F = "natives"
SECRETS, MAPS = inside(F, "secrets"), inside(F, "configmaps")
EVENTS = inside(F, "events")
NEW_EVENTS = inside(F, "events", group="events.k8s.io/v1")
LEASES = inside(F, "leases", group="coordination.k8s.io/v1")
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
INVOLVED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm", "namespace": "${run}-natives"}


def _secret(name: str, **content: Any) -> Any:
    return obj("v1", "Secret", name, **content)


def _post(label: str, path: str, body: object, **more: object) -> Step:
    return Step(f"natives.{label}", "POST", path, body, **more)  # type: ignore[arg-type]  # fields of a step


STEPS = (
    begin(F),
    # Secrets and config maps.
    _post("secret", SECRETS, _secret("s", data={"a": "YQ=="}, stringData={"b": "b", "a": "over"})),
    _post("secret-empty", SECRETS, _secret("empty")),
    _post("secret-bad-base64", SECRETS, _secret("bad", data={"a": "!!"})),
    _post("secret-bad-key", SECRETS, _secret("bad", stringData={"a b": "x"})),
    _post("secret-number", SECRETS, _secret("bad", stringData={"a": 1})),
    _post("secret-tls-incomplete", SECRETS, _secret("tls", type="kubernetes.io/tls", stringData={"tls.crt": "x"})),
    _post(
        "secret-docker-bad",
        SECRETS,
        _secret("dock", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"}),
    ),
    _post("secret-account-token", SECRETS, _secret("tok", type="kubernetes.io/service-account-token")),
    Step("natives.secret-type", "PATCH", f"{SECRETS}/s", {"type": "other"}, type=MERGE),
    Step("natives.secret-immutable", "PATCH", f"{SECRETS}/s", {"immutable": True}, type=MERGE),
    Step("natives.secret-immutable-change", "PATCH", f"{SECRETS}/s", {"stringData": {"b": "c"}}, type=MERGE),
    Step("natives.secret-immutable-undo", "PATCH", f"{SECRETS}/s", {"immutable": False}, type=MERGE),
    Step("natives.secret-immutable-label", "PATCH", f"{SECRETS}/s", {"metadata": {"labels": {"a": "b"}}}, type=MERGE),
    _post("map-bad-key", MAPS, config_map("bad", {"a b": "1"})),
    _post("map-both", MAPS, {**config_map("bad", {"a": "1"}), "binaryData": {"a": "YQ=="}}),
    _post("map-bad-binary", MAPS, {**config_map("bad"), "binaryData": {"a": "!!"}}),
    _post("map-binary", MAPS, {**config_map("binary"), "binaryData": {"a": "YQ=="}}),
    _post("map-large", MAPS, config_map("large", {"a": "x" * (1024 * 1024 + 1)})),
    _post("map-immutable", MAPS, {**config_map("fixed", {"a": "1"}), "immutable": True}),
    Step("natives.map-immutable-change", "PATCH", f"{MAPS}/fixed", {"data": {"a": "2"}}, type=MERGE),
    # Events, by both groups.
    _post(
        "event",
        EVENTS,
        obj(
            "v1",
            "Event",
            "e1",
            involvedObject=INVOLVED,
            reason="Seen",
            message="m",
            type="Normal",
            source={"component": "tests"},
            count=1,
            firstTimestamp="2020-01-01T00:00:00Z",
            lastTimestamp="2020-01-01T00:00:00Z",
        ),
    ),
    Step("natives.event-as-new", "GET", f"{NEW_EVENTS}/e1"),
    _post(
        "event-other-namespace",
        EVENTS,
        obj("v1", "Event", "e2", involvedObject={**INVOLVED, "namespace": "default"}, reason="Seen"),
    ),
    _post("event-without-object", EVENTS, obj("v1", "Event", "e3", reason="Seen")),
    _post(
        "event-new",
        NEW_EVENTS,
        obj(
            "events.k8s.io/v1",
            "Event",
            "e4",
            regarding=INVOLVED,
            reason="Seen",
            note="m",
            type="Normal",
            action="Look",
            reportingController="example.com/tests",
            reportingInstance="t-1",
            eventTime="2020-01-01T00:00:00.000000Z",
        ),
    ),
    Step("natives.event-new-as-old", "GET", f"{EVENTS}/e4"),
    _post(
        "event-new-incomplete", NEW_EVENTS, obj("events.k8s.io/v1", "Event", "e5", regarding=INVOLVED, reason="Seen")
    ),
    _post(
        "event-new-bad-type",
        NEW_EVENTS,
        obj(
            "events.k8s.io/v1",
            "Event",
            "e6",
            regarding=INVOLVED,
            reason="Seen",
            type="Odd",
            action="Look",
            reportingController="example.com/tests",
            reportingInstance="t-1",
            eventTime="2020-01-01T00:00:00.000000Z",
        ),
    ),
    Step("natives.events-by-object", "GET", EVENTS, query={"fieldSelector": "involvedObject.name=cm,reason=Seen"}),
    Step("natives.events-new-by-object", "GET", NEW_EVENTS, query={"fieldSelector": "regarding.name=cm"}),
    # Leases.
    _post(
        "lease",
        LEASES,
        obj(
            "coordination.k8s.io/v1",
            "Lease",
            "l",
            spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.123456Z"},
        ),
    ),
    _post("lease-zero", LEASES, obj("coordination.k8s.io/v1", "Lease", "bad", spec={"leaseDurationSeconds": 0})),
    _post("lease-bad-time", LEASES, obj("coordination.k8s.io/v1", "Lease", "bad", spec={"renewTime": "yesterday"})),
    _post("lease-negative", LEASES, obj("coordination.k8s.io/v1", "Lease", "bad", spec={"leaseTransitions": -1})),
    # Nodes.
    _post(
        "node", "/api/v1/nodes", obj("v1", "Node", "${run}-node", meta={"labels": {"a": "b"}}), capture=captures("node")
    ),
    Step(
        "natives.node-cordon", "PATCH", "/api/v1/nodes/${run}-node", {"spec": {"unschedulable": True}}, type=STRATEGIC
    ),
    Step(
        "natives.node-taint",
        "PATCH",
        "/api/v1/nodes/${run}-node",
        {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
        type=STRATEGIC,
    ),
    Step(
        "natives.node-bad-taint",
        "PATCH",
        "/api/v1/nodes/${run}-node",
        {"spec": {"taints": [{"key": "k", "effect": "Never"}]}},
        type=STRATEGIC,
    ),
    Step(
        "natives.node-status",
        "PATCH",
        "/api/v1/nodes/${run}-node/status",
        {"metadata": {"labels": {"c": "d"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        type=STRATEGIC,
    ),
    Step(
        "natives.node-uncordon", "PATCH", "/api/v1/nodes/${run}-node", {"spec": {"unschedulable": None}}, type=STRATEGIC
    ),
    Step("natives.node-provider", "PATCH", "/api/v1/nodes/${run}-node", {"spec": {"providerID": "x://1"}}, type=MERGE),
    Step(
        "natives.node-provider-change",
        "PATCH",
        "/api/v1/nodes/${run}-node",
        {"spec": {"providerID": "x://2"}},
        type=MERGE,
    ),
    Step("natives.node-delete", "DELETE", "/api/v1/nodes/${run}-node"),
    # Namespaces.
    _post(
        "namespace-labels", "/api/v1/namespaces", obj("v1", "Namespace", "${run}-labels", meta={"labels": {"a": "b"}})
    ),
    Step(
        "natives.namespace-name-label",
        "PATCH",
        "/api/v1/namespaces/${run}-labels",
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}},
        type=MERGE,
    ),
    Step("natives.namespace-put", "PUT", "/api/v1/namespaces/${run}-labels", obj("v1", "Namespace", "${run}-labels")),
    Step("natives.namespace-status", "GET", "/api/v1/namespaces/${run}-labels/status"),
    Step("natives.namespace-delete", "DELETE", "/api/v1/namespaces/${run}-labels"),
    # Accounts, pods, services, priority classes, disruption budgets.
    _post("account", inside(F, "serviceaccounts"), obj("v1", "ServiceAccount", "sa")),
    _post("pod", inside(F, "pods"), pod("p")),
    _post("pod-without-containers", inside(F, "pods"), obj("v1", "Pod", "bad", spec={"containers": []})),
    _post("pod-without-spec", inside(F, "pods"), obj("v1", "Pod", "bad")),
    _post("pod-without-image", inside(F, "pods"), obj("v1", "Pod", "bad", spec={"containers": [{"name": "a"}]})),
    _post(
        "pod-bad-policy",
        inside(F, "pods"),
        obj("v1", "Pod", "bad", spec={"restartPolicy": "Maybe", "containers": [{"name": "a", "image": "a"}]}),
    ),
    _post(
        "pod-bad-container-name",
        inside(F, "pods"),
        obj("v1", "Pod", "bad", spec={"containers": [{"name": "A_", "image": "a"}]}),
    ),
    _post(
        "pod-type-error", inside(F, "pods"), obj("v1", "Pod", "bad", spec={"containers": [{"name": "a", "image": 1}]})
    ),
    _post(
        "budget-both",
        inside(F, "poddisruptionbudgets", group="policy/v1"),
        obj(
            "policy/v1",
            "PodDisruptionBudget",
            "bad",
            spec={"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        ),
    ),
    _post(
        "budget",
        inside(F, "poddisruptionbudgets", group="policy/v1"),
        obj(
            "policy/v1",
            "PodDisruptionBudget",
            "b",
            spec={"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
        ),
    ),
    _post(
        "class",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        obj("scheduling.k8s.io/v1", "PriorityClass", "${run}-high", value=5),
    ),
    Step(
        "natives.class-value",
        "PATCH",
        "/apis/scheduling.k8s.io/v1/priorityclasses/${run}-high",
        {"value": 6},
        type=MERGE,
    ),
    Step("natives.class-delete", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/${run}-high"),
    # Signing requests.
    _post(
        "csr-garbage",
        CSRS,
        obj(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "${run}-csr",
            spec={"request": "YQ==", "signerName": "example.com/s", "usages": ["client auth"]},
        ),
    ),
    _post(
        "csr-without-signer",
        CSRS,
        obj("certificates.k8s.io/v1", "CertificateSigningRequest", "${run}-csr", spec={"request": "YQ=="}),
    ),
)
