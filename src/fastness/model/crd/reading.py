"""Kinds out of a CustomResourceDefinition.

A definition that a user wrote comes in as JSON; each of its versions becomes a `Kind`. Only what the kinds need is read, and
each problem is a `BadDefinition` that names the field. The checks here are those without which no kind can be made; whether a
schema is structural is the business of the API that accepts the definition.

- Columns: a version without any gets AGE, as a real API server shows it.
- `status` and `scale` subresources become `subresources`; the paths of `scale` are kept as they are.
- A conversion webhook is refused: nothing here could call it, and serving unconverted objects would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.model.crd.manifest import ENVELOPE
from fastness.model.errors import BadDefinition
from fastness.model.kind import AGE, Column, JsonObject, Kind, Scope

COLUMN_TYPES = ("string", "integer", "number", "boolean", "date")


def from_manifest(definition: Mapping[str, Any]) -> list[Kind]:
    """One kind per version, in the order of the definition; raises BadDefinition."""
    spec = _mapping(definition, "spec", "")
    group = _text(spec, "group", "spec")
    names = _mapping(spec, "names", "spec")
    plural = _text(names, "plural", "spec.names")
    name = (definition.get("metadata") or {}).get("name")
    if name != f"{plural}.{group}":
        raise BadDefinition("metadata.name", f'must be spec.names.plural+"."+spec.group: {plural}.{group}')
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    if strategy != "None":
        raise BadDefinition("spec.conversion.strategy", f"{strategy} is not supported", "use the strategy None")
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        raise BadDefinition("spec.versions", "must have at least one version")
    base: JsonObject = {
        "group": group,
        "kind": _text(names, "kind", "spec.names"),
        "plural": plural,
        "singular": names.get("singular") or "",
        "list_kind": names.get("listKind") or "",
        "short_names": tuple(names.get("shortNames") or ()),
        "categories": tuple(names.get("categories") or ()),
        "scope": _scope(spec),
        "labels": dict((definition.get("metadata") or {}).get("labels") or {}),
    }
    kinds = [_kind(base, version, f"spec.versions[{at}]") for at, version in enumerate(versions)]
    _check_versions(kinds)
    return kinds


def _kind(base: JsonObject, version: object, path: str) -> Kind:
    if not isinstance(version, dict):
        raise BadDefinition(path, "must be an object")
    schema = _mapping(_mapping(version, "schema", path), "openAPIV3Schema", f"{path}.schema")
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    served = tuple(name for name in ("status", "scale") if subresources.get(name) is not None)
    return Kind(
        **base,
        version=_text(version, "name", path),
        description=schema.get("description", ""),
        schema=_own_schema(schema),
        columns=_columns(version, path),
        subresources=served,
        scale=dict(scale) if scale is not None else None,
        served=bool(version.get("served", False)),
        storage_version=bool(version.get("storage", False)),
        deprecated=bool(version.get("deprecated", False)),
        deprecation_warning=version.get("deprecationWarning") or "",
        selectable_fields=tuple(entry["jsonPath"] for entry in version.get("selectableFields") or ()),
    )


def _own_schema(schema: Mapping[str, Any]) -> JsonObject:
    """The schema without what every object has; rules on metadata (a name pattern) are kept."""
    properties = {
        name: found
        for name, found in (schema.get("properties") or {}).items()
        if name not in ENVELOPE or (name == "metadata" and found.keys() - {"type", "description"})
    }
    rest = {key: found for key, found in schema.items() if key not in ("description", "properties")}
    return {**rest, **({"properties": properties} if properties else {})}


def _columns(version: Mapping[str, Any], path: str) -> tuple[Column, ...]:
    entries = version.get("additionalPrinterColumns")
    if not entries:
        return (AGE,)
    columns = []
    for at, entry in enumerate(entries):
        where = f"{path}.additionalPrinterColumns[{at}]"
        kind = _text(entry, "type", where)
        if kind not in COLUMN_TYPES:
            raise BadDefinition(f"{where}.type", f"{kind!r} is not one of {', '.join(COLUMN_TYPES)}")
        columns.append(
            Column(
                name=_text(entry, "name", where),
                path=_text(entry, "jsonPath", where),
                type=kind,  # type: ignore[arg-type]  # checked above
                priority=int(entry.get("priority") or 0),
                description=entry.get("description") or "",
                format=entry.get("format") or "",
            )
        )
    return tuple(columns)


def _check_versions(kinds: list[Kind]) -> None:
    names = [kind.version for kind in kinds]
    if len(set(names)) != len(names):
        raise BadDefinition("spec.versions", "must contain unique version names")
    if sum(kind.storage_version for kind in kinds) != 1:
        raise BadDefinition("spec.versions", "must have exactly one version marked as storage version")


def _scope(spec: Mapping[str, Any]) -> Scope:
    text = _text(spec, "scope", "spec")
    try:
        return Scope(text)
    except ValueError as error:
        raise BadDefinition("spec.scope", f"{text!r} is not one of Cluster, Namespaced") from error


def _mapping(holder: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    found = holder.get(key)
    if not isinstance(found, dict):
        raise BadDefinition(f"{path}.{key}".lstrip("."), "is required and must be an object")
    return found


def _text(holder: Mapping[str, Any], key: str, path: str) -> str:
    found = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(found, str) or not found:
        raise BadDefinition(f"{path}.{key}".lstrip("."), "is required and must be a string")
    return found
