"""A ControlPlaneMachineSet: which of its Machines are of the wanted shape, and the one step that comes next.

* It acts only while `spec.state` is Active, and only over Machines that are there: a control plane that was made without Machines
  gets none by itself, and a condition says so.
* Every Machine has an index, the number at the end of its name. One index is worked on at a time: an index that has two Machines,
  or whose new one is no ready node yet, keeps all others where they are. Quorum is lost by two that move at once.
* RollingUpdate: an index of another shape gets a replacement; when that is a ready node, the old one is deleted. OnDelete: only
  an index whose Machine somebody deletes gets one.
* The name of a replacement follows from its shape and from what it replaces: a step that is taken twice makes one Machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, labels_of, metadata, object_name, with_condition
from fastness.kinds.openshift.machines import CLUSTER_LABEL, FINALIZER, PROVIDER_MACHINE
from fastness.machineconfig.scaling.machines import provider_value
from fastness.machineconfig.scaling.sets import Refused, owner_reference

Object = Mapping[str, Any]
IsReady = Callable[[str], bool]
NAME: Final = "cluster"
MACHINE_TYPE: Final = "machines_v1beta1_machine_openshift_io"
SIZES: Final = (3, 5)
ROLLING: Final = "RollingUpdate"
ON_DELETE: Final = "OnDelete"
_INDEX: Final = re.compile(r"-([0-9]{1,3})\Z", re.ASCII)
_NAME_HEX: Final = 5


@dataclass(frozen=True, slots=True)
class ControlPlanePlan:
    """The next step of a set: at most one Machine to create and one to delete, and what it reports."""

    create: JsonObject | None = None
    delete: str = ""
    status: JsonObject = field(default_factory=dict)


def template_of(machine_set: Object) -> Object:
    """The part of a set that Machines are made of, in the form of a MachineSet's template."""
    template = (machine_set.get("spec") or {}).get("template") or {}
    part = template.get(MACHINE_TYPE)
    return part if isinstance(part, Mapping) else {}


def refused(machine_set: Object) -> Refused | None:
    """What in a set keeps it from acting; None when nothing does."""
    spec = machine_set.get("spec") or {}
    strategy = (spec.get("strategy") or {}).get("type", ROLLING)
    domains = template_of(machine_set).get("failureDomains") or {}
    if object_name(machine_set).name != NAME:
        return Refused("metadata.name", "there is one control plane", f"call it {NAME}")
    if spec.get("replicas") not in SIZES:
        return Refused("spec.replicas", f"{spec.get('replicas')!r} has no quorum that is kept", "use 3 or 5")
    if (spec.get("template") or {}).get("machineType") != MACHINE_TYPE:
        return Refused("spec.template.machineType", "only Machines of this API are made", f"use {MACHINE_TYPE}")
    if strategy not in (ROLLING, ON_DELETE):
        return Refused("spec.strategy.type", f"there is no strategy {strategy!r}", f"use {ROLLING} or {ON_DELETE}")
    if domains.get("platform"):
        reason = f"failure domains of platform {domains['platform']} are placed by its own provider"
        return Refused("spec.template failureDomains", reason, "leave them out: hosts are chosen by hostSelector")
    return None


def plan(machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime) -> ControlPlanePlan:
    """The next step of a set that acts, given all Machines of its namespace and which nodes are ready."""
    own = _own(machine_set, machines)
    by_index: dict[int, list[Object]] = {}
    nameless = [object_name(machine).name for machine in own if _index(machine) is None]
    for machine in own:
        index = _index(machine)
        if index is not None:
            by_index.setdefault(index, []).append(machine)
    if not own or nameless:
        why = f"the names of {', '.join(nameless)} end in no index" if nameless else (
            "no Machine matches spec.selector: this control plane was not made of Machines"
        )  # fmt: skip
        return ControlPlanePlan(status=_status(machine_set, own, ready, now, degraded=why))
    create, delete = _step(machine_set, by_index, ready)
    busy = next((f"index {index}" for index in sorted(by_index) if _moving(machine_set, by_index[index], ready)), "")
    working = busy or (f"index {_index(create)}" if create else "")
    return ControlPlanePlan(create, delete, _status(machine_set, own, ready, now, working=working))


def idle_status(machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime, why: str) -> JsonObject:
    """What a set reports that does not act."""
    return _status(machine_set, _own(machine_set, machines), ready, now, idle=why)


def degraded_status(
    machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime, why: str
) -> JsonObject:
    """What a set reports that cannot act."""
    return _status(machine_set, _own(machine_set, machines), ready, now, degraded=why)


def _step(
    machine_set: Object, by_index: Mapping[int, Sequence[Object]], ready: IsReady
) -> tuple[JsonObject | None, str]:
    """The one thing to do: finish what is under way, else fill what is missing, else replace what is of another shape."""
    spec = machine_set["spec"]
    for index in sorted(by_index):
        there = [machine for machine in by_index[index] if not is_being_deleted(machine)]
        leaving = [machine for machine in by_index[index] if is_being_deleted(machine)]
        fresh = [machine for machine in there if is_updated(machine_set, machine)]
        stale = [machine for machine in there if not is_updated(machine_set, machine)]
        if fresh and stale and any(_is_ready(machine, ready) for machine in fresh):
            return None, object_name(stale[0]).name
        if len(stale) > 1:
            # The shape changed again while one was on its way: what nobody waits for any more goes, a ready one last.
            return None, object_name(min(stale, key=lambda machine: _is_ready(machine, ready))).name
        if leaving and not there:
            return new_machine(machine_set, index, leaving[0]), ""
        if (fresh and not all(_is_ready(machine, ready) for machine in fresh)) or (fresh and stale) or leaving:
            return None, ""
    missing = next((index for index in range(spec["replicas"]) if index not in by_index), None)
    if missing is not None:
        return new_machine(machine_set, missing, None), ""
    if (spec.get("strategy") or {}).get("type", ROLLING) == ON_DELETE:
        return None, ""
    # Others must be ready: replacing one of three while a second is away leaves one voice.
    unready = [each for members in by_index.values() for each in members if not _is_ready(each, ready)]
    for index in sorted(by_index):
        old = by_index[index][0]
        if not is_updated(machine_set, old) and not [each for each in unready if each is not old]:
            return new_machine(machine_set, index, old), ""
    return None, ""


def is_updated(machine_set: Object, machine: Object) -> bool:
    """Whether a Machine is of the shape that the set asks for now."""
    return json.canonical(provider_value(machine)) == json.canonical(provider_value(template_of(machine_set)))


def new_machine(machine_set: Object, index: int, replaces: Object | None) -> JsonObject:
    """A Machine of the wanted shape for an index."""
    place, template = object_name(machine_set), template_of(machine_set)
    shape = template.get("metadata") or {}
    labels = dict(shape.get("labels") or {})
    prefix = str(machine_set["spec"].get("machineNamePrefix") or f"{labels.get(CLUSTER_LABEL) or 'cluster'}-master")
    basis = json.canonical([template.get("spec") or {}, metadata(replaces or {}).get("uid") or "", index])
    return {
        "apiVersion": PROVIDER_MACHINE.api_version,
        "kind": PROVIDER_MACHINE.kind,
        "metadata": {
            "name": f"{prefix}-{sha256(basis).hex[:_NAME_HEX]}-{index}",
            "namespace": place.namespace,
            "labels": labels,
            "annotations": dict(shape.get("annotations") or {}),
            "ownerReferences": [owner_reference(machine_set)],
            "finalizers": [FINALIZER],
        },
        "spec": dict(template.get("spec") or {}),
    }


def _own(machine_set: Object, machines: Iterable[Object]) -> list[Object]:
    raw = (machine_set.get("spec") or {}).get("selector") or {}
    try:
        selector = label_selector_from_object(raw) if raw.get("matchLabels") or raw.get("matchExpressions") else None
    except SelectorError:
        selector = None
    return [machine for machine in machines if selector is not None and selector.matches(labels_of(machine))]


def _index(machine: Object) -> int | None:
    match = _INDEX.search(object_name(machine).name)
    return int(match[1]) if match else None


def _is_ready(machine: Object, ready: IsReady) -> bool:
    name = str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
    return bool(name) and ready(name)


def _moving(machine_set: Object, members: Sequence[Object], ready: IsReady) -> bool:
    """Whether an index is in the middle of something."""
    fresh = [machine for machine in members if is_updated(machine_set, machine)]
    return len(members) > 1 or any(map(is_being_deleted, members)) or any(not _is_ready(each, ready) for each in fresh)


def _status(
    machine_set: Object, own: Sequence[Object], ready: IsReady, now: datetime, *, working: str = "", idle: str = "",
    degraded: str = "",
) -> JsonObject:  # fmt: skip
    wanted = int((machine_set.get("spec") or {}).get("replicas") or 0)
    good = [machine for machine in own if _is_ready(machine, ready)]
    updated = [machine for machine in good if is_updated(machine_set, machine)]
    conditions = (machine_set.get("status") or {}).get("conditions") or []
    generation = metadata(machine_set).get("generation", 1)
    for kind, truth, reason, message in (
        ("Available", bool(good), "AllReplicasAvailable" if len(good) >= wanted else "UnavailableReplicas",
         f"{len(good)} of {wanted} are ready"),
        ("Progressing", bool(working), "NeedsUpdateReplicas" if working else "Inactive" if idle else "AsExpected",
         idle or (f"{working} is replaced" if working else "")),
        ("Degraded", bool(degraded), "NotPossible" if degraded else "AsExpected", degraded),
    ):  # fmt: skip
        conditions = with_condition(
            conditions, kind=kind, status="True" if truth else "False", reason=reason, message=message[:1024], now=now,
            generation=generation,
        )  # fmt: skip
    return {
        "replicas": len(own), "readyReplicas": len(good), "updatedReplicas": len(updated),
        "unavailableReplicas": max(0, wanted - len(good)), "observedGeneration": generation, "conditions": conditions,
    }  # fmt: skip
