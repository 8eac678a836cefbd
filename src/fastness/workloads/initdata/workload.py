"""Init data in workloads: the annotation and the runtime class, where each kind of workload has them.

A pod carries both itself; everything else carries them in its template. Older names of the annotation are refused: what reads
them no longer exists, and a pod would start without the policy that its author believes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.runtime.errors import FastnessError
from fastness.workloads.initdata.finding import Finding, Severity

ANNOTATION: Final = "io.katacontainers.config.hypervisor.cc_init_data"
# Names of earlier releases: no runtime reads them, so a pod that has one starts without init data.
OLD_ANNOTATIONS: Final = ("io.katacontainers.config.runtime.cc_init_data", "io.katacontainers.config.agent.policy")
DEFAULT_CLASS: Final = "kata-cc"
# Its configuration of the runtime does not list cc_init_data among the annotations that it takes: init data has no effect there.
IGNORING: Final = ("kata",)
_TEMPLATE: Final = ("spec", "template")
TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (),
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "Deployment": _TEMPLATE,
    "DeploymentConfig": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


class NotAWorkload(FastnessError):
    """An object that has no pod in it."""

    code = "not-a-workload"
    hint = f"Give one of {', '.join(TEMPLATES)}."


def pod_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod or the template of pods in a workload; raises NotAWorkload."""
    kind = str(obj.get("kind"))
    if kind not in TEMPLATES:
        raise NotAWorkload(f"{kind} has no pods")
    pod: Any = obj
    for name in TEMPLATES[kind]:
        pod = pod.get(name) if isinstance(pod, dict) else None
    if not isinstance(pod, dict) or not isinstance(pod.get("spec"), dict):
        raise NotAWorkload(f"this {kind} has no spec of pods at {'.'.join(TEMPLATES[kind]) or 'spec'}")
    return pod


def applied(obj: Mapping[str, Any], encoded: str, runtime_class: str = DEFAULT_CLASS) -> JsonObject:
    """A copy of the workload with init data and a runtime class; raises NotAWorkload."""
    pod_of(obj)
    copy: JsonObject = dict(obj)
    place = copy
    for name in TEMPLATES[str(obj["kind"])]:
        place[name] = dict(place[name])
        place = place[name]
    meta = place["metadata"] = dict(place.get("metadata") or {})
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in OLD_ANNOTATIONS}
    meta["annotations"] = {**annotations, ANNOTATION: encoded}
    place["spec"] = {**place["spec"], "runtimeClassName": runtime_class}
    return copy


def carried(obj: Mapping[str, Any]) -> tuple[str, list[Finding]]:
    """The init data that a workload carries (empty: none), and what is wrong with how it does; raises NotAWorkload."""
    pod = pod_of(obj)
    meta = pod.get("metadata")
    annotations = (meta.get("annotations") or {}) if isinstance(meta, dict) else {}
    findings = [
        Finding(
            "E14", Severity.ERROR, f"nothing reads the annotation {old}", f"Use {ANNOTATION}.", "metadata.annotations"
        )
        for old in OLD_ANNOTATIONS
        if old in annotations
    ]
    encoded = str(annotations.get(ANNOTATION) or "")
    chosen = str(pod["spec"].get("runtimeClassName") or "")
    if encoded and (not chosen or chosen in IGNORING):
        problem = (
            f"the runtime class {chosen} ignores init data"
            if chosen
            else "no runtime class: the pod is not confidential"
        )
        findings.append(Finding("W6", Severity.WARNING, problem, f"Use {DEFAULT_CLASS}.", "spec.runtimeClassName"))
    outside = obj.get("spec")
    if str(obj.get("kind")) != "Pod" and isinstance(outside, dict) and "runtimeClassName" in outside:
        findings.append(
            Finding(
                "E15",
                Severity.ERROR,
                "runtimeClassName stands where nothing reads it",
                "Move it into the template.",
                "spec",
            )
        )
    return encoded, findings
