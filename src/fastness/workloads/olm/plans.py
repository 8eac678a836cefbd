"""What an InstallPlan does, and when it may.

    (new) ─ RequiresApproval ─ Installing ─ Complete
                  ╲ approved at once when the Subscription says Automatic

A plan that is approved but finds no OperatorGroup, or several, waits in Installing and says so; it goes on by itself when that is
put right. A plan whose version nobody offers fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, with_condition
from fastness.workloads.olm.catalog import Package, Release, entries, package_of, part
from fastness.workloads.olm.resolve import UNRESOLVED, Problem

APPROVAL, INSTALLING, COMPLETE, FAILED = "RequiresApproval", "Installing", "Complete", "Failed"
INSTALLED: Final = "Installed"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a plan is, why, and what it creates now."""

    phase: str
    reason: str = ""
    message: str = ""
    creates: tuple[tuple[Package, Release], ...] = ()


def next_step(plan: Object, groups: Sequence[Object], present: Sequence[str]) -> Step:
    """One step of a plan: `present` are the versions of its namespace."""
    spec, phase = part(plan, "spec"), str(part(plan, "status").get("phase") or "")
    if phase in (COMPLETE, FAILED):
        return Step(phase)
    if not spec.get("approved"):
        return Step(APPROVAL)
    versions = _versions(plan)
    offered = {name: package for name in versions if (package := package_of(name)) is not None}
    unknown = [name for name in versions if name not in offered]
    if unknown:
        return Step(FAILED, "InstallComponentFailed", f"no catalog offers {', '.join(unknown)}")
    if phase != INSTALLING:
        return Step(INSTALLING)
    if len(groups) != 1:
        count = "no operator group" if not groups else "more than one operator group"
        return Step(INSTALLING, "InstallCheckFailed", f"{count} found that is managing this namespace")
    missing = tuple((offered[name], _release(offered[name], name)) for name in versions if name not in present)
    return Step(INSTALLING if missing else COMPLETE, creates=missing)


def _versions(plan: Object) -> list[str]:
    """The versions that a plan installs."""
    listed = part(plan, "spec").get("clusterServiceVersionNames")
    return [str(name) for name in listed] if isinstance(listed, list) else []


def _release(package: Package, csv: str) -> Release:
    release = package.release(csv)
    assert release is not None  # noqa: S101  # the package was found by it
    return release


def plan_status(plan: Object, step: Step, now: datetime) -> JsonObject | None:
    """The status of a plan after a step; None when it says so already."""
    before = part(plan, "status")
    conditions: list[JsonObject] = [dict(condition) for condition in entries(before.get("conditions"))]
    if step.phase == COMPLETE or step.reason:
        conditions = with_condition(
            conditions, kind=INSTALLED, status="True" if step.phase == COMPLETE else "False", reason=step.reason,
            message=step.message, now=now,
        )  # fmt: skip
    steps = _steps(plan, "Created" if step.phase == COMPLETE else "Unknown")
    after: JsonObject = {"phase": step.phase, "catalogSources": [], "plan": steps, "conditions": conditions}
    if step.phase == before.get("phase") and step.phase in (COMPLETE, FAILED):
        return None
    return None if all(before.get(key) == value for key, value in after.items()) else after


def _steps(plan: Object, state: str) -> list[JsonObject]:
    names = _versions(plan)
    return [
        {
            "resolving": name, "status": state,
            "resource": {
                "group": "operators.coreos.com", "version": "v1alpha1", "kind": "ClusterServiceVersion", "name": name,
                "sourceName": "", "sourceNamespace": "",
            },
        }
        for name in names
    ]  # fmt: skip


def conflict(subscription: Object, others: Sequence[Object]) -> Problem | None:
    """Two Subscriptions for one package in a namespace: the older one is served, the other says why it is not."""
    package = part(subscription, "spec").get("name")
    mine = _age(subscription)
    older = [other for other in others if part(other, "spec").get("name") == package and _age(other) < mine]
    if not older:
        return None
    names = ", ".join(sorted(object_name(other).name for other in older))
    text = f"constraints not satisfiable: package {package} is already subscribed to by {names} in this namespace"
    return Problem(UNRESOLVED, "ConstraintsNotSatisfiable", text)


# Timestamps have whole seconds: the name decides between two of one second.
def _age(subscription: Object) -> tuple[str, str]:
    return str(subscription["metadata"].get("creationTimestamp") or ""), object_name(subscription).name
