"""The life of a build: transitions, what is frozen, what goes and what stays."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

from fastness.builds import life
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.rollout.built import built_for, phase_of
from fastness.machineconfig.rollout.status import BuildPhase

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = f"registry.example/os@sha256:{'a' * 64}"
CONFIG: JsonObject = {
    "metadata": {"name": "worker", "uid": "u", "generation": 1},
    "spec": {
        "machineConfigPool": {"name": "worker"}, "renderedImagePushSecret": {"name": "push"},
        "renderedImagePushSpec": "registry.example/os/worker:latest",
    },
}  # fmt: skip
POOL: JsonObject = {"metadata": {"name": "worker"}, "spec": {"configuration": {"name": "rendered-worker-1"}}}


def build(
    name: str = "worker-1", *phases: BuildPhase, image: str = "", created: str = "", inputs: str = "i"
) -> JsonObject:
    made = life.manifest(name, CONFIG, "rendered-worker-1", inputs)
    made["metadata"]["creationTimestamp"] = created
    made["status"] = {"digestedImagePushSpec": image} if image else {}
    for phase in phases:
        conditions = life.moved(made, phase, "why", NOW)
        assert conditions is not None
        made["status"]["conditions"] = conditions
    return made


def succeeded(name: str, image: str, created: str = "") -> JsonObject:
    return build(name, BuildPhase.BUILDING, BuildPhase.SUCCEEDED, image=image, created=created)


def test_a_build_says_what_it_is_for() -> None:
    made = life.manifest("worker-1", CONFIG, "rendered-worker-1", "i")
    assert made["metadata"]["labels"] == {
        names.BUILD_POOL_LABEL: "worker", names.BUILD_CONFIG_LABEL: "rendered-worker-1", names.BUILD_OF_LABEL: "worker",
    }  # fmt: skip
    assert made["spec"]["renderedImagePushSpec"] == "registry.example/os/worker:worker-1"


def test_exactly_one_condition_holds_and_what_ended_stays_as_it_ended() -> None:
    for first, then in product(BuildPhase, BuildPhase):
        start = build("worker-1", *(() if first is BuildPhase.INITIAL else (first,)))
        assert phase_of(start) is first
        conditions = life.moved(start, then, "", NOW)
        backwards = (BuildPhase.INITIAL, BuildPhase.PREPARED) if first.under_way else tuple(BuildPhase)
        if then is BuildPhase.INITIAL or first is then or (then in backwards and first is not BuildPhase.INITIAL):
            assert conditions is None
            continue
        assert conditions is not None
        assert [each["type"] for each in conditions if each["status"] == "True"] == [then]
        assert len(conditions) == 5


def test_builds_that_nobody_needs_go_and_none_that_a_node_boots() -> None:
    old = [succeeded(f"worker-{number}", f"{IMAGE[:-1]}{number}", f"2026-01-0{number}") for number in range(1, 9)]
    used = {life.image_of(old[0])}
    assert [each["metadata"]["name"] for each in life.prunable(old, "worker-8", used)] == ["worker-2"]
    failed = build("worker-9", BuildPhase.FAILED)
    assert life.superseded([*old, failed], "worker-8") == [failed]
    assert life.prunable([failed], "", ()) == []


def test_an_image_of_the_same_inputs_is_found_if_its_build_succeeded() -> None:
    good = succeeded("worker-1", IMAGE)
    assert life.same_image([good, build("worker-2")], "i", "worker-3") is good
    assert life.same_image([good], "i", "worker-1") is None
    assert life.same_image([good], "other", "worker-3") is None


def described(name: str, generation: int = 1, **condition: str) -> JsonObject:
    status: JsonObject = {"machineOSBuild": {"name": name}, "observedGeneration": generation}
    if condition:
        status["conditions"] = [{"type": names.BUILDABLE, **condition}]
    return {**CONFIG, "status": status}


def test_nodes_go_to_an_image_only_when_it_is_of_the_config_that_the_pool_has() -> None:
    good = succeeded("worker-1", IMAGE)
    assert built_for(POOL, [], [good]) is None
    image = built_for(POOL, [described("worker-1")], [good])
    assert image is not None
    assert (image.ready, image.image) == (True, IMAGE)
    other = {**POOL, "spec": {"configuration": {"name": "rendered-worker-2"}}}
    for pool, config in (
        (other, described("worker-1")),
        (POOL, described("worker-2")),
        (POOL, described("worker-1", 0)),
    ):
        waiting = built_for(pool, [config], [good])
        assert waiting is not None
        assert (waiting.ready, waiting.phase, waiting.image) == (False, BuildPhase.INITIAL, "")


def test_a_build_that_failed_or_cannot_begin_is_told_with_its_reason() -> None:
    failed = built_for(POOL, [described("worker-1")], [build("worker-1", BuildPhase.FAILED)])
    assert failed is not None
    assert (failed.phase, failed.reason, failed.problem) == (BuildPhase.FAILED, "BuildFailed", "why")
    refused = built_for(POOL, [described("", status="False", reason="NoBuilder", message="none here")], [])
    assert refused is not None
    assert (refused.ready, refused.reason, refused.problem) == (False, "NoBuilder", "none here")
