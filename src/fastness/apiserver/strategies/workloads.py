"""Defaults of pods and of the kinds that make pods: containers, templates, and how each kind replaces what it made.

Functions replace nested values and never change them in place; a shape that is not what it should be is left as it is and
refused by validation later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.kinds.kind import JsonObject

_POD_SPEC: Mapping[str, Any] = {
    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler", "securityContext": {},
}  # fmt: skip
_CONTAINER: Mapping[str, Any] = {
    "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
}  # fmt: skip
_QUARTER: Mapping[str, Any] = {"maxUnavailable": "25%", "maxSurge": "25%"}
_ONE_BY_ONE: Mapping[str, Any] = {"maxUnavailable": 1, "maxSurge": 0}


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


def with_template(spec: JsonObject) -> JsonObject:
    """The owner of a `template`, with the defaults of its pods."""
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return spec
    return {**spec, "template": {"metadata": {}, **template, "spec": _pod_spec(template["spec"])}}


def _with_rolling(strategy: Any, rolling: Mapping[str, Any]) -> JsonObject:
    """A strategy that rolls in this way unless it says otherwise."""
    filled = {"type": "RollingUpdate", **(strategy or {})}
    if filled["type"] == "RollingUpdate":
        filled["rollingUpdate"] = {**rolling, **(filled.get("rollingUpdate") or {})}
    return filled


def replicated(obj: JsonObject) -> None:
    """Replica sets and replication controllers: one replica."""
    if isinstance(obj.get("spec"), dict):
        obj["spec"] = with_template({"replicas": 1, **obj["spec"]})


def deployment(obj: JsonObject) -> None:
    """Deployments roll by quarters, keep ten revisions and give up after ten minutes."""
    if not isinstance(obj.get("spec"), dict):
        return
    spec = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, **obj["spec"]}
    if spec.get("paused") is False:
        del spec["paused"]
    obj["spec"] = with_template({**spec, "strategy": _with_rolling(spec.get("strategy"), _QUARTER)})


def daemon_set(obj: JsonObject) -> None:
    """Daemon sets roll node by node."""
    if isinstance(obj.get("spec"), dict):
        spec = {"revisionHistoryLimit": 10, **obj["spec"]}
        rolling = _with_rolling(spec.get("updateStrategy"), _ONE_BY_ONE)
        obj["spec"] = with_template({**spec, "updateStrategy": rolling})


def stateful_set(obj: JsonObject) -> None:
    """Stateful sets go in order and keep the claims of their pods."""
    if not isinstance(obj.get("spec"), dict):
        return
    spec = {"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10, **obj["spec"]}
    retention = {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
        **(spec.get("persistentVolumeClaimRetentionPolicy") or {}),
    }
    rolling = _with_rolling(spec.get("updateStrategy"), {"partition": 0})
    obj["spec"] = with_template({**spec, "updateStrategy": rolling, "persistentVolumeClaimRetentionPolicy": retention})


def job(obj: JsonObject) -> None:
    """Jobs run one pod to its end, with six more tries."""
    if isinstance(obj.get("spec"), dict):
        spec = {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            **obj["spec"],
        }
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        obj["spec"] = with_template({"parallelism": 1, "podReplacementPolicy": "TerminatingOrFailed", **spec})


def cron_job(obj: JsonObject) -> None:
    """Cron jobs may overlap and keep three good runs and a bad one."""
    if not isinstance(obj.get("spec"), dict):
        return
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    spec = {"concurrencyPolicy": "Allow", "suspend": False, **limits, **obj["spec"]}
    template = spec.get("jobTemplate")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        spec["jobTemplate"] = {"metadata": {}, **template, "spec": with_template(template["spec"])}
    obj["spec"] = spec


def pod_template(obj: JsonObject) -> None:
    """A template that stands for itself."""
    obj.update(with_template(obj))
