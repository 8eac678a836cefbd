"""A MachineSet: which Machines are its own, how many are missing, which go first, what it reports.

* A set acts for Machines that it controls, and for those that its selector matches and nobody controls: it adopts them.
* Machines come a few at a time. A set that asks for more than a process can run, or whose selector does not match its own
  template, makes none: every Machine that it made would be one too few, for ever.
* Which go first when there are too many: those that somebody marked, then those that never became a node or have failed, then by
  `deletePolicy`. `Random` is by name here, so that the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import LabelSelector, label_selector_from_object
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, is_being_deleted, labels_of, metadata, object_name
from fastness.kinds.openshift.machines import CLUSTER_LABEL, DELETE_FIRST, FINALIZER, PROVIDER_MACHINE

Object = Mapping[str, Any]
MOST: Final = 1000
BURST: Final = 5
_POLICIES: Final = ("", "Random", "Newest", "Oldest")
_AUTHORITIES: Final = ("", "MachineAPI")


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a set makes no machines, and what to do about it."""

    field: str
    reason: str
    way: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}; {self.way}"


@dataclass(frozen=True, slots=True)
class SetPlan:
    """What a set does next: Machines to adopt and to delete by name, how many to create, what it reports."""

    adopt: tuple[str, ...] = ()
    create: int = 0
    delete: tuple[str, ...] = ()
    status: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeState:
    """Whether the node of a Machine is ready, and since when."""

    ready: bool
    since: datetime


NodeOf = Callable[[str], NodeState | None]


def acts(machine_set: Object) -> bool:
    """Whether the set is for controllers of this API; another one may be its authority."""
    return (machine_set.get("spec") or {}).get("authoritativeAPI", "") in _AUTHORITIES and not is_being_deleted(
        machine_set
    )


def plan(machine_set: Object, machines: Iterable[Object], node: NodeOf, now: datetime) -> SetPlan | Refused:
    """What a set does next, given all Machines of its namespace and what is known of their nodes."""
    wrong = _wrong(machine_set)
    if wrong is not None:
        return wrong
    spec, selector = machine_set["spec"], _selector(machine_set)
    assert selector is not None  # noqa: S101  # _wrong looked
    own, orphans = _sorted_out(machine_set, machines, selector)
    missing = spec.get("replicas", 1) - len(own) - len(orphans)
    surplus = _first_to_go([*own, *orphans], spec.get("deletePolicy") or "")[: max(0, -missing)]
    return SetPlan(
        adopt=tuple(object_name(machine).name for machine in orphans),
        create=min(max(0, missing), BURST),
        delete=tuple(object_name(machine).name for machine in surplus),
        status=_status(machine_set, [*own, *orphans], selector, node, now),
    )


def new_machine(machine_set: Object) -> JsonObject:
    """A Machine that a set makes, without a name."""
    place, template = object_name(machine_set), machine_set["spec"]["template"]
    shape = template.get("metadata") or {}
    # Which cluster a machine is of, which its provider and its node are known by, is the set's if the template does not say.
    cluster = {name: label for name, label in labels_of(machine_set).items() if name == CLUSTER_LABEL}
    return {
        "apiVersion": PROVIDER_MACHINE.api_version,
        "kind": PROVIDER_MACHINE.kind,
        "metadata": {
            "generateName": f"{place.name}-",
            "namespace": place.namespace,
            "labels": {**cluster, **(shape.get("labels") or {})},
            "annotations": dict(shape.get("annotations") or {}),
            "ownerReferences": [owner_reference(machine_set)],
            "finalizers": [FINALIZER],
        },
        "spec": dict(template.get("spec") or {}),
    }


def owner_reference(machine_set: Object) -> JsonObject:
    """How a Machine names the set that controls it."""
    return {
        "apiVersion": machine_set["apiVersion"],
        "kind": machine_set["kind"],
        "name": object_name(machine_set).name,
        "uid": metadata(machine_set).get("uid") or "",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _wrong(machine_set: Object) -> Refused | None:
    spec = machine_set.get("spec") or {}
    replicas = spec.get("replicas", 1)
    if type(replicas) is not int or replicas < 0:
        return Refused("spec.replicas", f"{replicas!r} is no number of machines", "write a whole number from 0")
    if replicas > MOST:
        return Refused(
            "spec.replicas", f"a set makes at most {MOST} machines here", "use several sets, or fewer machines"
        )
    if spec.get("deletePolicy", "") not in _POLICIES:
        return Refused(
            "spec.deletePolicy",
            f"there is no policy {spec['deletePolicy']!r}",
            f"use one of {', '.join(_POLICIES[1:])}",
        )
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = _selector(machine_set)
    if selector is None or not selector.matches(labels):
        return Refused(
            "spec.selector",
            "it does not match the labels of spec.template",
            "give both the same label, made for this set",
        )
    return None


def _selector(machine_set: Object) -> LabelSelector | None:
    raw = (machine_set.get("spec") or {}).get("selector")
    # An empty selector would match every Machine of the namespace, those of other sets among them.
    if not raw or not (raw.get("matchLabels") or raw.get("matchExpressions")):
        return None
    try:
        return label_selector_from_object(raw)
    except SelectorError:
        return None


def _sorted_out(
    machine_set: Object, machines: Iterable[Object], selector: LabelSelector
) -> tuple[list[Object], list[Object]]:
    """The set's own Machines that stay, and those that it can adopt."""
    own, orphans, uid = list[Object](), list[Object](), metadata(machine_set).get("uid")
    for machine in machines:
        if is_being_deleted(machine):
            continue
        controller = next((o for o in metadata(machine).get("ownerReferences") or () if o.get("controller")), None)
        if controller is not None and controller.get("uid") == uid:
            own.append(machine)
        elif controller is None and selector.matches(labels_of(machine)):
            orphans.append(machine)
    return own, orphans


def _first_to_go(machines: Iterable[Object], policy: str) -> list[Object]:
    by_name = sorted(machines, key=lambda machine: object_name(machine).name)
    if policy in ("Newest", "Oldest"):
        by_name.sort(key=_created, reverse=policy == "Newest")
    return sorted(by_name, key=_worth)


def _worth(machine: Object) -> int:
    status = machine.get("status") or {}
    if DELETE_FIRST in annotations_of(machine):
        return 0
    return 1 if not status.get("nodeRef") or status.get("errorReason") or status.get("errorMessage") else 2


def _created(machine: Object) -> str:
    return str(metadata(machine).get("creationTimestamp") or "")


def _status(
    machine_set: Object, machines: list[Object], selector: LabelSelector, node: NodeOf, now: datetime
) -> JsonObject:
    spec = machine_set["spec"]
    template = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    least = timedelta(seconds=int(spec.get("minReadySeconds") or 0))
    nodes = [node(str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")) for machine in machines]
    ready = [state for state in nodes if state is not None and state.ready]
    return {
        "replicas": len(machines),
        "fullyLabeledReplicas": sum(template.items() <= labels_of(machine).items() for machine in machines),
        "readyReplicas": len(ready),
        "availableReplicas": sum(now - state.since >= least for state in ready),
        "observedGeneration": metadata(machine_set).get("generation", 1),
        "labelSelector": str(selector),
    }
