"""Printers of who may do what, and of the small kinds that steer the API: leases, classes, webhooks, policies."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from fastness.apiserver.tables.ages import human_duration
from fastness.apiserver.tables.native.reading import (
    NONE,
    UNSET,
    Cells,
    Obj,
    age_of,
    count,
    entries,
    name_of,
    part,
    text,
)

ADMISSION: Final = "admissionregistration.k8s.io"
RBAC: Final = "rbac.authorization.k8s.io"


def binding(obj: Obj, now: datetime) -> list[Any]:
    """The role and, in wide output, who has it."""
    role = f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"
    subjects = entries(obj, "subjects")
    named = [
        ", ".join(text(subject, "name") for subject in subjects if subject.get("kind") == kind)
        for kind in ("User", "Group")
    ]
    accounts = ", ".join(
        f"{text(subject, 'namespace')}/{text(subject, 'name')}"
        for subject in subjects
        if subject.get("kind") == "ServiceAccount"
    )
    return [name_of(obj), role, age_of(obj, now), *named, accounts]


def signing_request(obj: Obj, now: datetime) -> list[Any]:
    """Who asks which signer, for how long, and how far it got."""
    spec = part(obj, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age_of(obj, now),
        text(spec, "signerName", default=NONE),
        text(spec, "username"),
        human_duration(timedelta(seconds=seconds)) if isinstance(seconds, int) else NONE,
        _request_state(part(obj, "status")),
    ]


def _request_state(status: Obj) -> str:
    kinds = {text(entry, "type") for entry in entries(status, "conditions")}
    states = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        states.append("Failed")
    if text(status, "certificate"):
        states.append("Issued")
    return ",".join(states)


def lease(obj: Obj, now: datetime) -> list[Any]:
    """Who holds it."""
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age_of(obj, now)]


def runtime_class(obj: Obj, now: datetime) -> list[Any]:
    """The handler on the node."""
    return [name_of(obj), text(obj, "handler"), age_of(obj, now)]


def priority_class(obj: Obj, now: datetime) -> list[Any]:
    """How important its pods are."""
    default = obj.get("globalDefault") is True
    return [name_of(obj), count(obj, "value"), default, age_of(obj, now), text(obj, "preemptionPolicy")]


def webhooks(obj: Obj, now: datetime) -> list[Any]:
    """How many webhooks it has."""
    return [name_of(obj), len(entries(obj, "webhooks")), age_of(obj, now)]


def policy(obj: Obj, now: datetime) -> list[Any]:
    """How many rules it has, and which kind configures it."""
    kind = part(obj, "spec", "paramKind")
    parameters = f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}" if kind else UNSET
    return [name_of(obj), len(entries(obj, "spec", "validations")), parameters, age_of(obj, now)]


def policy_binding(obj: Obj, now: datetime) -> list[Any]:
    """Which policy, with which parameters."""
    reference, cell = part(obj, "spec", "paramRef"), UNSET
    if text(reference, "name"):
        cell = f"{text(reference, 'namespace', default='*')}/{text(reference, 'name')}"
    return [name_of(obj), text(obj, "spec", "policyName"), cell, age_of(obj, now)]


def api_service(obj: Obj, now: datetime) -> list[Any]:
    """Who answers for a group version, and whether it does."""
    service = part(obj, "spec", "service")
    backend = f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"
    conditions = (entry for entry in entries(obj, "status", "conditions") if entry.get("type") == "Available")
    condition = next(conditions, None)
    available = "Unknown"
    if condition is not None:
        available, reason = text(condition, "status"), text(condition, "reason")
        if available != "True" and reason:
            available = f"{available} ({reason})"
    return [name_of(obj), backend, available, age_of(obj, now)]


CELLS: Final[dict[tuple[str, str], Cells]] = {
    (ADMISSION, "MutatingWebhookConfiguration"): webhooks,
    (ADMISSION, "ValidatingAdmissionPolicy"): policy,
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): policy_binding,
    (ADMISSION, "ValidatingWebhookConfiguration"): webhooks,
    ("apiregistration.k8s.io", "APIService"): api_service,
    ("certificates.k8s.io", "CertificateSigningRequest"): signing_request,
    ("coordination.k8s.io", "Lease"): lease,
    ("node.k8s.io", "RuntimeClass"): runtime_class,
    (RBAC, "ClusterRoleBinding"): binding,
    (RBAC, "RoleBinding"): binding,
    ("scheduling.k8s.io", "PriorityClass"): priority_class,
}
