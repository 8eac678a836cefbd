"""Whatever nodes do, in whatever order: the budget is kept, nothing is stuck, nothing is left behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastness.kinds.kata import names
from fastness.kinds.objects import labels_of
from fastness.workloads.kata.mode import DeploymentMode, FeatureGates
from fastness.workloads.kata.plan import plan
from tests.unit.workloads.kata.pretend_cluster import PretendCluster

MODES = {
    "MachineConfig": (DeploymentMode.MACHINE_CONFIG, True), "DaemonSet": (DeploymentMode.DAEMON_SET, True),
    "DaemonSetFallback": (DeploymentMode.FALLBACK, False),
}  # fmt: skip
EVENTS = (
    "look", "others", "break", "heal", "vanish", "add", "unready", "ready", "delete", "debug", "narrow", "widen",
    "remote", "local",
)  # fmt: skip
EXAMPLES = settings().max_examples // 5
happenings = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 4)), max_size=40)


def pretend(mode: str, count: int = 3) -> PretendCluster:
    gate, served = MODES[mode]
    return PretendCluster(FeatureGates(deployment_mode=gate), count, served=served)


def happens(world: PretendCluster, event: str, number: int) -> None:
    name = f"worker-{number}"
    spec = world.config["spec"] if world.config is not None else {}
    match event:
        case "look":
            world.look()
        case "others":
            world.others()
        case "break":
            world.broken.add(name)
        case "heal":
            world.broken.discard(name)
        case "vanish":
            world.vanish(name)
        case "add":
            world.add(name)
        case "unready" | "ready":
            world.ready(name, yes=event == "ready")
        case "delete":
            world.delete()
        case "debug":
            spec["logLevel"] = "debug"
        case "narrow":
            spec["kataConfigPoolSelector"] = {"matchExpressions": [{"key": "out", "operator": "DoesNotExist"}]}
            if name in world.nodes:
                world.nodes[name]["metadata"]["labels"]["out"] = ""
        case "remote" | "local":
            spec["enablePeerPods"] = event == "remote"
        case "widen":
            spec.pop("kataConfigPoolSelector", None)


@pytest.mark.parametrize("mode", MODES)
@given(story=happenings)
@settings(max_examples=EXAMPLES)
def test_when_everything_is_well_again_everything_is_where_it_should_be(
    mode: str, story: list[tuple[str, int]]
) -> None:
    world = pretend(mode)
    for event, number in story:
        happens(world, event, number)
    for number in range(5):
        world.add(f"worker-{number}")
        world.ready(f"worker-{number}", yes=True)
    world.broken.clear()
    world.settle()
    if world.config is not None:
        assert world.in_progress == ("False", "")
        chosen = sorted(name for name, node in world.nodes.items() if names.ROLE_LABEL in labels_of(node))
        assert world.config["status"]["kataNodes"]["installed"] == chosen
        assert plan(world.inputs()).actions == ()
        world.delete()
        world.settle()
    assert world.config is None
    assert world.objects == {}
    assert not any(
        names.ROLE_LABEL in labels_of(node) or names.STATE_LABEL in labels_of(node) for node in world.nodes.values()
    )
    assert world.packages == set()


@pytest.mark.parametrize("mode", MODES)
@given(story=happenings)
@settings(max_examples=EXAMPLES)
def test_a_deletion_ends_when_failed_nodes_are_taken_out(mode: str, story: list[tuple[str, int]]) -> None:
    world = pretend(mode)
    for event, number in story:
        happens(world, event, number)
    world.delete()
    for name in [*world.nodes]:
        if name in world.broken or not world._is_ready(world.nodes[name]):
            world.vanish(name)
    world.settle()
    assert world.config is None
    assert world.objects == {}
