"""Sets as a Node names them."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.rollout.pinned_sets import MAX_SETS, generations, note_of, read_note


def stored(name: str, generation: int, **meta: str) -> dict[str, object]:
    return {"metadata": {"name": name, "generation": generation, **meta}}


def test_what_is_noted_is_read_back() -> None:
    pools: list[dict[str, Any]] = [{"spec": {"pinnedImageSets": [{"name": "b"}, {"name": "a"}, {"name": "gone"}]}}, {}]
    asked = generations(pools, {"a": stored("a", 2), "b": stored("b", 1), "c": stored("c", 9)})
    assert note_of(asked) == "a=2 b=1"
    assert read_note(note_of(asked)) == asked
    assert read_note("") == {}


def test_a_set_that_is_being_deleted_is_not_asked_for_any_more() -> None:
    pools = [{"spec": {"pinnedImageSets": [{"name": "a"}]}}]
    assert generations(pools, {"a": stored("a", 2, deletionTimestamp="2026-01-02T03:04:05Z")}) == {}


@pytest.mark.parametrize("text", ["a", "a=", "=1", "a=x", "a=-1", "a=0", "a=1.5", "a=99999999999", "a=²"])
def test_what_no_control_plane_wrote_is_left_out(text: str) -> None:
    assert read_note(f"{text} b=2") == {"b": 2}


def test_a_note_without_end_is_cut() -> None:
    assert len(read_note(" ".join(f"s{number}=1" for number in range(1000)))) == MAX_SETS
