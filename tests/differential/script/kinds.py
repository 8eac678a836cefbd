"""More native kinds: what each one's object looks like after a plain create, and the few rules that users meet.

The defaults of a kind are what `kubectl diff` and drift detection compare with, so they are compared field by field.
"""

from __future__ import annotations

from typing import Any

from tests.differential.script.objects import begin, captures, inside, obj
from tests.differential.step import MERGE, Step, as_user

F = "kinds"
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
JOB_TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "a:1"}], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"app": "x"}}
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CSR = (  # a request for CN=system:node:diff, signed with a key that was thrown away
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIdU1JR1VBZ0VBTURJeEdUQVhCZ05WQkFNTUVITjVjM1JsYlRw"
    "dWIyUmxPbVJwWm1ZeEZUQVRCZ05WQkFvTQpESE41YzNSbGJUcHViMlJsY3pCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OUF3RUhB"
    "MElBQkFBTTRlalMvVWpSCnR2Q3Blb0NEUm5iZzl6U1FkdUhSODZSMG9ySlhyMEtrQUZHdWNXZVl3Q1F4c3NGNU0rbnludjVCck04"
    "c2pjbWsKRFplNlFzYkpwNjZnQURBS0JnZ3Foa2pPUFFRREFnTkpBREJHQWlFQWlGak9wblhjN1pJUFNkY2k5RytDR2J6QgpWYkxm"
    "UGxsSnZjSEdYOUF6a3F3Q0lRQ0RqUGl0ektrUEZZVS9VQVB1WUhoUEJMQnBuN0FBK056NFo2Z0kzbG9OCjN3PT0KLS0tLS1FTkQg"
    "Q0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
)
WHO = as_user("carol", "system:masters")


def _make(label: str, api_version: str, plural: str, kind: str, /, *, cluster: bool = False, **content: Any) -> Step:
    """Create one object of a kind."""
    group = api_version if "/" in api_version else ""
    root = f"/apis/{api_version}" if group else "/api/v1"
    path = f"{root}/{plural}" if cluster else inside(F, plural, group=group)
    name = f"${{run}}-{label}" if cluster else label
    return Step(f"kinds.{label}", "POST", path, obj(api_version, kind, name, **content))


def _request(name: str, **spec: Any) -> Any:
    fields = {"request": CSR, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], **spec}
    return obj("certificates.k8s.io/v1", "CertificateSigningRequest", name, spec=fields)


def _approval(kind: str, status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "Tests", "message": "by a test"}


STEPS = (
    begin(F),
    _make("daemonset", "apps/v1", "daemonsets", "DaemonSet", spec={"selector": SELECTOR, "template": TEMPLATE}),
    _make("replicaset", "apps/v1", "replicasets", "ReplicaSet", spec={"selector": SELECTOR, "template": TEMPLATE}),
    _make(
        "statefulset",
        "apps/v1",
        "statefulsets",
        "StatefulSet",
        spec={"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE},
    ),
    _make("job", "batch/v1", "jobs", "Job", spec={"template": JOB_TEMPLATE}),
    _make("job-restarting", "batch/v1", "jobs", "Job", spec={"template": TEMPLATE}),
    _make(
        "cronjob",
        "batch/v1",
        "cronjobs",
        "CronJob",
        spec={"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}},
    ),
    _make(
        "claim",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    _make("quota", "v1", "resourcequotas", "ResourceQuota", spec={"hard": {"pods": "2"}}),
    _make("limits", "v1", "limitranges", "LimitRange", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}),
    _make(
        "service",
        "v1",
        "services",
        "Service",
        spec={"clusterIP": "None", "selector": {"app": "x"}, "ports": [{"port": 80}]},
    ),
    _make(
        "endpoints",
        "v1",
        "endpoints",
        "Endpoints",
        subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}],
    ),
    _make("policy", "networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", spec={"podSelector": {}}),
    _make(
        "ingress",
        "networking.k8s.io/v1",
        "ingresses",
        "Ingress",
        spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    ),
    _make(
        "ingressclass",
        "networking.k8s.io/v1",
        "ingressclasses",
        "IngressClass",
        cluster=True,
        spec={"controller": "example.com/c"},
    ),
    _make(
        "storageclass", "storage.k8s.io/v1", "storageclasses", "StorageClass", cluster=True, provisioner="example.com/p"
    ),
    _make("runtimeclass", "node.k8s.io/v1", "runtimeclasses", "RuntimeClass", cluster=True, handler="kata"),
    _make("runtimeclass-without-handler", "node.k8s.io/v1", "runtimeclasses", "RuntimeClass", cluster=True),
    _make(
        "webhook",
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        cluster=True,
        webhooks=[
            {
                "name": "a.example.com",
                "clientConfig": {"url": "https://a.example.com"},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "rules": [
                    {
                        "apiGroups": ["none.example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["nones"],
                    }
                ],
            }
        ],
    ),
    _make(
        "slice",
        "discovery.k8s.io/v1",
        "endpointslices",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
    _make("account", "v1", "serviceaccounts", "ServiceAccount"),
    _make("podtemplate", "v1", "podtemplates", "PodTemplate", template=TEMPLATE),
    _make(
        "clusterrole",
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        "ClusterRole",
        cluster=True,
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"none": "such"}}]},
        rules=None,
    ),
    _make(
        "volume",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        cluster=True,
        spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}},
    ),
    # A signing request from its birth to its approval.
    Step("kinds.csr", "POST", CSRS, _request("${run}-csr"), headers=WHO, capture=captures("csr")),
    Step("kinds.csr-bad-usage", "POST", CSRS, _request("${run}-bad", usages=["flying"]), headers=WHO),
    Step("kinds.csr-bad-signer", "POST", CSRS, _request("${run}-bad", signerName="nobody"), headers=WHO),
    Step("kinds.csr-spec-fixed", "PATCH", f"{CSRS}/${{run}}-csr", {"spec": {"usages": ["server auth"]}}, type=MERGE),
    Step(
        "kinds.csr-approve-plain",
        "PATCH",
        f"{CSRS}/${{run}}-csr",
        {"status": {"conditions": [_approval("Approved")]}},
        type=MERGE,
    ),
    Step(
        "kinds.csr-approve",
        "PATCH",
        f"{CSRS}/${{run}}-csr/approval",
        {"status": {"conditions": [_approval("Approved")]}},
        type=MERGE,
    ),
    Step(
        "kinds.csr-deny-approved",
        "PATCH",
        f"{CSRS}/${{run}}-csr/approval",
        {"status": {"conditions": [_approval("Approved"), _approval("Denied")]}},
        type=MERGE,
    ),
    Step(
        "kinds.csr-certificate",
        "PATCH",
        f"{CSRS}/${{run}}-csr/status",
        {"status": {"certificate": "bm9wZQ=="}},
        type=MERGE,
    ),
    Step(
        "kinds.csr-by-signer",
        "GET",
        CSRS,
        query={"fieldSelector": "spec.signerName=kubernetes.io/kube-apiserver-client"},
    ),
    Step("kinds.csr-delete", "DELETE", f"{CSRS}/${{run}}-csr"),
    *(
        Step(f"kinds.{label}-delete", "DELETE", f"/apis/{group}/{plural}/${{run}}-{label}")
        for label, group, plural in (
            ("ingressclass", "networking.k8s.io/v1", "ingressclasses"),
            ("storageclass", "storage.k8s.io/v1", "storageclasses"),
            ("runtimeclass", "node.k8s.io/v1", "runtimeclasses"),
            ("webhook", "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"),
            ("clusterrole", "rbac.authorization.k8s.io/v1", "clusterroles"),
        )
    ),
    Step("kinds.volume-delete", "DELETE", "/api/v1/persistentvolumes/${run}-volume"),
)
