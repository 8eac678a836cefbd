"""Names in a bed: CoreDNS as a Deployment, behind the address that every kubelet tells its pods.

    start(kubectl, registry, coredns)

Pods find Services by `server.namespace.svc.cluster.local` and shorter; there is no way to other networks, so other names are
refused at once instead of waited for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.bed.images import program_image, push
from tests.bed.kubectl import Kubectl
from tests.bed.settings import CLUSTER_DNS

NAME = "coredns"
LABELS = {"app": NAME}
IMAGE = f"ghcr.io/bed/{NAME}:1"
COREFILE = """\
.:53 {
    errors
    ready
    kubernetes cluster.local in-addr.arpa {
        pods insecure
    }
}
"""


def start(kubectl: Kubectl, registry: str, program: Path) -> None:
    """Push the image and make the objects; returns when the name server says that it is ready."""
    push(registry, program_image(NAME, program))
    kubectl.ok("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    kubectl.wait(f"deployment/{NAME}", "condition=Available")


def objects() -> list[dict[str, Any]]:
    """What a cluster has for names: an account that may look, the settings, the pod, the address."""
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    ports = [{"name": f"dns-{protocol.lower()}", "port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    return [
        _object("v1", "ServiceAccount"),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", rules=rules),
        _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", subjects=[subject], roleRef=role),
        _object("v1", "ConfigMap", data={"Corefile": COREFILE}),
        _object("apps/v1", "Deployment", spec=_deployment()),
        _object("v1", "Service", spec={"clusterIP": CLUSTER_DNS, "selector": LABELS, "ports": ports}),
    ]


def _deployment() -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": IMAGE,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "settings", "configMap": {"name": NAME}}],
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }


def _object(version: str, kind: str, **fields: Any) -> dict[str, Any]:
    namespaced = not kind.startswith("ClusterRole")
    metadata = {"name": NAME, **({"namespace": "kube-system"} if namespaced else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
