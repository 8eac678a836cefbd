"""Printers of the core group: nodes, namespaces, data, quotas, events."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.ages import UNKNOWN, age
from fastness.apiserver.tables.native.reading import (
    NONE,
    Cells,
    Obj,
    age_of,
    container_cells,
    count,
    entries,
    labels_text,
    name_of,
    part,
    text,
)

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE_LABEL: Final = "kubernetes.io/role"


def namespace(obj: Obj, now: datetime) -> list[Any]:
    """Phase."""
    return [name_of(obj), text(obj, "status", "phase"), age_of(obj, now)]


def config_map(obj: Obj, now: datetime) -> list[Any]:
    """How many keys it has."""
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age_of(obj, now)]


def secret(obj: Obj, now: datetime) -> list[Any]:
    """Type, and how many keys it has."""
    return [name_of(obj), text(obj, "type"), len(part(obj, "data")), age_of(obj, now)]


def service_account(obj: Obj, now: datetime) -> list[Any]:
    """Just its age."""
    return [name_of(obj), age_of(obj, now)]


def pod_template(obj: Obj, _now: datetime) -> list[Any]:
    """Containers and labels of its pods."""
    template = part(obj, "template")
    return [name_of(obj), *container_cells(part(template, "spec")), labels_text(part(template, "metadata", "labels"))]


def node(obj: Obj, now: datetime) -> list[Any]:
    """Readiness, roles, version, and in wide output addresses and software."""
    info = part(obj, "status", "nodeInfo")
    kernel = text(info, "kernelVersion", default=UNKNOWN)
    architecture = text(info, "architecture")
    return [
        name_of(obj),
        _node_status(obj),
        ",".join(_node_roles(part(obj, "metadata", "labels"))) or NONE,
        age_of(obj, now),
        text(info, "kubeletVersion"),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        text(info, "osImage", default=UNKNOWN),
        f"{kernel} ({architecture})" if architecture else kernel,
        text(info, "containerRuntimeVersion", default=UNKNOWN),
    ]


def _node_status(obj: Obj) -> str:
    ready = [entry for entry in entries(obj, "status", "conditions") if entry.get("type") == "Ready"]
    status = ("Ready" if ready[-1].get("status") == "True" else "NotReady") if ready else "Unknown"
    return f"{status},SchedulingDisabled" if part(obj, "spec").get("unschedulable") is True else status


def _node_roles(labels: Obj) -> list[str]:
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles.add(text(labels, ROLE_LABEL))
    return sorted(roles - {""})


def _address(obj: Obj, kind: str) -> str:
    addresses = (entry for entry in entries(obj, "status", "addresses") if entry.get("type") == kind)
    return next((text(entry, "address") for entry in addresses), NONE)


def resource_quota(obj: Obj, now: datetime) -> list[Any]:
    """Used and allowed, requests and limits apart."""
    hard, used = part(obj, "status", "hard"), part(obj, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        cell = f"{resource}: {text(used, resource, default='0')}/{hard[resource]}"
        (limits if resource.startswith("limits.") else requests).append(cell)
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age_of(obj, now)]


def event(obj: Obj, now: datetime) -> list[Any]:
    """When, what, about whom; both spellings of an event are understood."""
    about = part(obj, "involvedObject") or part(obj, "regarding")
    source = part(obj, "source") or part(obj, "deprecatedSource")
    first_time = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    first = age(first_time or obj.get("eventTime"), now)
    last_time = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    last = age(last_time, now) if last_time else first
    times = count(obj, "count") or count(obj, "deprecatedCount") or 1
    series = part(obj, "series")
    if series:
        last, times = age(series.get("lastObservedTime"), now), count(series, "count")
    kind, name = text(about, "kind").lower(), text(about, "name")
    component = text(source, "component") or text(obj, "reportingComponent") or text(obj, "reportingController")
    instance = text(source, "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {instance}" if instance else component,
        (text(obj, "message") or text(obj, "note")).strip(),
        first,
        times,
        name_of(obj),
    ]


CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("", "ConfigMap"): config_map,
    ("", "Event"): event,
    ("", "Namespace"): namespace,
    ("", "Node"): node,
    ("", "PodTemplate"): pod_template,
    ("", "ResourceQuota"): resource_quota,
    ("", "Secret"): secret,
    ("", "ServiceAccount"): service_account,
    ("events.k8s.io", "Event"): event,
}
