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
        refusal = _overhead(spec, {}, []) if spec.get("overhead") else ""
        return forbidden(request, refusal) if refusal else None
    found = lookups.runtime_class(str(name))
    if found is None:
        return forbidden(request, f'pod rejected: RuntimeClass "{name}" not found ({existing(lookups)})')
    patch: list[dict[str, Any]] = []
    refusal = _overhead(spec, found, patch) or _selector(spec, found, patch)
    if refusal:
        return forbidden(request, refusal)
    _tolerations(spec, found, patch)
    _memory(request.new, str(name), lookups, patch)
    return Patched(tuple(patch)) if patch else None


def _overhead(spec: Object, found: Object, patch: list[dict[str, Any]]) -> str:
    said, given = spec.get("overhead") or {}, (found.get("overhead") or {}).get("podFixed") or {}
    if not given:
        return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead" if said else ""
    if not said:
        patch.append({"op": "add", "path": "/spec/overhead", "value": dict(given)})
        return ""
    if _amounts(said) != _amounts(given):
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    return ""


def _amounts(quantities: Object) -> dict[str, Quantity | str]:
    """Amounts rather than spellings: 1 and 1000m are the same overhead."""
    found: dict[str, Quantity | str] = {}
    for name, text in quantities.items():
        try:
            found[name] = parse_quantity(str(text))
        except QuantityError:
            found[name] = str(text)
    return found


def _selector(spec: Object, found: Object, patch: list[dict[str, Any]]) -> str:
    wanted = (found.get("scheduling") or {}).get("nodeSelector") or {}
    said = spec.get("nodeSelector") or {}
    for key, value in sorted(wanted.items()):
        if key in said and said[key] != value:
            return f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {said[key]}"
    if not wanted.items() <= said.items():
        patch.append({"op": "add", "path": "/spec/nodeSelector", "value": {**said, **wanted}})
    return ""


def _tolerations(spec: Object, found: Object, patch: list[dict[str, Any]]) -> None:
    wanted = (found.get("scheduling") or {}).get("tolerations") or []
    said = list(spec.get("tolerations") or ())
    more = [one for one in wanted if one not in said]
    if more:
        patch.append({"op": "add", "path": "/spec/tolerations", "value": [*said, *more]})


def _memory(pod: Object, name: str, lookups: AdmissionLookups, patch: list[dict[str, Any]]) -> None:
    made = {
        one for config in lookups.kata_configs() for one in (config.get("status") or {}).get("runtimeClasses") or ()
    }
    megabytes = read_gates(lookups.feature_gates()).memory_overhead_mb if name in made else None
    notes = annotations_of(pod)
    if megabytes is not None and names.MEMORY_OVERHEAD not in notes:
        value = {**notes, names.MEMORY_OVERHEAD: str(megabytes)}
        patch.append({"op": "add", "path": "/metadata/annotations", "value": value})
