"""What a Subscription should get next.

    nothing installed     the release that `startingCSV` names, else the head of the channel
    something installed   the release that replaces it, else nothing: it is at the latest that is known
    not answerable        a problem with the reason that OLM gives, and what to do

* `installPlanApproval: Manual` changes nothing about the target, only that somebody must approve the plan.
* A version that a person deleted is not brought back behind their back: a Subscription whose plan is complete rests until it is
  deleted and made anew, as in OLM.
* The name of a plan follows from the Subscription and its target, so that two looks make one plan.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.workloads.olm.catalog import MARKETPLACE, MODES, SOURCES, Package, Release, part, source

AUTOMATIC: Final = "Automatic"
MANUAL: Final = "Manual"
UNHEALTHY: Final = "CatalogSourcesUnhealthy"
UNRESOLVED: Final = "ResolutionFailed"
PENDING: Final = "InstallPlanPending"
AT_LATEST, AVAILABLE, UPGRADING = "AtLatestKnown", "UpgradeAvailable", "UpgradePending"
MAX_LABEL: Final = 63
_API: Final = "operators.coreos.com/v1alpha1"
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a Subscription cannot be answered: the condition that says so."""

    condition: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a Subscription follows, what it has, and the release to install now, if any."""

    package: Package
    installed: Release | None
    target: Release | None


def resolve(subscription: Object, sources: Sequence[Object], versions: Sequence[Object]) -> Resolved | Problem:
    """What to do for a Subscription, with the CatalogSources of the cluster and the versions in its namespace."""
    spec = part(subscription, "spec")
    where = f"{spec.get('sourceNamespace')}/{spec.get('source')}"
    catalogs = {f"{place.namespace}/{place.name}" for place in map(object_name, sources)}
    offered = source(str(spec.get("source")), str(spec.get("sourceNamespace")))
    if where not in catalogs:
        return Problem(UNHEALTHY, "UnhealthyCatalogSourceFound", f"targeted catalogsource {where} missing")
    if offered is None:
        ours = ", ".join(catalog.name for catalog in SOURCES)
        text = f"catalogsource {where} is not one that this control plane can read; it offers {ours} in {MARKETPLACE}"
        return Problem(UNHEALTHY, "UnhealthyCatalogSourceFound", text)
    package = offered.package(str(spec.get("name")))
    if package is None:
        near = offered.near(str(spec.get("name")))
        return _unsatisfiable(
            f"no operators found in package {spec.get('name')} in the catalog referenced by subscription "
            f"{object_name(subscription).name}" + (f"; did you mean {near}?" if near else "")
        )
    return _in_channel(subscription, package, versions)


def _in_channel(subscription: Object, package: Package, versions: Sequence[Object]) -> Resolved | Problem:
    spec, name = part(subscription, "spec"), object_name(subscription).name
    channel = str(spec.get("channel") or package.default_channel)
    releases = package.channels.get(channel)
    if releases is None:
        there = ", ".join(package.channels)
        return _unsatisfiable(
            f"no operators found in channel {channel} of package {package.name} in the catalog referenced by subscription "
            f"{name}; its channels are: {there}"
        )
    by_csv = {release.csv: release for release in releases}
    present = [by_csv[csv] for version in versions if (csv := object_name(version).name) in by_csv]
    installed = max(present, key=releases.index, default=None)
    if installed is not None:
        return Resolved(
            package, installed, next((release for release in releases if release.replaces == installed.csv), None)
        )
    if part(subscription, "status").get("installedCSV"):
        return Resolved(package, None, None)
    starting = str(spec.get("startingCSV") or "")
    if starting and starting not in by_csv:
        return _unsatisfiable(
            f"no operators found with name {starting} in channel {channel} of package {package.name} in the catalog referenced "
            f"by subscription {name}; it has: {', '.join(by_csv)}"
        )
    return Resolved(package, None, by_csv[starting] if starting else releases[-1])


def _unsatisfiable(why: str) -> Problem:
    return Problem(UNRESOLVED, "ConstraintsNotSatisfiable", f"constraints not satisfiable: {why}")


def plan_name(subscription: Object, target: Release) -> str:
    """The name of the plan that installs a release for a Subscription: the same at every look."""
    digest = hashlib.sha256(f"{subscription['metadata']['uid']}/{target.csv}".encode()).digest()
    return f"install-{base64.b32encode(digest).decode().lower()[:5]}"


def install_plan(subscription: Object, target: Release, generation: int) -> JsonObject:
    """The plan; it belongs to the Subscription and goes with it."""
    place, meta = object_name(subscription), subscription["metadata"]
    approval = approval_of(subscription)
    owner = {
        "apiVersion": _API, "kind": "Subscription", "name": place.name, "uid": meta["uid"], "controller": False,
        "blockOwnerDeletion": False,
    }  # fmt: skip
    return {
        "apiVersion": _API, "kind": "InstallPlan",
        "metadata": {
            "name": plan_name(subscription, target), "namespace": place.namespace, "ownerReferences": [owner],
            "labels": {component_label(str(part(subscription, "spec").get("name")), place.namespace): ""},
        },
        "spec": {
            "approval": approval, "approved": approval == AUTOMATIC, "clusterServiceVersionNames": [target.csv],
            "generation": generation,
        },
    }  # fmt: skip


def approval_of(subscription: Object) -> str:
    """Who approves; everything but `Manual` is automatic, as the schema of OLM has it."""
    return MANUAL if part(subscription, "spec").get("installPlanApproval") == MANUAL else AUTOMATIC


def version_object(package: Package, release: Release, namespace: str, group: Object | None) -> JsonObject:
    """The ClusterServiceVersion of a release, as a plan creates it."""
    meta: JsonObject = {
        "name": release.csv, "namespace": namespace, "labels": {component_label(package.name, namespace): ""},
        "annotations": {
            "olm.operatorNamespace": namespace,
            **({"olm.operatorGroup": object_name(group).name} if group is not None else {}),
            "capabilities": "Full Lifecycle", "fastness.dev/done-by": "control-plane",
        },
    }  # fmt: skip
    definitions = [{"name": name, "kind": name.partition(".")[0], "version": "v1"} for name in package.owns]
    return {
        "apiVersion": _API, "kind": "ClusterServiceVersion", "metadata": meta,
        "spec": {
            "displayName": package.display, "version": release.version, "description": package.description,
            "provider": {"name": package.provider}, "maturity": "stable",
            **({"replaces": release.replaces} if release.replaces else {}),
            "customresourcedefinitions": {"owned": definitions},
            "installModes": [{"type": mode, "supported": mode in package.modes} for mode in MODES],
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    }  # fmt: skip


def component_label(package: str, namespace: str) -> str:
    """The label that all parts of an installed operator carry; cut to what a label may be."""
    return f"operators.coreos.com/{f'{package}.{namespace}'[:MAX_LABEL].rstrip('-_.')}"


def owner_of_plan(plan: Object) -> str:
    """The Subscription that a plan belongs to; empty when it belongs to none."""
    owners = plan["metadata"].get("ownerReferences") or ()
    return next((str(owner["name"]) for owner in owners if owner.get("kind") == "Subscription"), "")
