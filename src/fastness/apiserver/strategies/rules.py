"""What Kubernetes refuses in native objects beyond their schema: workloads, access, leases, signing requests, nodes.

One function per kind, from the new and the old object to causes. Only rules that a user meets are here: those that protect an
identity (selectors, values that may not change) and those that keep a meaningless object from being stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from fastness.formats import json, names
from fastness.formats.errors import FormatError, QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kube.errors import Cause

RBAC_GROUP = "rbac.authorization.k8s.io"
Obj = Mapping[str, Any]


def required(field: str, why: str = "") -> Cause:
    """A value is missing."""
    return Cause(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def unsupported(field: str, value: Any, *supported: str) -> Cause:
    """A value is not one of the known ones."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return Cause(field, "FieldValueNotSupported", f'Unsupported value: "{str(value)[:60]}": supported values: {listed}')


def wrong(field: str, value: Any, why: str) -> Cause:
    """A value is not allowed."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {str(value)[:60]!r}: {why}")


def _at(obj: Obj | None, *path: str) -> Any:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def deployment(new: Obj, old: Obj | None) -> list[Cause]:
    """The selector selects the template and does not change."""
    causes = []
    selector = _at(new, "spec", "selector", "matchLabels") or {}
    labels = _at(new, "spec", "template", "metadata", "labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        causes.append(wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    if old is not None and _at(new, "spec", "selector") != _at(old, "spec", "selector"):
        causes.append(wrong("spec.selector", _at(new, "spec", "selector"), "field is immutable"))
    return causes


def job(new: Obj, _old: Obj | None) -> list[Cause]:
    """The pods of a job end."""
    policy = _at(new, "spec", "template", "spec", "restartPolicy")
    if policy in ("OnFailure", "Never"):
        return []
    return [required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')]


def containers(spec: Obj) -> Iterator[Cause]:
    """Containers have names that are labels, and an image."""
    for index, container in enumerate(spec.get("containers") or ()):
        path = f"spec.containers[{index}]"
        if name := container.get("name"):
            yield from (wrong(f"{path}.name", name, problem) for problem in names.dns1123_label(name))
        if not container.get("image"):
            yield required(f"{path}.image", "what the container runs")
        yield from amounts(container, path)


def amounts(spec: Obj, path: str) -> Iterator[Cause]:
    """Requests and limits are quantities."""
    for part in ("requests", "limits"):
        listed = _at(spec, "resources", part)
        for name, amount in listed.items() if isinstance(listed, Mapping) else ():
            try:
                parse_quantity(str(amount))
            except QuantityError as error:
                yield wrong(f"{path}.resources.{part}[{name}]", amount, f"{error}; {error.hint}")


def claim(new: Obj, _old: Obj | None) -> list[Cause]:
    """A claim asks for an amount of storage."""
    spec = new.get("spec") or {}
    causes = list(amounts(spec, "spec"))
    if not (_at(spec, "resources", "requests") or {}).get("storage"):
        causes.append(required("spec.resources[storage]"))
    return causes


def lease(new: Obj, _old: Obj | None) -> list[Cause]:
    """A lease lasts, and transitions are counted upwards."""
    causes = []
    seconds, transitions = _at(new, "spec", "leaseDurationSeconds"), _at(new, "spec", "leaseTransitions")
    if isinstance(seconds, int) and seconds <= 0:
        causes.append(wrong("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if isinstance(transitions, int) and transitions < 0:
        causes.append(wrong("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return causes


def priority_class(new: Obj, old: Obj | None) -> list[Cause]:
    """A priority stays what it is."""
    if old is None or new.get("value", 0) == old.get("value", 0):
        return []
    return [Cause("value", "FieldValueForbidden", "Forbidden: may not be changed in an update.")]


def node(new: Obj, old: Obj | None) -> list[Cause]:
    """A machine's identity at its provider is set once."""
    before = _at(old, "spec", "providerID")
    if not before or _at(new, "spec", "providerID") == before:
        return []
    return [Cause("spec.providerID", "FieldValueForbidden", "Forbidden: may not change once it is set")]


def signing_request(new: Obj, old: Obj | None) -> list[Cause]:
    """A request is PEM and names its signer and usages; it is approved or denied, and its certificate is PEM."""
    causes = [] if old is not None else list(_signing_spec(new))
    kinds = {each.get("type") for each in _at(new, "status", "conditions") or ()}
    if {"Approved", "Denied"} <= kinds:
        causes.append(wrong("status.conditions", "Denied", "Approved and Denied conditions are mutually exclusive"))
    certificate = _at(new, "status", "certificate")
    if certificate and b"-----BEGIN CERTIFICATE-----" not in _decoded(certificate):
        causes.append(wrong("status.certificate", "…", "must contain at least one CERTIFICATE PEM block"))
    return causes


def _signing_spec(new: Obj) -> Iterator[Cause]:
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in _decoded(_at(new, "spec", "request")):
        yield wrong("spec.request", "…", "PEM block type must be CERTIFICATE REQUEST")
    if not _at(new, "spec", "usages"):
        yield required("spec.usages")
    signer = _at(new, "spec", "signerName")
    if not signer:
        yield required("spec.signerName")
    elif "." not in signer.partition("/")[0] or not signer.partition("/")[2]:
        yield wrong("spec.signerName", signer, "must be a domain and a path, like example.com/signer-name")


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def event(new: Obj, old: Obj | None) -> list[Cause]:
    """An event of the new group says when it happened and of which type it is."""
    causes = []
    if old is None and not new.get("eventTime"):
        causes.append(required("eventTime"))
    if new.get("type") not in ("Normal", "Warning"):
        causes.append(wrong("type", new.get("type") or "", "is Normal or Warning"))
    return causes


def role(new: Obj, _old: Obj | None) -> list[Cause]:
    """Every rule of a role in a namespace is about resources."""
    return [cause for index, rule in enumerate(new.get("rules") or ()) for cause in _rule(index, rule, cluster=False)]


def cluster_role(new: Obj, _old: Obj | None) -> list[Cause]:
    """Every rule of a cluster role is about resources or about paths."""
    return [cause for index, rule in enumerate(new.get("rules") or ()) for cause in _rule(index, rule, cluster=True)]


def _rule(index: int, rule: Obj, *, cluster: bool) -> Iterator[Cause]:
    path = f"rules[{index}]"
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if not cluster:
            yield wrong(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield wrong(f"{path}.nonResourceURLs", urls, text)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding(new: Obj, old: Obj | None) -> list[Cause]:
    """A binding in a namespace refers to a role or a cluster role."""
    return [*_reference(new, old, ("Role", "ClusterRole")), *_subjects(new, namespaced=True)]


def cluster_role_binding(new: Obj, old: Obj | None) -> list[Cause]:
    """A binding of the cluster refers to a cluster role."""
    return [*_reference(new, old, ("ClusterRole",)), *_subjects(new, namespaced=False)]


def _reference(new: Obj, old: Obj | None, kinds: tuple[str, ...]) -> Iterator[Cause]:
    ref = new.get("roleRef") or {}
    if ref.get("apiGroup", RBAC_GROUP) != RBAC_GROUP:
        yield unsupported("roleRef.apiGroup", ref["apiGroup"], RBAC_GROUP)
    if ref.get("kind") not in kinds:
        yield unsupported("roleRef.kind", ref.get("kind") or "", *kinds)
    if not ref.get("name"):
        yield required("roleRef.name")
    if old is not None and ref != old.get("roleRef"):
        yield wrong("roleRef", ref, "cannot change roleRef; delete and create anew")


def _subjects(new: Obj, *, namespaced: bool) -> Iterator[Cause]:
    for index, subject in enumerate(new.get("subjects") or ()):
        path, kind = f"subjects[{index}]", subject.get("kind")
        if not subject.get("name"):
            yield required(f"{path}.name")
        if kind not in ("User", "Group", "ServiceAccount"):
            yield unsupported(f"{path}.kind", kind or "", "ServiceAccount", "User", "Group")
        elif kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")


def secret_type(new: Obj) -> Iterator[Cause]:
    """The keys that a type of secret promises."""
    data, kind = new.get("data") or {}, new.get("type")
    if kind == "kubernetes.io/tls":
        yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)
    elif kind == "kubernetes.io/service-account-token":
        if not _at(new, "metadata", "annotations", "kubernetes.io/service-account.name"):
            yield required("metadata.annotations[kubernetes.io/service-account.name]")
    elif kind == "kubernetes.io/dockerconfigjson":
        if ".dockerconfigjson" not in data:
            yield required("data[.dockerconfigjson]")
        elif not _is_json(data[".dockerconfigjson"]):
            yield wrong("data[.dockerconfigjson]", "…", "is not JSON")


def _is_json(encoded: str) -> bool:
    try:
        json.decode(base64.b64decode(encoded or "", validate=True))
    except (binascii.Error, ValueError, FormatError):
        return False
    return True
