"""The list in metadata.managedFields: who owns which fields, since when.

An entry belongs to a manager, an operation (`Apply` or `Update`) and a subresource; two updates through different API
versions are two entries, two applies are one. The list is a value here: `Managed` maps the identity of an entry to the
entry, and every operation of `tracking.py` gives a new one.

- What this server stored is canonical and taken as it is (`stored`); what a client sends is read with care (`parse`).
- Entries are listed by operation, time, manager, version and subresource, as in Kubernetes.
- Of `Update` entries at most ten are kept apart: the oldest melt into `ancient-changes`, one for each API version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from fastness.apiserver.fields.errors import DamagedOwnership
from fastness.apiserver.fields.fieldset import FieldSet, Trie, ordered, union
from fastness.kinds.kind import JsonObject

# DefaultMaxUpdateManagers of kube-apiserver: a client that makes its name up anew for each write must not grow the object.
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"

Identity: TypeAlias = tuple[str, str, str, str]


class Writer(NamedTuple):
    """Who writes, through which version and subresource, and when (RFC 3339, whole seconds, `Z`)."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""


class ManagedFieldsEntry(NamedTuple):
    """One line of the list."""

    manager: str
    operation: str
    api_version: str
    time: str
    subresource: str
    fields: Trie

    @property
    def identity(self) -> Identity:
        """What makes two lines the same line: an applier keeps its line when it moves to another API version."""
        return identity(self.operation, self.manager, self.api_version, self.subresource)

    def to_json(self) -> JsonObject:
        """The line as managedFields has it."""
        line: JsonObject = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time:
            line["time"] = self.time
        line["fieldsType"] = "FieldsV1"
        line["fieldsV1"] = self.fields
        if self.subresource:
            line["subresource"] = self.subresource
        return line


Managed: TypeAlias = dict[Identity, ManagedFieldsEntry]


def identity(operation: str, manager: str, api_version: str, subresource: str) -> Identity:
    """The identity of a line."""
    return operation, manager, "" if operation == "Apply" else api_version, subresource


def stored(lines: Sequence[Mapping[str, Any]] | None) -> Managed:
    """Read lines that this server wrote: canonical, so nothing is checked twice. Raises DamagedOwnership for others."""
    managed: Managed = {}
    try:
        for line in lines or ():
            entry = ManagedFieldsEntry(
                line.get("manager", ""), line["operation"], line["apiVersion"], line.get("time") or "",
                line.get("subresource", ""), line.get("fieldsV1") or {},
            )  # fmt: skip
            managed[entry.identity] = entry
    except (AttributeError, KeyError, TypeError) as bad:
        path = ".metadata.managedFields"
        raise DamagedOwnership(f"failed to decode managed fields: {path} cannot be read", path) from bad
    return managed


def parse(lines: Any) -> Managed:
    """Read lines that a client sent; raises DamagedOwnership when they are not a managedFields list."""
    if not isinstance(lines, list):
        raise DamagedOwnership("metadata.managedFields is not a list", ".metadata.managedFields")
    managed: Managed = {}
    for place, line in enumerate(lines):
        try:
            entry = _entry(line)
        except ValueError as bad:
            path = f".metadata.managedFields[{place}]"
            raise DamagedOwnership(f"{path}: {bad}", path) from bad
        managed[entry.identity] = entry
    return managed


def is_reset(lines: Any) -> bool:
    """Whether a client asks to forget all ownership: an empty list, or one empty line."""
    # Server-Side Apply, "Clearing managedFields": one empty entry is the documented way to give all ownership up.
    return isinstance(lines, list) and (not lines or (len(lines) == 1 and lines[0] == {}))


def listed(managed: Managed) -> list[JsonObject]:
    """The value of metadata.managedFields, in Kubernetes' order; empty when there is nothing to say."""
    entries = list(managed.values())
    if len(entries) > 1:
        entries.sort(key=lambda each: (each.operation, each.time, each.manager, each.api_version, each.subresource))
    return [entry.to_json() for entry in entries]


def capped(managed: Managed) -> Managed:
    """At most `MAX_UPDATERS` lines of updates: the oldest melt together, version by version."""
    updates = [entry for entry in managed.values() if entry.operation == "Update"]
    excess = len(updates) - MAX_UPDATERS
    if excess <= 0:
        return managed
    out = dict(managed)
    first: dict[str, ManagedFieldsEntry] = {}
    for entry in sorted(updates, key=lambda each: (each.time, each.manager, each.api_version, each.subresource)):
        if excess <= 0:
            break
        oldest = first.setdefault(entry.api_version, entry)
        # Melted and not dropped: fields that nobody is listed for could be taken by an apply without a conflict.
        bucket = identity("Update", ANCIENT, entry.api_version, "")
        if oldest is entry or entry.identity == bucket:
            continue
        into = out.get(bucket) or out.pop(oldest.identity)
        del out[entry.identity]
        fields = ordered(union(into.fields, entry.fields))
        out[bucket] = ManagedFieldsEntry(ANCIENT, "Update", entry.api_version, entry.time, "", fields)
        excess -= 1
    return out


def _entry(line: Any) -> ManagedFieldsEntry:
    if not isinstance(line, dict):
        raise ValueError("not an object")
    texts = {
        name: line.get(name) or ""
        for name in ("manager", "operation", "apiVersion", "time", "subresource", "fieldsType")
    }
    if wrong := [name for name, text in texts.items() if not isinstance(text, str)]:
        raise ValueError(f"{wrong[0]} is not a string")
    if texts["operation"] not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    if not texts["apiVersion"]:
        raise ValueError("apiVersion must not be empty")
    if texts["fieldsType"] != "FieldsV1":
        raise ValueError(f'invalid fieldsType "{texts["fieldsType"]}"')
    # Read and written anew: what a client sends may be another spelling, and `stored` takes ours without a look.
    fields = FieldSet.from_fields_v1(line.get("fieldsV1")).to_fields_v1()
    time = _utc(texts["time"]) if texts["time"] else ""
    return ManagedFieldsEntry(
        texts["manager"], texts["operation"], texts["apiVersion"], time, texts["subresource"], fields
    )


def _utc(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {text}")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
