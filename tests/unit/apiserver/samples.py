"""Kinds and definitions that the tests of the embedded API share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, JsonObject, Kind, Scope
from fastness.kinds.kubernetes import definitions

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def native(group: str, plural: str) -> Kind:
    """A native kind as discovery of a real server describes it."""
    resource = next(entry for entry in definitions.resources() if (entry.group, entry.plural) == (group, plural))
    return Kind(
        group=resource.group, version=resource.version, kind=resource.kind, plural=resource.plural, singular=resource.singular,
        scope=Scope.NAMESPACED if resource.namespaced else Scope.CLUSTER, short_names=resource.short_names,
        categories=resource.categories, verbs=resource.verbs, native=True, computed="list" not in resource.verbs,
        storage=("", "events") if plural == "events" else ("", ""),
        subresources=tuple(entry.name for entry in resource.subresources),
        definition=definitions.definition_for(resource.group, resource.version, resource.kind),
        description=f"{resource.kind} of Kubernetes.",
    )  # fmt: skip


POD = native("", "pods")
DEPLOYMENT = native("apps", "deployments")
MACHINE = Kind(
    group="fastness.dev", version="v1alpha1", kind="Machine", plural="machines", scope=Scope.CLUSTER, short_names=("mc",),
    description="A machine.",
    schema=s.obj({
        "spec": s.obj({"pool": s.string("Pool of the machine.")}, "What is wanted."),
        "status": s.obj({"ready": s.boolean()}),
    }),
    columns=(Column("Pool", ".spec.pool"), Column("Ready", ".status.ready", "boolean"), AGE),
    subresources=("status",),
)  # fmt: skip
NATIVES = tuple(native(entry.group, entry.plural) for entry in definitions.resources())


def crd(plural: str = "widgets", kind: str = "Widget", group: str = "example.com", **spec: Any) -> JsonObject:
    """A user's definition with one version, or with whatever `spec` replaces."""
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
    }  # fmt: skip
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    body = {"group": group, "scope": "Namespaced", "names": names, "versions": [version], **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"}, "spec": body,
    }  # fmt: skip
