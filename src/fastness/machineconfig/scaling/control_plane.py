"""A ControlPlaneMachineSet: which of its Machines are of the wanted shape, and the one step that comes next.

* It acts only while `spec.state` is Active, and only over Machines that are there: a control plane that was made without Machines
  gets none by itself, and a condition says so.
* Every Machine has an index, the number at the end of its name. One index is worked on at a time: an index that has two Machines,
  or whose new one is no ready node yet, keeps all others where they are. Quorum is lost by two that move at once.
* RollingUpdate: an index of another shape gets a replacement; when that is a ready node, the old one is deleted. OnDelete: only
  an index whose Machine somebody deletes gets one.
* The name of a replacement follows from its shape and from what it replaces: a step that is taken twice makes one Machine.
* The shape of an index is the template in the failure domain of that index; who is in a domain too many is replaced in another.
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
from fastness.kinds.objects import annotations_of, is_being_deleted, labels_of, metadata, object_name, with_condition
from fastness.kinds.openshift.machines import CLUSTER_LABEL, FINALIZER, PROVIDER_MACHINE
from fastness.machineconfig.scaling.failure_domains import FailureDomain, failure_domains, spread
from fastness.machineconfig.scaling.machines import provider_value
from fastness.machineconfig.scaling.sets import Refused, owner_reference

Object = Mapping[str, Any]
IsReady = Callable[[str], bool]
NAME: Final = "cluster"
MACHINE_TYPE: Final = "machines_v1beta1_machine_openshift_io"
SIZES: Final = (3, 5)
ROLLING: Final = "RollingUpdate"
ON_DELETE: Final = "OnDelete"
MADE_AS: Final = "fastness.dev/made-as"
"""On a Machine: the digest of the provider's part that it was made with."""
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


def refused(machine_set: Object, infrastructure: Object) -> Refused | None:
    """What in a set keeps it from acting; None when nothing does."""
    spec = machine_set.get("spec") or {}
    strategy = (spec.get("strategy") or {}).get("type", ROLLING)
    if object_name(machine_set).name != NAME:
        return Refused("metadata.name", "there is one control plane", f"call it {NAME}")
    if spec.get("replicas") not in SIZES:
        return Refused("spec.replicas", f"{spec.get('replicas')!r} has no quorum that is kept", "use 3 or 5")
    if (spec.get("template") or {}).get("machineType") != MACHINE_TYPE:
        return Refused("spec.template.machineType", "only Machines of this API are made", f"use {MACHINE_TYPE}")
    if strategy not in (ROLLING, ON_DELETE):
        return Refused("spec.strategy.type", f"there is no strategy {strategy!r}", f"use {ROLLING} or {ON_DELETE}")
    domains = failure_domains(template_of(machine_set), infrastructure)
    return domains if isinstance(domains, Refused) else None


def plan(
    machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime, infrastructure: Object
) -> ControlPlanePlan:
    """The next step of a set that acts, given all Machines of its namespace and which nodes are ready."""
    own = _own(machine_set, machines)
    shapes = wanted_shapes(machine_set, own, infrastructure)
    by_index = _by_index(own)
    nameless = [object_name(machine).name for machine in own if _index(machine) is None]
    if not own or nameless:
        why = f"the names of {', '.join(nameless)} end in no index" if nameless else (
            "no Machine matches spec.selector: this control plane was not made of Machines"
        )  # fmt: skip
        return ControlPlanePlan(status=_status(machine_set, own, shapes, ready, now, degraded=why))
    create, delete = _step(machine_set, by_index, shapes, ready)
    busy = next((index for index in sorted(by_index) if _moving(shapes, by_index[index], ready)), None)
    working = busy if busy is not None else _index(create) if create else None
    words = "" if working is None else f"index {working} is replaced{shapes.place(working)}"
    return ControlPlanePlan(create, delete, _status(machine_set, own, shapes, ready, now, working=words))


def idle_status(
    machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime, infrastructure: Object, why: str
) -> JsonObject:
    """What a set reports that does not act."""
    own = _own(machine_set, machines)
    return _status(machine_set, own, wanted_shapes(machine_set, own, infrastructure), ready, now, idle=why)


def degraded_status(
    machine_set: Object, machines: Iterable[Object], ready: IsReady, now: datetime, infrastructure: Object, why: str
) -> JsonObject:
    """What a set reports that cannot act."""
    own = _own(machine_set, machines)
    return _status(machine_set, own, wanted_shapes(machine_set, own, infrastructure), ready, now, degraded=why)


@dataclass(frozen=True, slots=True)
class Shapes:
    """The provider's part that Machines of every index are to have."""

    value: Object
    domains: Mapping[int, FailureDomain]

    def of(self, index: int | None) -> JsonObject:
        """The part that Machines of an index are made with."""
        domain = self.domains.get(-1 if index is None else index)
        return domain.placed(self.value) if domain is not None else dict(self.value)

    def fits(self, machine: Object) -> bool:
        """Whether a Machine is of the shape that is wanted of its index now."""
        shape, value = self.of(_index(machine)), provider_value(machine)
        if json.canonical(value) == json.canonical(shape):
            return True
        # Webhooks of clouds fill defaults in: by equality alone, such a Machine would be replaced by its like for ever.
        return annotations_of(machine).get(MADE_AS) == _digest(shape) and _within(shape, value)

    def place(self, index: int) -> str:
        """Words for the domain of an index, for messages."""
        domain = self.domains.get(index)
        return f" in failure domain {domain.name}" if domain is not None else ""


def wanted_shapes(machine_set: Object, own: Sequence[Object], infrastructure: Object) -> Shapes:
    """The shapes of a set's indices; without domains while those cannot be written."""
    template = template_of(machine_set)
    domains = failure_domains(template, infrastructure)
    replicas = (machine_set.get("spec") or {}).get("replicas")
    if isinstance(domains, Refused) or not domains or replicas not in SIZES:
        return Shapes(provider_value(template), {})
    present: dict[int, Object | None] = dict.fromkeys(range(replicas))
    for index, members in _by_index(own).items():
        # Of two Machines the one that comes says where the index is, and of those that leave any.
        newest = max(
            members, key=lambda each: (not is_being_deleted(each), metadata(each).get("creationTimestamp") or "")
        )
        present[index] = provider_value(newest)
    return Shapes(provider_value(template), spread(present, present, domains))


def _step(
    machine_set: Object, by_index: Mapping[int, Sequence[Object]], shapes: Shapes, ready: IsReady
) -> tuple[JsonObject | None, str]:
    """The one thing to do: finish what is under way, else fill what is missing, else replace what is of another shape."""
    spec = machine_set["spec"]
    for index in sorted(by_index):
        there = [machine for machine in by_index[index] if not is_being_deleted(machine)]
        leaving = [machine for machine in by_index[index] if is_being_deleted(machine)]
        fresh = [machine for machine in there if shapes.fits(machine)]
        stale = [machine for machine in there if not shapes.fits(machine)]
        if fresh and stale and any(_is_ready(machine, ready) for machine in fresh):
            return None, object_name(stale[0]).name
        if len(stale) > 1:
            # The shape changed again while one was on its way: what nobody waits for any more goes, a ready one last.
            return None, object_name(min(stale, key=lambda machine: _is_ready(machine, ready))).name
        if leaving and not there:
            return new_machine(machine_set, shapes, index, leaving[0]), ""
        if (fresh and not all(_is_ready(machine, ready) for machine in fresh)) or (fresh and stale) or leaving:
            return None, ""
    missing = next((index for index in range(spec["replicas"]) if index not in by_index), None)
    if missing is not None:
        return new_machine(machine_set, shapes, missing, None), ""
    if (spec.get("strategy") or {}).get("type", ROLLING) == ON_DELETE:
        return None, ""
    # Others must be ready: replacing one of three while a second is away leaves one voice.
    unready = [each for members in by_index.values() for each in members if not _is_ready(each, ready)]
    for index in sorted(by_index):
        old = by_index[index][0]
        if not shapes.fits(old) and not [each for each in unready if each is not old]:
            return new_machine(machine_set, shapes, index, old), ""
    return None, ""


def new_machine(machine_set: Object, shapes: Shapes, index: int, replaces: Object | None) -> JsonObject:
    """A Machine of the wanted shape for an index."""
    place, template = object_name(machine_set), template_of(machine_set)
    shape, value = template.get("metadata") or {}, shapes.of(index)
    spec = dict(template.get("spec") or {})
    spec["providerSpec"] = {**(spec.get("providerSpec") or {}), "value": value}
    labels = dict(shape.get("labels") or {})
    prefix = str(machine_set["spec"].get("machineNamePrefix") or f"{labels.get(CLUSTER_LABEL) or 'cluster'}-master")
    basis = json.canonical([spec, metadata(replaces or {}).get("uid") or "", index])
    return {
        "apiVersion": PROVIDER_MACHINE.api_version,
        "kind": PROVIDER_MACHINE.kind,
        "metadata": {
            "name": f"{prefix}-{sha256(basis).hex[:_NAME_HEX]}-{index}",
            "namespace": place.namespace,
            "labels": labels,
            "annotations": {**(shape.get("annotations") or {}), MADE_AS: _digest(value)},
            "ownerReferences": [owner_reference(machine_set)],
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    }


def _digest(value: Object) -> str:
    return sha256(json.canonical(value)).hex


def _within(wanted: Any, value: Any) -> bool:
    """Whether all that is wanted stands in a value, which may say more."""
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(name in value and _within(member, value[name]) for name, member in wanted.items())
    return bool(wanted == value)


def _own(machine_set: Object, machines: Iterable[Object]) -> list[Object]:
    raw = (machine_set.get("spec") or {}).get("selector") or {}
    try:
        selector = label_selector_from_object(raw) if raw.get("matchLabels") or raw.get("matchExpressions") else None
    except SelectorError:
        selector = None
    return [machine for machine in machines if selector is not None and selector.matches(labels_of(machine))]


def _by_index(own: Iterable[Object]) -> dict[int, list[Object]]:
    by_index: dict[int, list[Object]] = {}
    for machine in own:
        index = _index(machine)
        if index is not None:
            by_index.setdefault(index, []).append(machine)
    return by_index


def _index(machine: Object) -> int | None:
    match = _INDEX.search(object_name(machine).name)
    return int(match[1]) if match else None


def _is_ready(machine: Object, ready: IsReady) -> bool:
    name = str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
    return bool(name) and ready(name)


def _moving(shapes: Shapes, members: Sequence[Object], ready: IsReady) -> bool:
    """Whether an index is in the middle of something."""
    fresh = [machine for machine in members if shapes.fits(machine)]
    return len(members) > 1 or any(map(is_being_deleted, members)) or any(not _is_ready(each, ready) for each in fresh)


def _status(
    machine_set: Object, own: Sequence[Object], shapes: Shapes, ready: IsReady, now: datetime, *, working: str = "",
    idle: str = "", degraded: str = "",
) -> JsonObject:  # fmt: skip
    wanted = int((machine_set.get("spec") or {}).get("replicas") or 0)
    good = [machine for machine in own if _is_ready(machine, ready)]
    updated = [machine for machine in good if shapes.fits(machine)]
    conditions = (machine_set.get("status") or {}).get("conditions") or []
    generation = metadata(machine_set).get("generation", 1)
    for kind, truth, reason, message in (
        ("Available", bool(good), "AllReplicasAvailable" if len(good) >= wanted else "UnavailableReplicas",
         f"{len(good)} of {wanted} are ready"),
        ("Progressing", bool(working), "NeedsUpdateReplicas" if working else "Inactive" if idle else "AsExpected",
         idle or working),
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
