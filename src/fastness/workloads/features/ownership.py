"""The difference between a Node and what it should carry.

What was written here is remembered in annotations of the Node (`…/feature-labels` and so on, names without the usual prefix).
Only what is remembered is ever removed, so labels of people and of other programs stay. Resources go to capacity and
allocatable of the status. `changes` gives the two patches, or None where nothing changes: reconciling twice writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kinds.kind import JsonObject
from fastness.workloads.features.book import NodeOutcome
from fastness.workloads.features.outputs import PREFIX
from fastness.workloads.features.rules import Taint

NOTES: Final = "nfd.node.kubernetes.io"
LABELS: Final = f"{NOTES}/feature-labels"
ANNOTATIONS: Final = f"{NOTES}/feature-annotations"
RESOURCES: Final = f"{NOTES}/extended-resources"
TAINTS: Final = f"{NOTES}/taints"


@dataclass(frozen=True, slots=True)
class Changes:
    """Merge patches for a Node and for its status."""

    node: JsonObject | None
    status: JsonObject | None


def changes(node: Mapping[str, Any], wanted: NodeOutcome) -> Changes:
    """What has to be written; the annotations that remember names are part of it."""
    meta = node.get("metadata") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    patch_labels = _difference(labels, wanted.labels, _remembered(notes, LABELS))
    patch_notes = _difference(notes, wanted.annotations, _remembered(notes, ANNOTATIONS))
    patch_notes |= _note(notes, LABELS, wanted.labels)
    patch_notes |= _note(notes, ANNOTATIONS, wanted.annotations)
    patch_notes |= _note(notes, RESOURCES, wanted.resources)
    taints = _taints((node.get("spec") or {}).get("taints") or [], wanted.taints, notes.get(TAINTS, ""))
    told = ",".join(sorted(_told(taint) for taint in wanted.taints))
    if told != notes.get(TAINTS, ""):
        patch_notes[TAINTS] = told or None
    patch: JsonObject = {}
    if patch_labels or patch_notes:
        patch["metadata"] = {
            key: value for key, value in (("labels", patch_labels), ("annotations", patch_notes)) if value
        }
    if taints is not None:
        # A list is replaced as a whole, so nobody may have written it meanwhile.
        patch.setdefault("metadata", {})["resourceVersion"] = meta.get("resourceVersion", "")
        patch["spec"] = {"taints": taints}
    return Changes(patch or None, _status(node, wanted.resources, _remembered(notes, RESOURCES)))


def _status(node: Mapping[str, Any], wanted: Mapping[str, str], owned: Iterable[str]) -> JsonObject | None:
    status = node.get("status") or {}
    patch = {}
    for part in ("capacity", "allocatable"):
        there = status.get(part) or {}
        same = {name: there[name] for name, value in wanted.items() if name in there and _equal(there[name], value)}
        difference = _difference(there, {**wanted, **same}, owned)
        if difference:
            patch[part] = difference
    return {"status": patch} if patch else None


def _equal(there: Any, wanted: str) -> bool:
    """Whether two quantities are the same amount: an API server may write 4000 as 4k."""
    try:
        return parse_quantity(str(there)) == parse_quantity(wanted)
    except QuantityError:
        return False


def _difference(there: Mapping[str, str], wanted: Mapping[str, str], owned: Iterable[str]) -> dict[str, str | None]:
    patch: dict[str, str | None] = {name: None for name in owned if name not in wanted and name in there}
    return patch | {name: value for name, value in wanted.items() if there.get(name) != value}


def _remembered(notes: Mapping[str, str], note: str) -> list[str]:
    return [name if "/" in name else f"{PREFIX}/{name}" for name in notes.get(note, "").split(",") if name]


def _note(notes: Mapping[str, str], note: str, wanted: Mapping[str, str]) -> dict[str, str | None]:
    text = ",".join(sorted(name.removeprefix(f"{PREFIX}/") for name in wanted))
    if text == notes.get(note, ""):
        return {}
    return {note: text or None}


def _told(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}"


def _taints(there: list[JsonObject], wanted: list[Taint], remembered: str) -> list[JsonObject] | None:
    """The new list of taints, or None where it is as it should be."""
    owned = {text for text in remembered.split(",") if text}
    asked = {(taint.key, taint.effect): taint for taint in wanted}
    kept = []
    for one in there:
        mine = _told(Taint(one.get("key", ""), one.get("effect", ""), one.get("value", "")))
        same = asked.get((one.get("key", ""), one.get("effect", "")))
        if same is not None and _told(same) == mine:
            del asked[same.key, same.effect]
            kept.append(one)
        elif mine not in owned and same is None:
            kept.append(one)
    fresh = [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in asked.values()
    ]
    result = [*kept, *fresh]
    return None if result == there else result
