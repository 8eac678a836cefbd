"""The conditions of a MachineConfigNode."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.apply.progress import FALSE, TRUE, TYPES, UNKNOWN, Mark, differs, initial, marked
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import Progress

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def by_type(conditions: list[JsonObject]) -> dict[str, JsonObject]:
    return {entry["type"]: entry for entry in conditions}


def test_every_step_is_there_from_the_start() -> None:
    conditions = by_type(initial([], NOW))
    assert set(conditions) == set(TYPES)
    assert {(entry["status"], entry["reason"]) for entry in conditions.values()} == {("False", "NotYetOccurred")}


def test_a_child_has_the_names_of_both_as_its_reason() -> None:
    mark = Mark(Progress.UPDATE_EXECUTED, UNKNOWN, "waiting", {Progress.DRAINED: UNKNOWN})
    conditions = by_type(marked([], mark, NOW, "new"))
    assert conditions[Progress.DRAINED]["reason"] == "UpdateExecutedDrained"
    assert conditions[Progress.UPDATE_EXECUTED]["status"] == conditions[Progress.DRAINED]["status"] == "Unknown"


def test_a_step_takes_updated_away_and_updated_resets_the_steps() -> None:
    start = marked([], Mark(Progress.UPDATED, TRUE, "done"), NOW, "old")
    busy = marked(start, Mark(Progress.UPDATE_PREPARED, TRUE, "prepared"), NOW, "new")
    assert by_type(busy)[Progress.UPDATED]["status"] == FALSE
    done = by_type(marked(busy, Mark(Progress.UPDATED, TRUE, "done"), LATER, "new"))
    assert done[Progress.UPDATED]["status"] == TRUE
    assert done[Progress.UPDATE_PREPARED]["status"] == FALSE
    assert done[Progress.UPDATE_PREPARED]["message"] == "Action during update to new: prepared"
    assert done[Progress.RESUMED]["reason"] == "NotYetOccurred"


def test_degraded_stands_beside_the_steps() -> None:
    busy = marked([], Mark(Progress.UPDATED, TRUE, "done"), NOW, "old")
    bad = by_type(marked(busy, Mark(Progress.NODE_DEGRADED, TRUE, "broken"), NOW, "old"))
    assert bad[Progress.UPDATED]["status"] == TRUE
    good = by_type(marked(list(bad.values()), Mark(Progress.UPDATED, TRUE, "done"), NOW, "old"))
    assert good[Progress.NODE_DEGRADED]["status"] == TRUE


def test_times_alone_are_no_difference_and_foreign_conditions_stay() -> None:
    foreign = [{"type": "PinnedImageSetsDegraded", "status": "True", "reason": "x", "message": "y",
                "lastTransitionTime": "2020-01-01T00:00:00Z"}]  # fmt: skip
    mark = Mark(Progress.UPDATED, TRUE, "done")
    first = marked(foreign, mark, NOW, "c")
    second = marked(first, mark, LATER, "c")
    assert first[0] == foreign[0]
    assert not differs(first, second)
    assert second == first
    assert differs(first, marked(first, Mark(Progress.RESUMED, TRUE, "x"), LATER, "c"))


_CHILDREN = st.dictionaries(st.sampled_from(TYPES), st.sampled_from([TRUE, UNKNOWN]), max_size=3)
_MARKS = st.builds(
    Mark, st.sampled_from(TYPES), st.sampled_from([TRUE, FALSE, UNKNOWN]), st.text(max_size=3000), _CHILDREN
)


@given(st.lists(_MARKS, max_size=8))
def test_whatever_happens_each_type_is_there_once_and_fits_the_schema(marks: list[Mark]) -> None:
    conditions: list[JsonObject] = []
    for mark in marks:
        conditions = marked(conditions, mark, NOW, "config")
    kinds = [entry["type"] for entry in conditions]
    assert len(kinds) == len(set(kinds)) <= 20
    assert all(len(entry["message"]) <= 1024 and entry["reason"] for entry in conditions)
