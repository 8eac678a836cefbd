"""Which fields a change touched, and whom it concerns."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kube.controllers.reads import NOTHING, Changes, fields, touched

OLD: JsonObject = {
    "kind": "Node",
    "metadata": {"name": "n", "uid": "1", "resourceVersion": "1", "annotations": {"a": "1", "b": "1"}, "labels": {}},
    "spec": {"taints": [{"key": "x"}]},
    "status": {"conditions": [{"type": "Ready"}], "capacity": {"cpu": "1"}},
}
NOTES = fields(annotations=("a",))


def changed(**parts: JsonObject) -> JsonObject:
    return {**OLD, **{part: {**OLD[part], **members} for part, members in parts.items()}}


@pytest.mark.parametrize(
    ("new", "paths"),
    [
        (changed(metadata={"resourceVersion": "2", "managedFields": [{}]}), set()),
        (changed(spec={"unschedulable": True}), {"spec", "spec.unschedulable"}),
        (changed(status={"capacity": None}), {"status", "status.capacity"}),
        (
            changed(metadata={"annotations": {"a": "1", "c": "1"}}),
            {"metadata", "metadata.annotations", "metadata.annotations.b", "metadata.annotations.c"},
        ),
        (changed(metadata={"labels": None}), {"metadata", "metadata.labels"}),
        ({**OLD, "data": {"k": "v"}}, {"data", "data.k"}),
        ({**OLD, "kind": "Other"}, {"kind"}),
        ({key: value for key, value in OLD.items() if key != "spec"}, {"spec", "spec.taints"}),
    ],
)
def test_the_paths_of_a_change_are_those_of_the_fields_that_differ(new: JsonObject, paths: set[str]) -> None:
    assert touched(OLD, new) == touched(new, OLD) == paths


@pytest.mark.parametrize(
    ("reads", "new", "concerned"),
    [
        (None, OLD, True),
        (NOTES, changed(metadata={"annotations": {"a": "2", "b": "1"}}), True),
        (NOTES, changed(metadata={"annotations": {"b": "1"}}), True),
        (NOTES, changed(metadata={"annotations": None}), True),
        (NOTES, changed(metadata={"annotations": {"a": "1", "b": "2"}}), False),
        (NOTES, changed(status={"capacity": {}}), False),
        (fields("metadata.annotations"), changed(metadata={"annotations": {"a": "1"}}), True),
        (fields("spec"), changed(spec={"taints": []}), True),
        (NOTHING, changed(spec={"taints": []}), False),
        (NOTHING, changed(metadata={"uid": "2"}), True),
        (NOTHING, changed(metadata={"deletionTimestamp": "now"}), True),
    ],
)
def test_a_change_concerns_who_reads_what_it_touched(
    reads: frozenset[str] | None, new: JsonObject, concerned: bool
) -> None:
    assert Changes().concern(reads, OLD, new) is concerned


def test_an_object_that_comes_or_goes_concerns_everybody() -> None:
    assert Changes().concern(NOTHING, None, OLD)
    assert Changes().concern(NOTHING, OLD, None)


def test_each_event_is_looked_at_anew() -> None:
    changes, cordoned = Changes(), changed(spec={"unschedulable": True})
    assert not changes.concern(NOTES, OLD, cordoned)
    noted = {**cordoned, "metadata": {**cordoned["metadata"], "annotations": {"a": "2"}}}
    assert changes.concern(NOTES, cordoned, noted)
    assert not changes.concern(NOTES, OLD, cordoned)


@pytest.mark.parametrize(
    ("new", "concerned"),
    [
        (changed(status={"capacity": {"cpu": "2"}}), False),
        (changed(status={"capacity": None}), False),
        (changed(metadata={"resourceVersion": "2"}), False),
        (changed(metadata={"annotations": {"a": "2", "b": "1"}}), False),
        (changed(metadata={"annotations": {"a": "1", "b": "2"}}), True),
        (changed(metadata={"annotations": None}), True),
        (changed(status={"capacity": {}, "conditions": []}), True),
        (changed(status={"capacity": {}}, spec={"taints": []}), True),
        (changed(metadata={"uid": "2"}), True),
        (changed(metadata={"deletionTimestamp": "now"}), True),
        ({**OLD, "status": None}, True),
    ],
)
def test_whoever_says_what_it_does_not_read_is_told_of_everything_else(new: JsonObject, concerned: bool) -> None:
    unread = fields("status.capacity", annotations=("a",))
    assert Changes().concern(None, OLD, new, unread) is concerned
