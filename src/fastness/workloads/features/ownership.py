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


def changes(node: Mapping[str, Any], outcome: NodeOutcome) -> Changes:
    """What has to be written; the annotations that remember names are part of it."""
    meta = node.get("metadata") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    patch_labels = _difference(labels, outcome.labels, _remembered(notes, LABELS))
    patch_notes = _difference(notes, outcome.annotations, _remembered(notes, ANNOTATIONS))
    patch_notes |= _note(notes, LABELS, outcome.labels)
    patch_notes |= _note(notes, ANNOTATIONS, outcome.annotations)
    patch_notes |= _note(notes, RESOURCES, outcome.resources)
    taints = _taints((node.get("spec") or {}).get("taints") or [], outcome.taints, notes.get(TAINTS, ""))
    taint_note = ",".join(sorted(_written(taint) for taint in outcome.taints))
    if taint_note != notes.get(TAINTS, ""):
        patch_notes[TAINTS] = taint_note or None
    patch: JsonObject = {}
    if patch_labels or patch_notes:
        patch["metadata"] = {
            key: value for key, value in (("labels", patch_labels), ("annotations", patch_notes)) if value
        }
    if taints is not None:
        # A list is replaced as a whole, so nobody may have written it meanwhile.
        patch.setdefault("metadata", {})["resourceVersion"] = meta.get("resourceVersion", "")
        patch["spec"] = {"taints": taints}
    return Changes(patch or None, _status(node, outcome.resources, _remembered(notes, RESOURCES)))


def _status(node: Mapping[str, Any], resources: Mapping[str, str], owned: Iterable[str]) -> JsonObject | None:
    status = node.get("status") or {}
    patch = {}
    for part in ("capacity", "allocatable"):
        there = status.get(part) or {}
        same = {name: there[name] for name, value in resources.items() if name in there and _equal(there[name], value)}
        difference = _difference(there, {**resources, **same}, owned)
        if difference:
            patch[part] = difference
    return {"status": patch} if patch else None


def _equal(there: Any, amount: str) -> bool:
    """Whether two quantities are the same amount: an API server may write 4000 as 4k."""
    try:
        return parse_quantity(str(there)) == parse_quantity(amount)
    except QuantityError:
        return False


def _difference(there: Mapping[str, str], target: Mapping[str, str], owned: Iterable[str]) -> dict[str, str | None]:
    # Only names that we remember to have written are taken away: what others put on a node is theirs.
    patch: dict[str, str | None] = {name: None for name in owned if name not in target and name in there}
    return patch | {name: value for name, value in target.items() if there.get(name) != value}


def _remembered(notes: Mapping[str, str], note: str) -> list[str]:
    return [name if "/" in name else f"{PREFIX}/{name}" for name in notes.get(note, "").split(",") if name]


def _note(notes: Mapping[str, str], note: str, entries: Mapping[str, str]) -> dict[str, str | None]:
    text = ",".join(sorted(name.removeprefix(f"{PREFIX}/") for name in entries))
    if text == notes.get(note, ""):
        return {}
    return {note: text or None}


def _written(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}"


def _taints(there: list[JsonObject], target: list[Taint], remembered: str) -> list[JsonObject] | None:
    """The new list of taints, or None where it is as it should be."""
    owned = {text for text in remembered.split(",") if text}
    missing = {(taint.key, taint.effect): taint for taint in target}
    remaining = []
    for taint in there:
        mine = _written(Taint(taint.get("key", ""), taint.get("effect", ""), taint.get("value", "")))
        same = missing.get((taint.get("key", ""), taint.get("effect", "")))
        if same is not None and _written(same) == mine:
            del missing[same.key, same.effect]
            remaining.append(taint)
        elif mine not in owned and same is None:
            remaining.append(taint)
    fresh = [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in missing.values()
    ]
    result = [*remaining, *fresh]
    return None if result == there else result
