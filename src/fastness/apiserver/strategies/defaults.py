"""What Kubernetes fills in where a client left a native object open.

These are the defaults that users see in `kubectl get -o yaml` and that patches and drift detection compare with: secrets,
namespaces, services, storage, access; those of pods are in `workloads.py`. They run on every write, so that a field taken away
comes back with its default, and they belong to whoever wrote the object. Functions replace nested values and never change them
in place.
"""

from __future__ import annotations

import base64
from typing import Any

from fastness.kinds.kind import JsonObject

NAME_LABEL = "kubernetes.io/metadata.name"
RBAC_GROUP = "rbac.authorization.k8s.io"


def namespace(obj: JsonObject) -> None:
    """A namespace carries its name as a label, for selectors."""
    meta = obj["metadata"]
    if meta.get("name"):
        obj["metadata"] = {**meta, "labels": {**(meta.get("labels") or {}), NAME_LABEL: meta["name"]}}


def secret(obj: JsonObject) -> None:
    """Plain strings are encoded; the type is Opaque."""
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    if not obj.get("type"):
        obj["type"] = "Opaque"


def without_empty_data(obj: JsonObject) -> None:
    """An empty map of a config map is no map."""
    for field in ("data", "binaryData"):
        if field in obj and not obj[field]:
            del obj[field]


def service(obj: JsonObject) -> None:
    """A service inside the cluster, whose ports lead to the same port of its pods."""
    if not isinstance(obj.get("spec"), dict):
        return
    spec = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", **obj["spec"]}
    if isinstance(spec.get("ports"), list):
        spec["ports"] = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec["ports"]]
    obj["spec"] = spec


def endpoints(obj: JsonObject) -> None:
    """Ports are TCP."""
    if isinstance(obj.get("subsets"), list):
        obj["subsets"] = [_with_ports(subset) for subset in obj["subsets"]]


def _with_ports(subset: Any) -> Any:
    if not isinstance(subset, dict) or not isinstance(subset.get("ports"), list):
        return subset
    return {**subset, "ports": [{"protocol": "TCP", **port} for port in subset["ports"]]}


def endpoint_slice(obj: JsonObject) -> None:
    """Ports are TCP and have the empty name."""
    if isinstance(obj.get("ports"), list):
        obj["ports"] = [{"name": "", "protocol": "TCP", **port} for port in obj["ports"]]
    if isinstance(obj.get("endpoints"), list):
        obj["endpoints"] = [{"conditions": {}, **each} for each in obj["endpoints"]]


def network_policy(obj: JsonObject) -> None:
    """A policy is about what comes in, and about what goes out when it speaks of that."""
    spec = obj.get("spec")
    if isinstance(spec, dict) and not spec.get("policyTypes"):
        obj["spec"] = {**spec, "policyTypes": ["Ingress", *(["Egress"] if spec.get("egress") else [])]}


def storage_class(obj: JsonObject) -> None:
    """Volumes are bound at once and deleted with their claims."""
    obj.update({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **obj})


def claim(obj: JsonObject) -> None:
    """A claim is for a file system."""
    if isinstance(obj.get("spec"), dict):
        obj["spec"] = {"volumeMode": "Filesystem", **obj["spec"]}


def volume(obj: JsonObject) -> None:
    """A volume is a file system that outlives its claim."""
    if isinstance(obj.get("spec"), dict):
        spec = {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain", **obj["spec"]}
        if isinstance(spec.get("hostPath"), dict):
            spec["hostPath"] = {"type": "", **spec["hostPath"]}
        obj["spec"] = spec


def webhooks(obj: JsonObject) -> None:
    """A webhook that cannot be asked within ten seconds forbids."""
    if isinstance(obj.get("webhooks"), list):
        obj["webhooks"] = [_webhook(each, obj["kind"]) for each in obj["webhooks"]]


def _webhook(hook: Any, kind: str) -> Any:
    if not isinstance(hook, dict):
        return hook
    filled = {
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, "timeoutSeconds": 10,
        **({"reinvocationPolicy": "Never"} if kind == "MutatingWebhookConfiguration" else {}), **hook,
    }  # fmt: skip
    if isinstance(hook.get("rules"), list):
        filled["rules"] = [{"scope": "*", **rule} for rule in hook["rules"]]
    return filled


def priority_class(obj: JsonObject) -> None:
    """A priority preempts lower ones."""
    if not obj.get("preemptionPolicy"):
        obj["preemptionPolicy"] = "PreemptLowerPriority"


def binding(obj: JsonObject) -> None:
    """Roles and users are of the RBAC group unless stated."""
    if isinstance(obj.get("roleRef"), dict) and not obj["roleRef"].get("apiGroup"):
        obj["roleRef"] = {**obj["roleRef"], "apiGroup": RBAC_GROUP}
    if isinstance(obj.get("subjects"), list):
        obj["subjects"] = [_subject(each) for each in obj["subjects"]]


def _subject(subject: Any) -> Any:
    if isinstance(subject, dict) and subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
        return {**subject, "apiGroup": RBAC_GROUP}
    return subject
