"""A CustomResourceDefinition out of kinds.

One definition describes all versions of one group and plural. The names, scope and labels are those of the stored version
(`registry.check_versions` makes sure that the others agree). What every object has (`apiVersion`, `kind`, `metadata`) is not
part of a kind's schema and is added here, so that a real API server can explain it.

- Conversion is `None`: versions of one kind differ in name only.
- Key order follows the Kubernetes reference; `files` writes it as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from fastness.kinds import registry
from fastness.kinds.kind import Column, JsonObject, Kind

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "CustomResourceDefinition"

ENVELOPE: JsonObject = {
    "apiVersion": {"type": "string", "description": "Group and version of this representation of the object."},
    "kind": {"type": "string", "description": "Kind of the object, in CamelCase."},
    "metadata": {"type": "object"},
}


def manifests() -> tuple[JsonObject, ...]:
    """A definition for each of our own resources, ordered by group and plural."""
    together = groupby(registry.custom_kinds(), key=lambda kind: (kind.group, kind.plural))
    return tuple(describe(tuple(versions)) for _, versions in together)


def manifest(kind: Kind) -> JsonObject:
    """The definition of a registered kind with all its versions, or of a stand-alone one with just its own."""
    versions = registry.versions_of(kind.group, kind.plural)
    return describe(versions if kind in versions else (kind,))


def describe(versions: Sequence[Kind]) -> JsonObject:
    """One definition for the given versions of one resource."""
    base = next(kind for kind in versions if kind.storage_version)
    names: JsonObject = {
        "kind": base.kind,
        "listKind": base.list_kind,
        "plural": base.plural,
        "singular": base.singular,
    }
    if base.short_names:
        names["shortNames"] = list(base.short_names)
    if base.categories:
        names["categories"] = list(base.categories)
    metadata: JsonObject = {"name": base.crd_name}
    if base.labels:
        metadata["labels"] = dict(base.labels)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {
            "group": base.group,
            "names": names,
            "scope": base.scope.value,
            "versions": [_version(kind) for kind in sorted(versions, key=lambda kind: kind.version)],
        },
    }


def full_schema(kind: Kind) -> JsonObject:
    """The schema of whole objects of a kind, with the envelope that every object has."""
    schema: JsonObject = {"type": "object", **kind.schema}
    if kind.description:
        schema = {"description": kind.description, **schema}
    return {**schema, "properties": {**ENVELOPE, **schema.get("properties", {})}}


def _version(kind: Kind) -> JsonObject:
    version: JsonObject = {"name": kind.version, "served": kind.served, "storage": kind.storage_version}
    if kind.deprecated:
        version["deprecated"] = True
    if kind.deprecation_warning:
        version["deprecationWarning"] = kind.deprecation_warning
    version["schema"] = {"openAPIV3Schema": full_schema(kind)}
    subresources: JsonObject = {}
    if kind.has_status:
        subresources["status"] = {}
    if kind.scale is not None:
        subresources["scale"] = dict(kind.scale)
    if subresources:
        version["subresources"] = subresources
    if kind.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    return version


def _column(column: Column) -> JsonObject:
    printed: JsonObject = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.format:
        printed["format"] = column.format
    if column.priority:
        printed["priority"] = column.priority
    if column.description:
        printed["description"] = column.description
    return printed
