"""What a node goes to: the config of its pool, and the digest of the overlays for its machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.machineconfig.overlay.merged import Laid, merged_object, overlay_in, versions_in
from fastness.machineconfig.overlay.overlay import MOST_OVERLAYS, examine
from fastness.machineconfig.overlay.targets import overlay_targets, overlays_of
from fastness.machineconfig.rollout.assigned import assignment, is_assigned
from fastness.machineconfig.rollout.nodes import GAVE_UP, SINCE, Goal, NodeFacts, facts
from fastness.machineconfig.rollout.rollout import candidates, free, mergeable, target_patch
from fastness.machineconfig.rollout.try_for import back_patch, not_again
from fastness.machineconfig.serving import CannotServe, rendered_object
from tests.unit.machineconfig.build import file, ignition, node

RENDERED = {
    "apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": {"name": "rendered-worker-1"},
    "spec": {"config": ignition(file("/etc/a", "pool")), "fips": True},
}  # fmt: skip
SNP, TPM = {"properties": {"tee": "snp"}}, {"properties": {"tee": "tpm"}}


def overlay(name: str, match: Any = SNP, text: str = "mine") -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"match": match, "config": ignition(file("/etc/a", text))}}


def machine(number: int, tee: str = "snp") -> JsonObject:
    status = {"nodeName": f"n{number}", "keyThumbprint": f"k{number}", "properties": {"tee": tee}}
    return {"metadata": {"name": f"m{number}", "uid": f"uid-{number}"}, "status": status}


BAD = {"metadata": {"name": "bad"}, "spec": {"match": SNP, "config": ["?"]}}


def test_nodes_go_to_the_digest_of_the_overlays_that_match_and_of_nothing_else() -> None:
    both = overlay_targets([machine(1), machine(2), machine(3, "tpm")], [overlay("a"), overlay("b", TPM)])
    assert both.keys() == {"n1", "n2", "n3"}
    assert both["n1"] == both["n2"] == Laid.of([examine(overlay("a"))]).digest != both["n3"]
    assert overlay_targets([machine(1, "tdx")], [overlay("a")]) == {}
    assert (
        overlay_targets([{**machine(1), "status": {"nodeName": "n1", "properties": {"tee": "snp"}}}], [overlay("a")])
        == {}
    )


def test_a_digest_changes_with_what_an_overlay_says_and_with_their_order() -> None:
    first, second = examine(overlay("a")), examine(overlay("b"))
    digests = {overlays_of(some) for some in ([first], [second], [first, second], [second, first], [])}
    assert len(digests) == 5
    assert overlays_of([]) == ""
    assert overlays_of([examine(overlay("a", text="other"))]) not in digests


def test_overlays_that_cannot_be_merged_are_no_target() -> None:
    assert overlay_targets([machine(1)], [overlay("a"), BAD]) == {"n1": None}
    assert overlays_of([examine(overlay(f"o{number}")) for number in range(MOST_OVERLAYS + 1)]) is None


def test_what_a_running_machine_gets_is_merged_and_names_its_overlays() -> None:
    layers = [examine(overlay("a"))]
    merged = json.decode(merged_object(rendered_object(RENDERED), layers))
    assert merged == {**Laid.of(layers).over(json.decode(rendered_object(RENDERED)))}
    assert overlay_in(merged) == overlays_of(layers)
    assert versions_in(merged) == (layers[0].version,)
    assert merged["spec"]["fips"]
    assert merged["metadata"]["name"] == "rendered-worker-1"
    assert merged_object(b"as it is", []) == b"as it is"
    assert (overlay_in(RENDERED), versions_in(RENDERED)) == ("", ())


LINKED = {"ignition": {"version": "3.5.0"}, "storage": {"links": [{"path": "/etc", "target": "/usr/etc"}]}}


@pytest.mark.parametrize("body", [b"{", json.encode({"spec": {"config": LINKED}})])
def test_a_config_that_nothing_can_be_laid_over_is_told(body: bytes) -> None:
    with pytest.raises(CannotServe, match="the merged config is not good"):
        merged_object(body, [examine(overlay("a"))])


def test_a_bad_overlay_is_not_left_out_on_day_two() -> None:
    with pytest.raises(CannotServe, match="bad cannot be merged"):
        merged_object(rendered_object(RENDERED), [examine(overlay("a")), examine(BAD)])


def with_overlays(current: str = "", desired: str | None = None, **more: Any) -> NodeFacts:
    made = node("n1", current="new", **more)
    made["metadata"]["annotations"] |= {names.CURRENT_OVERLAY: current} if current else {}
    made["metadata"]["annotations"] |= {names.DESIRED_OVERLAY: desired} if desired is not None else {}
    return facts(made)


D, E = "d" * 32, "e" * 32
GOAL = Goal("new", overlays={"n1": D})


def test_a_node_that_was_installed_with_its_overlays_is_updated_though_nobody_told_it() -> None:
    assert with_overlays(D).updated(GOAL)
    assert not with_overlays(D).updated(Goal("new"))


def test_a_node_with_other_overlays_than_it_should_have_goes_under_the_budget() -> None:
    late = with_overlays(E)
    away = facts(node("n2", current="new", ready=False))
    assert candidates([late], GOAL, 1).nodes == (late,)
    assert candidates([late, away], GOAL, 1).nodes == ()
    assert target_patch(late, GOAL)["metadata"]["annotations"] == {
        names.DESIRED_CONFIG: "new", names.DESIRED_IMAGE: None, names.DESIRED_OVERLAY: D,
    }  # fmt: skip


def test_taking_an_overlay_away_is_said_and_a_node_without_any_hears_nothing_of_them() -> None:
    assert target_patch(with_overlays(E), Goal("new"))["metadata"]["annotations"][names.DESIRED_OVERLAY] == ""
    assert names.DESIRED_OVERLAY not in target_patch(with_overlays(), Goal("new"))["metadata"]["annotations"]


def test_a_node_on_its_way_to_an_overlay_that_nobody_wants_any_more_is_called_back_at_once() -> None:
    trying = with_overlays("", D, state="Working")
    assert trying.unavailable
    assert candidates([trying], Goal("new"), 1).nodes == (trying,)
    failed = with_overlays("", D, state="Degraded")
    assert failed.failing
    assert candidates([failed], GOAL, 1).why == "1 node failed to reach new"


def test_overlays_that_cannot_be_merged_hold_a_node_and_say_so() -> None:
    broken, waiting = Goal("newer", overlays={"n1": None}), with_overlays(D)
    choice = candidates([waiting], broken, 1, hold=mergeable(broken, free))
    assert choice.nodes == ()
    assert "n1 cannot be merged" in choice.why
    assert with_overlays(D).updated(Goal("new", overlays={"n1": None})), "a bad overlay alone moves nobody"


def test_a_node_that_gave_up_an_overlay_keeps_what_it_has_and_tries_a_corrected_one() -> None:
    trying = with_overlays(E, D, state="Working")
    notes = back_patch(trying, GOAL)["metadata"]["annotations"]
    assert notes[names.DESIRED_OVERLAY] == E
    assert (notes[GAVE_UP], notes[SINCE]) == (f"new@{D}", None)
    stays = NodeFacts("n1", ready=True, current="new", desired="new", state="Done", current_overlay=E,
                      desired_overlay=E, gave_up=f"new@{D}")  # fmt: skip
    assert not_again(GOAL, free)(stays) is not None
    assert not_again(Goal("new", overlays={"n1": "f" * 32}), free)(stays) is None


def test_waves_begin_again_for_other_overlays_and_not_for_another_machine_with_the_same() -> None:
    assert Goal("new").key == "new" != GOAL.key
    assert Goal("new", overlays={"n1": D, "n2": D}).key == GOAL.key
    assert Goal("new", overlays={"n1": E}).key != GOAL.key


def assigned(**status: str) -> Machine:
    return view({"metadata": {"name": "m"}, "spec": {"id": ""}, "status": status}, Machine)


def test_a_machine_may_have_the_overlays_that_were_written_on_it_with_the_config_that_they_go_with() -> None:
    sent = assigned(desiredConfig="new", desiredOverlay=D, currentConfig="old", currentOverlay=E)
    targets = ("new", "old", f"new@{D}", f"new@{E}", f"old@{E}", f"old@{D}", f"@{D}", "")
    assert [target for target in targets if is_assigned(sent, target)] == [f"new@{D}", f"old@{E}"]
    assert is_assigned(assigned(desiredConfig="new"), "new")


def test_a_node_cannot_widen_what_its_machine_may_have_by_claiming_overlays() -> None:
    assert assignment(assigned(desiredConfig="new", desiredOverlay=E), with_overlays("f" * 32), GOAL, ()) == {
        "currentConfig": "new", "desiredOverlay": D,
    }  # fmt: skip
    follows = assignment(assigned(desiredConfig="new", desiredOverlay=E), with_overlays(E), GOAL, ())
    assert follows == {"currentConfig": "new", "desiredOverlay": D, "currentOverlay": E}
    back = assigned(desiredConfig="new", desiredOverlay=D, currentConfig="new", currentOverlay=E)
    assert assignment(back, with_overlays(D, D), Goal("new"), ()) == {"desiredOverlay": "", "currentOverlay": D}
    assert assignment(back, with_overlays(E), GOAL, ()) == {}


@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.lists(
        st.tuples(st.sampled_from(["arrive", "fail", "retry", "config", "overlay"]), st.integers(0, 99)), max_size=60
    ),
)
def test_any_story_of_configs_and_overlays_keeps_the_budget_and_ends_where_it_should(
    size: int, budget: int, story: list[tuple[str, int]]
) -> None:
    """And in the end a second look tells nobody anything: reconciling twice changes nothing."""
    nodes = {f"n{number}": node(f"n{number}", current="c0") for number in range(size)}
    goal = Goal("c0")

    def notes_of(member: JsonObject) -> dict[str, Any]:
        return dict[str, Any](member["metadata"]["annotations"])

    def tell() -> int:
        choice = candidates([facts(member) for member in nodes.values()], goal, budget).nodes
        for chosen in choice:
            told = {**target_patch(chosen, goal)["metadata"]["annotations"], names.STATE: "Working"}
            merged = {**notes_of(nodes[chosen.name]), **told}
            nodes[chosen.name]["metadata"]["annotations"] = {
                key: value for key, value in merged.items() if value is not None
            }
        return len(choice)

    def arrive(member: JsonObject) -> None:
        notes = notes_of(member)
        overlay_now = notes.get(names.DESIRED_OVERLAY, notes.get(names.CURRENT_OVERLAY, ""))
        notes |= {
            names.CURRENT_CONFIG: notes[names.DESIRED_CONFIG],
            names.STATE: "Done",
            names.CURRENT_OVERLAY: overlay_now,
        }
        member["metadata"]["annotations"] = notes

    for what, chance in story:
        busy = [member for member in nodes.values() if not facts(member).done and not facts(member).degraded]
        failing = [member for member in nodes.values() if facts(member).failing]
        if what == "config":
            goal = Goal(f"c{chance % 3}", overlays=goal.overlays)
        elif what == "overlay":
            digest = ("", D, E)[chance % 3]
            goal = Goal(goal.config, overlays={**goal.overlays, f"n{chance % size}": digest})
        elif what == "arrive" and busy:
            arrive(busy[chance % len(busy)])
        elif what == "fail" and busy:
            busy[chance % len(busy)]["metadata"]["annotations"][names.STATE] = "Degraded"
        elif what == "retry" and failing:
            failing[chance % len(failing)]["metadata"]["annotations"][names.STATE] = "Working"
        tell()
        assert sum(facts(member).unavailable for member in nodes.values()) <= budget
    for _ in range(4 * size + 4):
        for member in nodes.values():
            if not facts(member).done:
                arrive(member)
        tell()
    assert all(facts(member).updated(goal) for member in nodes.values())
    assert tell() == 0
