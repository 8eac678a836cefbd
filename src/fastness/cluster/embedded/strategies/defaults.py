"""What Kubernetes fills in where a client left a native object open.

These are the defaults that users see in `kubectl get -o yaml` and that patches and drift detection compare with: secrets,
namespaces, pods and their templates, workloads, access. They run on every write, so that a field taken away comes back with
its default, and they belong to whoever wrote the object. Functions replace nested values and never change them in place.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from fastness.model.kind import JsonObject

NAME_LABEL = "kubernetes.io/metadata.name"
RBAC_GROUP = "rbac.authorization.k8s.io"
_POD_SPEC: Mapping[str, Any] = {
    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler", "securityContext": {},
}  # fmt: skip
_CONTAINER: Mapping[str, Any] = {
    "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
}  # fmt: skip
_QUARTER: JsonObject = {"maxUnavailable": "25%", "maxSurge": "25%"}


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


def pod(obj: JsonObject) -> None:
    """A pod by itself."""
    if isinstance(obj.get("spec"), dict):
        obj["spec"] = {"enableServiceLinks": True, **_pod_spec(obj["spec"])}


def _pod_spec(spec: JsonObject) -> JsonObject:
    filled = {**_POD_SPEC, **spec}
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            filled[field] = [_container(each) if isinstance(each, dict) else each for each in spec[field]]
    return filled


def _container(container: JsonObject) -> JsonObject:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    pull = "Always" if image and "@" not in image and tag in ("", "latest") else "IfNotPresent"
    filled = {**_CONTAINER, "imagePullPolicy": pull, **container}
    if isinstance(container.get("ports"), list):
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    return filled


def _with_template(spec: JsonObject) -> JsonObject:
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return spec
    return {**spec, "template": {**template, "spec": _pod_spec(template["spec"])}}


def replicated(obj: JsonObject) -> None:
    """Replica sets and their like: one replica."""
    if isinstance(obj.get("spec"), dict):
        obj["spec"] = _with_template({"replicas": 1, **obj["spec"]})


def deployment(obj: JsonObject) -> None:
    """Deployments roll by quarters, keep ten revisions and give up after ten minutes."""
    if not isinstance(obj.get("spec"), dict):
        return
    spec = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, **obj["spec"]}
    strategy = {"type": "RollingUpdate", **(spec.get("strategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**_QUARTER, **(strategy.get("rollingUpdate") or {})}
    if spec.get("paused") is False:
        del spec["paused"]
    obj["spec"] = _with_template({**spec, "strategy": strategy})


def templated(obj: JsonObject) -> None:
    """Kinds with a pod template and no more defaults than its own."""
    if isinstance(obj.get("spec"), dict):
        obj["spec"] = _with_template(obj["spec"])


def service(obj: JsonObject) -> None:
    """A service inside the cluster, whose ports lead to the same port of its pods."""
    if not isinstance(obj.get("spec"), dict):
        return
    spec = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", **obj["spec"]}
    if isinstance(spec.get("ports"), list):
        spec["ports"] = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec["ports"]]
    obj["spec"] = spec


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
