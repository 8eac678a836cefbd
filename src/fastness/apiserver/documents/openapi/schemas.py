"""The schemas of one document: definitions of kinds, of their lists, and of everything that those refer to.

* Native definitions come from `kinds/kubernetes` as they are, with the kind that they stand for and a sentence of ours.
* A custom kind is its own schema, plus `apiVersion`, `kind` and `metadata`, which every object has.
* `Components` collects names as operations mention them and closes over references at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes import definitions
from fastness.kinds.kubernetes.definitions import REFERENCE

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META: Final = f"{META}ObjectMeta"
LIST_META: Final = f"{META}ListMeta"
STATUS: Final = f"{META}Status"
DELETE_OPTIONS: Final = f"{META}DeleteOptions"
PATCH: Final = f"{META}Patch"
RESOURCE_LIST: Final = f"{META}APIResourceList"

_API_VERSION: Final = "Group and version of this form of the object."
_KIND: Final = "Kind of the object, in CamelCase."
_METADATA: Final = "Name, namespace, labels and all else that every object has."


def reference(name: str) -> JsonObject:
    """A `$ref` to a definition."""
    return {"$ref": REFERENCE + name}


def definition_name(kind: Kind) -> str:
    """The name of a kind's definition, as a real server names it."""
    if kind.definition:
        return kind.definition
    return ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))


def list_definition_name(kind: Kind) -> str:
    """The name of the definition of a kind's list."""
    return f"{definition_name(kind)[: -len(kind.kind)]}{kind.list_kind}"


def foreign_definition(group: str, version: str, kind: str) -> str:
    """The definition of a kind of Kubernetes, or of nothing in particular when there is none."""
    try:
        return definitions.definition_for(group, version, kind)
    except KeyError:
        return ""


class Components:
    """The schemas of one document while it is built."""

    def __init__(self) -> None:
        self._schemas: dict[str, JsonObject] = {}

    def add_kind(self, kind: Kind) -> None:
        """The definition of a kind and that of its list."""
        name = definition_name(kind)
        schema = self._native(name) if kind.native else _custom(kind)
        text = {"description": kind.description} if kind.description else {}
        self._schemas[name] = {**schema, **text, **_gvk(kind.group, kind.version, kind.kind)}
        if "list" in kind.verbs:
            self._schemas[list_definition_name(kind)] = _list(kind, name)

    def add(self, name: str, group: str = "", version: str = "", kind: str = "") -> None:
        """A native definition by its name, if it is not there yet."""
        if name and name not in self._schemas:
            self._schemas[name] = {**self._native(name), **(_gvk(group, version, kind) if kind else {})}

    def closed(self) -> JsonObject:
        """All schemas with what they refer to, by name."""
        waiting = [name for schema in self._schemas.values() for name in _references(schema)]
        while waiting:
            name = waiting.pop()
            if name not in self._schemas:
                self._schemas[name] = self._native(name)
                waiting += _references(self._schemas[name])
        return dict(sorted(self._schemas.items()))

    def _native(self, name: str) -> JsonObject:
        return dict(definitions.definition(name)) if name in definitions.names() else {"type": "object"}


def _custom(kind: Kind) -> JsonObject:
    schema = dict(kind.schema)
    properties: JsonObject = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"description": _METADATA, "allOf": [reference(OBJECT_META)]},
        **{name: property_ for name, property_ in (schema.get("properties") or {}).items() if name != "metadata"},
    }
    return {"type": "object", **schema, "properties": properties}


def _list(kind: Kind, name: str) -> JsonObject:
    return {
        "type": "object",
        "description": f"A list of {kind.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION},
            "items": {
                "type": "array",
                "description": "The objects.",
                "items": {"allOf": [reference(name)], "default": {}},
            },
            "kind": {"type": "string", "description": _KIND},
            "metadata": {"description": "Version and continuation of the list.", "allOf": [reference(LIST_META)]},
        },
        **_gvk(kind.group, kind.version, kind.list_kind),
    }


def _gvk(group: str, version: str, kind: str) -> JsonObject:
    return {"x-kubernetes-group-version-kind": [{"group": group, "kind": kind, "version": version}]}


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(REFERENCE)
            else:
                yield from _references(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _references(value)
