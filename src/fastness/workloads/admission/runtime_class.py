"""Pods and their runtime class: what the class says becomes part of the pod, or the pod is refused.

As Kubernetes does it: the overhead of the class is charged to the pod, its node selector and tolerations are added. A pod that
says something else than its class cannot be scheduled as both mean it, so it is refused with the words of Kubernetes.
Beyond that, a pod of a class that a KataConfig made gets the memory overhead that the feature gates ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import Quantity, parse_quantity
from fastness.kinds.kata import names
from fastness.kinds.objects import annotations_of
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, Patched, forbidden
from fastness.workloads.admission.workloads import existing
from fastness.workloads.kata.mode import read_gates

Object = Mapping[str, Any]


def class_is_applied(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Patched | None:
    """Refuse a pod that does not fit its class; give it what the class says."""
    spec = request.new.get("spec") or {}
    name = spec.get("runtimeClassName")
    if not name:
        refusal = _overhead(spec, {}, []) if spec.get("overhead") else None
        return forbidden(request, refusal) if refusal is not None else None
    runtime_class = lookups.runtime_class(str(name))
    if runtime_class is None:
        return forbidden(request, f'pod rejected: RuntimeClass "{name}" not found ({existing(lookups)})')
    patch: list[dict[str, Any]] = []
    refusal = _overhead(spec, runtime_class, patch) or _selector(spec, runtime_class, patch)
    if refusal is not None:
        return forbidden(request, refusal)
    _tolerations(spec, runtime_class, patch)
    _memory(request.new, str(name), lookups, patch)
    return Patched(tuple(patch)) if patch else None


def _overhead(spec: Object, runtime_class: Object, patch: list[dict[str, Any]]) -> str | None:
    """Charge the overhead of the class to the pod; or why the pod is refused."""
    overhead, given = spec.get("overhead") or {}, (runtime_class.get("overhead") or {}).get("podFixed") or {}
    if not given:
        return (
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead" if overhead else None
        )
    if not overhead:
        patch.append({"op": "add", "path": "/spec/overhead", "value": dict(given)})
        return None
    if _amounts(overhead) != _amounts(given):
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    return None


def _amounts(quantities: Object) -> dict[str, Quantity | str]:
    """Amounts rather than spellings: 1 and 1000m are the same overhead."""
    amounts: dict[str, Quantity | str] = {}
    for name, text in quantities.items():
        try:
            amounts[name] = parse_quantity(str(text))
        except QuantityError:
            amounts[name] = str(text)
    return amounts


def _selector(spec: Object, runtime_class: Object, patch: list[dict[str, Any]]) -> str | None:
    """Add the node selector of the class to that of the pod; or why the pod is refused."""
    required = (runtime_class.get("scheduling") or {}).get("nodeSelector") or {}
    given = spec.get("nodeSelector") or {}
    for key, value in sorted(required.items()):
        if key in given and given[key] != value:
            return f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given[key]}"
    if not required.items() <= given.items():
        patch.append({"op": "add", "path": "/spec/nodeSelector", "value": {**given, **required}})
    return None


def _tolerations(spec: Object, runtime_class: Object, patch: list[dict[str, Any]]) -> None:
    required = (runtime_class.get("scheduling") or {}).get("tolerations") or []
    given = list(spec.get("tolerations") or ())
    more = [toleration for toleration in required if toleration not in given]
    if more:
        patch.append({"op": "add", "path": "/spec/tolerations", "value": [*given, *more]})


def _memory(pod: Object, name: str, lookups: AdmissionLookups, patch: list[dict[str, Any]]) -> None:
    statuses = [config.get("status") or {} for config in lookups.kata_configs()]
    made = {name for status in statuses for name in status.get("runtimeClasses") or ()}
    megabytes = read_gates(lookups.feature_gates()).memory_overhead_mb if name in made else None
    notes = annotations_of(pod)
    if megabytes is not None and names.MEMORY_OVERHEAD not in notes:
        value = {**notes, names.MEMORY_OVERHEAD: str(megabytes)}
        patch.append({"op": "add", "path": "/metadata/annotations", "value": value})
