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

from fastness.kinds.crd.manifest import ENVELOPE
from fastness.kinds.errors import BadDefinition
from fastness.kinds.kind import AGE, Column, JsonObject, Kind, Scope

COLUMN_TYPES = ("string", "integer", "number", "boolean", "date")
PLAIN_METADATA = {"type", "description"}


def from_manifest(definition: Mapping[str, Any]) -> list[Kind]:
    """One kind per version, in the order of the definition; raises BadDefinition."""
    spec = _mapping(definition, "spec", "")
    group = _text(spec, "group", "spec")
    names = _mapping(spec, "names", "spec")
    plural = _text(names, "plural", "spec.names")
    metadata = _mapping(definition, "metadata", "")
    if metadata.get("name") != f"{plural}.{group}":
        raise BadDefinition("metadata.name", f'must be spec.names.plural+"."+spec.group: {plural}.{group}')
    strategy = _members(spec, "conversion", "spec").get("strategy", "None")
    if strategy != "None":
        raise BadDefinition("spec.conversion.strategy", f"{strategy} is not supported", "use the strategy None")
    versions = _entries(spec, "versions", "spec")
    if not versions:
        raise BadDefinition("spec.versions", "must have at least one version")
    base: JsonObject = {
        "group": group,
        "kind": _text(names, "kind", "spec.names"),
        "plural": plural,
        "singular": _words(names, "singular", "spec.names"),
        "list_kind": _words(names, "listKind", "spec.names"),
        "short_names": _strings(names, "shortNames", "spec.names"),
        "categories": _strings(names, "categories", "spec.names"),
        "scope": _scope(spec),
        "labels": dict(_members(metadata, "labels", "metadata")),
    }
    kinds = [_kind(base, version, f"spec.versions[{at}]") for at, version in enumerate(versions)]
    _check_versions(kinds)
    return kinds


def _kind(base: JsonObject, version: Mapping[str, Any], path: str) -> Kind:
    schema = _mapping(_mapping(version, "schema", path), "openAPIV3Schema", f"{path}.schema")
    where = f"{path}.schema.openAPIV3Schema"
    subresources = _members(version, "subresources", path)
    scale = subresources.get("scale")
    return Kind(
        **base,
        version=_text(version, "name", path),
        description=_words(schema, "description", where),
        schema=_own_schema(schema, where),
        columns=_columns(version, path),
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=dict(_mapping(subresources, "scale", f"{path}.subresources")) if scale is not None else None,
        served=bool(version.get("served", False)),
        storage_version=bool(version.get("storage", False)),
        deprecated=bool(version.get("deprecated", False)),
        deprecation_warning=_words(version, "deprecationWarning", path),
        selectable_fields=tuple(
            _text(entry, "jsonPath", f"{path}.selectableFields[{at}]")
            for at, entry in enumerate(_entries(version, "selectableFields", path))
        ),
    )


def _own_schema(schema: Mapping[str, Any], path: str) -> JsonObject:
    """The schema without what every object has; rules on metadata (a name pattern) are kept."""
    properties = {
        name: value
        for name, value in _members(schema, "properties", path).items()
        if name not in ENVELOPE or (name == "metadata" and isinstance(value, dict) and value.keys() - PLAIN_METADATA)
    }
    rest = {key: value for key, value in schema.items() if key not in ("description", "properties")}
    return {**rest, **({"properties": properties} if properties else {})}


def _columns(version: Mapping[str, Any], path: str) -> tuple[Column, ...]:
    entries = _entries(version, "additionalPrinterColumns", path)
    columns = [_column(entry, f"{path}.additionalPrinterColumns[{at}]") for at, entry in enumerate(entries)]
    return tuple(columns) or (AGE,)


def _column(entry: Mapping[str, Any], path: str) -> Column:
    kind = _text(entry, "type", path)
    if kind not in COLUMN_TYPES:
        raise BadDefinition(f"{path}.type", f"{kind!r} is not one of {', '.join(COLUMN_TYPES)}")
    priority = entry.get("priority") or 0
    if not isinstance(priority, int):
        raise BadDefinition(f"{path}.priority", "must be an integer")
    return Column(
        name=_text(entry, "name", path),
        path=_text(entry, "jsonPath", path),
        type=kind,  # type: ignore[arg-type]  # checked above
        priority=priority,
        description=_words(entry, "description", path),
        format=_words(entry, "format", path),
    )


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
    value = holder.get(key)
    if not isinstance(value, dict):
        raise BadDefinition(f"{path}.{key}".lstrip("."), "is required and must be an object")
    return value


def _members(holder: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    """An object that may be missing."""
    return _mapping(holder, key, path) if holder.get(key) is not None else {}


def _entries(holder: Mapping[str, Any], key: str, path: str) -> list[Mapping[str, Any]]:
    """A list of objects that may be missing."""
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise BadDefinition(f"{path}.{key}", "must be a list of objects")
    return value


def _text(holder: Mapping[str, Any], key: str, path: str) -> str:
    text = _words(holder, key, path)
    if not text:
        raise BadDefinition(f"{path}.{key}", "is required and must be a string")
    return text


def _words(holder: Mapping[str, Any], key: str, path: str) -> str:
    """A string that may be missing."""
    value = holder.get(key)
    if value is not None and not isinstance(value, str):
        raise BadDefinition(f"{path}.{key}", "must be a string")
    return value or ""


def _strings(holder: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    value = holder.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise BadDefinition(f"{path}.{key}", "must be a list of strings")
    return tuple(value)
