"""How far a ClusterServiceVersion is, and what holds it up.

    (new) ─ Pending ─ InstallReady ─ Installing ─ Succeeded ─ Replacing ─ Deleting
                 ╲__ Failed: the OperatorGroup is missing, is one of several, or does not fit

* One step at a time: whoever watches sees each phase with its reason.
* A failure is not final: what was wrong is looked at again, and the way starts anew at Pending.
* A version whose definitions stop being served goes back to Pending; a replaced one goes when its successor has succeeded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, rfc3339
from fastness.workloads.olm.catalog import ALL, MULTI, OWN, SINGLE, Package, entries, part

PENDING, READY, INSTALLING, SUCCEEDED = "Pending", "InstallReady", "Installing", "Succeeded"
REPLACING, DELETING, FAILED = "Replacing", "Deleting", "Failed"
ORDER: Final = (PENDING, READY, INSTALLING, SUCCEEDED)
KEPT_CONDITIONS: Final = 20
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase with its reason, and what was required."""

    phase: str
    reason: str
    message: str
    requirements: tuple[tuple[str, bool], ...] = ()


def next_phase(
    version: Object,
    package: Package | None,
    groups: Sequence[Object],
    served: Collection[str],
    others: Sequence[Object],
) -> Phase:
    """Where a version should be now: one step on from where it is, or where it falls back to."""
    current = str(part(version, "status").get("phase") or "")
    if package is None:
        text = "nothing in this control plane does the work of this operator, and it starts no containers"
        return Phase(PENDING, "RequirementsNotMet", text)
    wrong = _group_problem(object_name(version).namespace, package, groups)
    if wrong is not None:
        return wrong
    successor = _successor(version, others)
    if successor is not None and current in (SUCCEEDED, REPLACING, DELETING):
        return _replaced(successor)
    required = tuple((name, name in served) for name in package.owns)
    if not all(there for _, there in required):
        return Phase(PENDING, "RequirementsNotMet", "one or more requirements couldn't be found", required)
    if not package.worked_by and current in (INSTALLING, SUCCEEDED):
        text = f"nothing here does the work of {package.display} yet: its objects are stored, and no node runs anything of it"
        return Phase(INSTALLING, "InstallWaiting", text, required)
    return _forward(current, required, package)


def _forward(current: str, required: tuple[tuple[str, bool], ...], package: Package) -> Phase:
    by = ", ".join(package.worked_by)
    text = f"install strategy completed with no errors: no pod runs, its work is done by the control plane ({by})"
    done = Phase(SUCCEEDED, "InstallSucceeded", text, required)
    return {
        PENDING: Phase(READY, "AllRequirementsMet", "all requirements found, attempting install", required),
        READY: Phase(INSTALLING, "InstallSucceeded", "waiting for install components to report healthy", required),
        INSTALLING: done,
        SUCCEEDED: done,
    }.get(current, Phase(PENDING, "RequirementsUnknown", "requirements not yet checked"))


def _replaced(successor: Object) -> Phase:
    name, phase = object_name(successor).name, part(successor, "status").get("phase")
    if phase == SUCCEEDED:
        return Phase(
            DELETING, "Replaced", "has been replaced by a newer ClusterServiceVersion that has successfully installed."
        )
    return Phase(REPLACING, "BeingReplaced", f"being replaced by csv: {name}")


def _successor(version: Object, others: Sequence[Object]) -> Object | None:
    name = object_name(version).name
    return next((other for other in others if part(other, "spec").get("replaces") == name), None)


def _group_problem(namespace: str, package: Package, groups: Sequence[Object]) -> Phase | None:
    if not groups:
        return Phase(FAILED, "NoOperatorGroup", "csv in namespace with no operatorgroups")
    if len(groups) > 1:
        text = "csv created in namespace with multiple operatorgroups, can't pick one automatically"
        return Phase(FAILED, "TooManyOperatorGroups", text)
    mode = mode_of(namespace, groups[0])
    if mode not in package.modes:
        watched = ", ".join(targets(groups[0])) or "all namespaces"
        text = f"{mode} InstallModeType not supported, cannot configure to watch {watched}"
        return Phase(FAILED, "UnsupportedOperatorGroup", text)
    return None


def targets(group: Object) -> list[str]:
    """The namespaces that a group looks after; none means all."""
    listed = part(group, "spec").get("targetNamespaces")
    return sorted({str(namespace) for namespace in listed if namespace}) if isinstance(listed, list) else []


def mode_of(namespace: str, group: Object) -> str:
    """How operators of a group are installed."""
    looked_after = targets(group)
    if not looked_after:
        return ALL
    if len(looked_after) > 1:
        return MULTI
    return OWN if looked_after == [namespace] else SINGLE


def with_phase(version: Object, phase: Phase, now: datetime) -> JsonObject | None:
    """The status of a version with a phase written; None when it says so already."""
    status = dict(part(version, "status"))
    requirements = [
        {
            "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "name": name,
            "status": "Present" if there else "NotPresent", "message": "CRD is present" if there else "CRD is not present",
        }
        for name, there in phase.requirements
    ]  # fmt: skip
    summary = {"phase": phase.phase, "reason": phase.reason, "message": phase.message}
    if (
        all(status.get(key) == value for key, value in summary.items())
        and (status.get("requirementStatus") or []) == requirements
    ):
        return None
    stamp = rfc3339(now)
    moved = status.get("phase") != phase.phase
    since = stamp if moved else status.get("lastTransitionTime", stamp)
    entry = {**summary, "lastTransitionTime": since, "lastUpdateTime": stamp}
    return {
        **status, **entry, "requirementStatus": requirements,
        "conditions": [*entries(status.get("conditions")), entry][-KEPT_CONDITIONS:],
    }  # fmt: skip
