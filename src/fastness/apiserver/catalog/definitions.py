"""CustomResourceDefinition objects: what becomes of them.

* `default_crd` fills in what an API server fills in: singular, list kind, conversion, the first stored version.
* `crd_status` is the status of a definition: names are accepted unless something in the group has them already, and a
  definition whose names were accepted once stays established.
* `builtin_crd` shows a built-in kind as the definition it would be: established, and not to be changed.

What a definition must satisfy is judged by `crd_rules.py`, its kinds are read by `kinds.crd.from_manifest`. All of this is pure;
the REST engine stores the results.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.objects import condition, rfc3339, with_condition

BUILTIN_LABEL: Final = "fastness.dev/builtin"
_CONFLICTS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class ServedNames(Protocol):
    """What a definition has to know of the catalog: who has which names in its group."""

    def served_in(self, group: str, but: str = "") -> list[tuple[str, Kind]]:
        """(definition name, kind) of everything served in a group, without the definition named `but`."""


def default_crd(manifest: JsonObject) -> JsonObject:
    """The definition with the defaults of an API server; nothing is changed in place."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict) or not isinstance(names := spec.get("names"), dict):
        return manifest
    kind = names.get("kind")
    filled = dict(names)
    if isinstance(kind, str) and kind:
        filled["singular"] = names.get("singular") or kind.lower()
        filled["listKind"] = names.get("listKind") or f"{kind}List"
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**manifest, "spec": {**spec, "names": filled, "conversion": conversion}}


def name_conflicts(manifest: Mapping[str, Any], served: ServedNames) -> dict[str, str]:
    """Reason and message for every name of the definition that another kind of its group has."""
    taken_names: set[str] = set()
    taken_kinds: set[str] = set()
    for _, kind in served.served_in(manifest["spec"]["group"], but=manifest["metadata"]["name"]):
        taken_names |= {kind.plural, kind.singular, *kind.short_names}
        taken_kinds |= {kind.kind, kind.list_kind}
    names = manifest["spec"]["names"]
    conflicts = {}
    for field, reason in _CONFLICTS.items():
        claimed = names.get(field) or ()
        taken = taken_kinds if field in ("kind", "listKind") else taken_names
        clashes = [name for name in ([claimed] if isinstance(claimed, str) else claimed) if name in taken]
        if clashes:
            conflicts[reason] = ", ".join(f'"{name}" is already in use' for name in clashes)
    return conflicts


def crd_status(manifest: Mapping[str, Any], served: ServedNames, now: datetime) -> JsonObject:
    """The status that the definition should have now; equal to the present one when nothing changed."""
    status = dict(manifest.get("status") or {})
    names = {key: value for key, value in manifest["spec"]["names"].items() if value}
    conflicts = name_conflicts(manifest, served)
    conditions = status.get("conditions") or []
    if conflicts:
        reason, message = next(iter(conflicts.items()))
        conditions = with_condition(
            conditions, kind="NamesAccepted", status="False", reason=reason, message=message, now=now
        )
        if not is_established(manifest):
            text = "not all names are accepted"
            conditions = with_condition(
                conditions, kind="Established", status="False", reason="NotAccepted", message=text, now=now
            )
    else:
        text = "no conflicts found"
        conditions = with_condition(
            conditions, kind="NamesAccepted", status="True", reason="NoConflicts", message=text, now=now
        )
        if not is_established(manifest):
            reason, text = "InitialNamesAccepted", "the initial names have been accepted"
            conditions = with_condition(
                conditions, kind="Established", status="True", reason=reason, message=text, now=now
            )
    storage = [version["name"] for version in manifest["spec"]["versions"] if version.get("storage")]
    stored = status.get("storedVersions") or []
    accepted = status.get("acceptedNames") or {"plural": "", "kind": ""} if conflicts else names
    return {
        **status,
        "conditions": conditions,
        "acceptedNames": accepted,
        "storedVersions": [*stored, *(version for version in storage if version not in stored)],
    }


def is_established(manifest: Mapping[str, Any]) -> bool:
    """Whether the definition's names were accepted once."""
    established = condition(manifest, "Established")
    return established is not None and established.get("status") == "True"


class Nobody:
    """A catalog in which every name is free."""

    def served_in(self, group: str, but: str = "") -> list[tuple[str, Kind]]:
        """No kind of any group."""
        return []


def builtin_crd(manifest: JsonObject, since: datetime, version: str) -> JsonObject:
    """A built-in definition as the API shows it: the same uid in every process, established since the server's start."""
    metadata = {
        **manifest["metadata"],
        "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, manifest["metadata"]["name"])),
        "resourceVersion": version,
        "generation": 1,
        "creationTimestamp": rfc3339(since),
        "labels": {**(manifest["metadata"].get("labels") or {}), BUILTIN_LABEL: "true"},
    }
    crd = default_crd({**manifest, "metadata": metadata})
    return {**crd, "status": crd_status(crd, Nobody(), since)}
