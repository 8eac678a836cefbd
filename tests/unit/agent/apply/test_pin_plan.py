"""What is to be pinned, whether there is room, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.agent.apply.pins import plan
from fastness.agent.apply.pins.plan import PinSet
from fastness.agent.errors import PinsRefused

GIB = 1024**3
A, B = (f"quay.example/team/{name}@sha256:" + "0" * 64 for name in "ab")


def stored(*images: str, generation: int = 3) -> dict[str, Any]:
    return {
        "metadata": {"name": "base", "generation": generation},
        "spec": {"pinnedImages": [{"name": n} for n in images]},
    }


def node(storage: Any = "100Gi", ready: str = "True", pressure: str = "False", **labels: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}, {"type": "DiskPressure", "status": pressure}]
    status = {"conditions": conditions, "allocatable": {"ephemeral-storage": storage}}
    return {"metadata": {"name": "n", "labels": labels}, "status": status}


def test_images_of_several_sets_stand_once_and_in_order() -> None:
    sets = [plan.read_set(stored(B, A)), PinSet("tools", 1, frozenset({A}))]
    assert sets[0].generation == 3
    assert plan.images_of(sets) == [A, B]


@pytest.mark.parametrize(
    "name",
    ["quay.example/a:1", '"]\n[crio.runtime]', "--help", f"{A} x", f"*@sha256:{'0' * 64}", f"{'a' * 400}.example/{A}"],
)
def test_a_name_that_is_no_digest_is_refused_on_the_machine_too(name: str) -> None:
    with pytest.raises(PinsRefused, match="PinnedImageSet base"):
        plan.read_set(stored(A, name))


def test_a_node_pulls_when_it_is_ready_and_has_room() -> None:
    assert plan.unready(node()) == ""
    assert "not ready" in plan.unready(node(ready="Unknown"))
    assert "not ready" in plan.unready({})
    assert "disk pressure" in plan.unready(node(pressure="True"))
    assert plan.unready(node(storage="16Gi")) == ""
    assert "less than minimum required" in plan.unready(node(storage="17179869183"))
    assert "less than minimum required" in plan.unready(node(storage="much"))


def test_twice_the_missing_images_must_leave_sixteen_gibibytes() -> None:
    assert plan.lacks_room(node(storage="26Gi"), [3 * GIB, 2 * GIB - 1]) == ""
    assert "storage available is less than minimum required" in plan.lacks_room(node(storage="26Gi"), [5 * GIB])


def test_a_control_plane_pulls_one_image_at_a_time() -> None:
    assert plan.workers(node(), 5) == 5
    assert plan.workers(node(**{"node-role.kubernetes.io/master": ""}), 5) == 1


def test_a_failure_is_told_of_the_sets_that_it_concerns_and_the_others_stay_current() -> None:
    before = [{"name": "old", "currentGeneration": 2, "desiredGeneration": 2}, {"name": "new", "currentGeneration": 1}]
    sets = [PinSet("old", 2, frozenset({A})), PinSet("new", 2, frozenset({B}))]
    told = {entry["name"]: entry for entry in plan.reported(before, sets, "B is gone", frozenset({B}))}
    assert told["old"] == {"name": "old", "desiredGeneration": 2, "currentGeneration": 2}
    # Its image is not here, whatever it said before.
    assert told["new"] == {
        "name": "new",
        "desiredGeneration": 2,
        "lastFailedGeneration": 2,
        "lastFailedGenerationError": "B is gone",
    }
    lost = plan.reported(before, sets, "A is gone", frozenset({A}))[1]
    assert "currentGeneration" not in lost
    assert lost["lastFailedGeneration"] == 2


def test_success_forgets_the_failure_before_it() -> None:
    before = [
        {"name": "base", "desiredGeneration": 3, "lastFailedGeneration": 3, "lastFailedGenerationError": "x"},
    ]
    done = plan.reported(before, [PinSet("base", 3, frozenset({A}))], "", frozenset())
    assert done == [{"name": "base", "desiredGeneration": 3, "currentGeneration": 3}]


def test_generations_never_go_back_within_an_entry() -> None:
    before = [{"name": "base", "desiredGeneration": 7, "currentGeneration": 7}]
    again = [PinSet("base", 1, frozenset({A}))]
    assert plan.begun(before, again) == [{"name": "base", "desiredGeneration": 1}]
    assert plan.restarted(before, plan.begun(before, again)) == {"base"}
    assert plan.restarted(before, plan.begun(before, [PinSet("base", 8, frozenset())])) == frozenset()


def test_a_long_list_of_failures_is_cut() -> None:
    text = plan.summary({f"image-{number}": "gone" for number in range(9)})
    assert text.count("gone") == 5
    assert text.endswith("and 4 more")
