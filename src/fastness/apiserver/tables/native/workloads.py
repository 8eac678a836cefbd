"""Printers of what runs pods: deployments and their relatives, jobs, disruption budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.ages import age, human_duration, parse_time
from fastness.apiserver.tables.native.reading import (
    NONE,
    Cells,
    Obj,
    age_of,
    container_cells,
    count,
    entries,
    is_true,
    labels_text,
    name_of,
    part,
    selector_text,
    text,
)

# In order of precedence: the first condition that is true names the state of a job.
JOB_ENDS: Final = ("Complete", "Failed")
JOB_STATES: Final = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def deployment(obj: Obj, now: datetime) -> list[Any]:
    """Ready of desired, updated, available."""
    status = part(obj, "status")
    ready = f"{count(status, 'readyReplicas')}/{count(obj, 'spec', 'replicas')}"
    return [
        name_of(obj),
        ready,
        count(status, "updatedReplicas"),
        count(status, "availableReplicas"),
        age_of(obj, now),
        *container_cells(part(obj, "spec", "template", "spec")),
        selector_text(part(obj, "spec").get("selector"), empty=""),
    ]


def replica_set(obj: Obj, now: datetime) -> list[Any]:
    """Desired, current, ready."""
    return [*_replicas(obj, now), selector_text(part(obj, "spec").get("selector"))]


def replication_controller(obj: Obj, now: datetime) -> list[Any]:
    """Desired, current, ready; its selector is a plain set of labels."""
    return [*_replicas(obj, now), labels_text(part(obj, "spec", "selector"))]


def _replicas(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    counts = [count(spec, "replicas"), count(status, "replicas"), count(status, "readyReplicas")]
    return [name_of(obj), *counts, age_of(obj, now), *container_cells(part(spec, "template", "spec"))]


def stateful_set(obj: Obj, now: datetime) -> list[Any]:
    """Ready of desired."""
    ready = f"{count(obj, 'status', 'readyReplicas')}/{count(obj, 'spec', 'replicas')}"
    return [name_of(obj), ready, age_of(obj, now), *container_cells(part(obj, "spec", "template", "spec"))]


def daemon_set(obj: Obj, now: datetime) -> list[Any]:
    """How many nodes should and do run it, and which nodes are chosen."""
    spec, status = part(obj, "spec"), part(obj, "status")
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(count(status, field) for field in fields),
        labels_text(part(spec, "template", "spec", "nodeSelector")),
        age_of(obj, now),
        *container_cells(part(spec, "template", "spec")),
        selector_text(spec.get("selector")),
    ]


def controller_revision(obj: Obj, now: datetime) -> list[Any]:
    """Whose revision it is."""
    owners = (entry for entry in entries(obj, "metadata", "ownerReferences") if entry.get("controller") is True)
    owner = next(owners, None)
    controller = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = text(owner, "kind") + (f".{group}" if group else "")
        controller = f"{kind.lower()}/{text(owner, 'name')}"
    return [name_of(obj), controller, count(obj, "revision"), age_of(obj, now)]


def job(obj: Obj, now: datetime) -> list[Any]:
    """State, completions, how long it ran."""
    spec, status = part(obj, "spec"), part(obj, "status")
    done, target, parallel = count(status, "succeeded"), spec.get("completions"), count(spec, "parallelism")
    completions = (
        f"{done}/{target}" if target is not None else f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    )
    return [
        name_of(obj),
        _job_state(obj),
        completions,
        _job_duration(status, now),
        age_of(obj, now),
        *container_cells(part(spec, "template", "spec")),
        selector_text(spec.get("selector")),
    ]


def _job_state(obj: Obj) -> str:
    conditions = entries(obj, "status", "conditions")
    ended = next((state for state in JOB_ENDS if is_true(conditions, state)), "")
    if ended:
        return ended
    if part(obj, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((state for kind, state in JOB_STATES if is_true(conditions, kind)), "Running")


def _job_duration(status: Obj, now: datetime) -> str:
    start = parse_time(status.get("startTime"))
    if start is None:
        return ""
    return human_duration((parse_time(status.get("completionTime")) or now) - start)


def cron_job(obj: Obj, now: datetime) -> list[Any]:
    """When it runs and ran."""
    spec, status = part(obj, "spec"), part(obj, "status")
    template = part(spec, "jobTemplate", "spec")
    suspend, last = spec.get("suspend"), status.get("lastScheduleTime")
    return [
        name_of(obj),
        text(spec, "schedule"),
        text(spec, "timeZone", default=NONE),
        "<unset>" if suspend is None else "True" if suspend else "False",
        len(entries(status, "active")),
        age(last, now) if last else NONE,
        age_of(obj, now),
        *container_cells(part(template, "template", "spec")),
        selector_text(template.get("selector")),
    ]


def disruption_budget(obj: Obj, now: datetime) -> list[Any]:
    """What must stay, what may go, how many may go now."""
    spec = part(obj, "spec")
    limits = [text(spec, field, default="N/A") for field in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *limits, count(obj, "status", "disruptionsAllowed"), age_of(obj, now)]


CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("", "ReplicationController"): replication_controller,
    ("apps", "ControllerRevision"): controller_revision,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("apps", "StatefulSet"): stateful_set,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): job,
    ("policy", "PodDisruptionBudget"): disruption_budget,
}
