"""Image mode of the cluster: every cell of stage × gates, the place that images are pushed to, and words that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.names import OsDriverRule
from fastness.machineconfig.rollout.built import built_for
from fastness.machineconfig.rollout.image_mode import (
    BOOTC_GATE,
    BUILD_GATE,
    TABLE,
    ImageMode,
    Stage,
    UpdatePath,
    gates_on,
    gets_an_image,
    image_mode,
    place_problem,
)

DIRECT, LAYERED = UpdatePath.DIRECT, UpdatePath.LAYERED
HOST, FIRST, ALONE = OsDriverRule.BY_HOST, OsDriverRule.BOOTC_FIRST, OsDriverRule.BOOTC_ALONE
PLACE = {names.IMAGE_PUSH_SPEC: "registry.example/os", names.IMAGE_PUSH_SECRET: "push"}
CELLS = [
    ("1", (), DIRECT, HOST), ("1", (BUILD_GATE,), DIRECT, HOST), ("1", (BOOTC_GATE,), DIRECT, FIRST),
    ("1", (BOOTC_GATE, BUILD_GATE), LAYERED, FIRST),
    ("2", (), LAYERED, HOST), ("2", (BUILD_GATE,), LAYERED, HOST), ("2", (BOOTC_GATE,), LAYERED, FIRST),
    ("2", (BOOTC_GATE, BUILD_GATE), LAYERED, FIRST),
    ("3", (), LAYERED, ALONE), ("3", (BUILD_GATE,), LAYERED, ALONE), ("3", (BOOTC_GATE,), LAYERED, ALONE),
    ("3", (BOOTC_GATE, BUILD_GATE), LAYERED, ALONE),
]  # fmt: skip


def configuration(**notes: str) -> dict[str, Any]:
    return {"metadata": {"name": "cluster", "annotations": notes}}


def gates(*enabled: str) -> dict[str, Any]:
    return {"spec": {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": list(enabled)}}}


@pytest.mark.row("003-89")
@pytest.mark.row("003-90")
@pytest.mark.row("003-91")
@pytest.mark.row("003-92")
@pytest.mark.parametrize(("stage", "enabled", "path", "driver"), CELLS)
def test_stage_and_gates_choose_path_and_driver(
    stage: str, enabled: tuple[str, ...], path: UpdatePath, driver: OsDriverRule
) -> None:
    mode = image_mode(configuration(**{names.IMAGE_MODE_STAGE: stage}, **PLACE), gates(*enabled))
    assert (mode.path, mode.driver, mode.problem) == (path, driver, "")
    assert mode.builds_by_default is (path is LAYERED)


def test_every_cell_of_the_table_is_tested() -> None:
    assert {(stage, frozenset(enabled)) for stage, enabled, *_ in CELLS} == {
        (stage, enabled) for stage, row in TABLE.items() for enabled in row
    }


def test_a_cluster_that_says_nothing_is_in_the_first_stage() -> None:
    assert image_mode(None, None) == ImageMode(DIRECT, HOST)
    assert image_mode(configuration(), gates(BOOTC_GATE)).driver is FIRST


def test_a_gate_that_is_off_by_name_is_not_on() -> None:
    off = {
        "spec": {
            "featureSet": "CustomNoUpgrade",
            "customNoUpgrade": {"enabled": [BOOTC_GATE], "disabled": [BOOTC_GATE]},
        }
    }
    assert gates_on(off) == frozenset()


@pytest.mark.parametrize("word", ["", "0", "4", "two", "1.0"])
def test_a_stage_that_cannot_be_read_is_told_and_changes_nothing(word: str) -> None:
    mode = image_mode(configuration(**{names.IMAGE_MODE_STAGE: word}), gates(BOOTC_GATE, BUILD_GATE))
    assert mode.unreadable
    assert "write 1, 2 or 3" in mode.problem


@pytest.mark.row("003-15")
@pytest.mark.parametrize("missing", sorted(PLACE))
def test_a_place_that_is_missing_is_named_and_nothing_is_built(missing: str) -> None:
    notes = {key: value for key, value in PLACE.items() if key != missing}
    mode = image_mode(configuration(**{names.IMAGE_MODE_STAGE: Stage.LAYERED}, **notes), None)
    assert not mode.builds_by_default
    assert f"set the annotation {missing} of MachineConfiguration cluster" in mode.problem


@pytest.mark.parametrize(
    "spec",
    ["registry.example/os:latest", "registry.example/os@sha256:" + "0" * 64, "Not An Image", "registry.example/os/"],
)
def test_a_place_that_is_no_repository_is_refused_with_the_form(spec: str) -> None:
    assert "write HOST[:PORT]/REPOSITORY" in place_problem(spec)


@pytest.mark.parametrize("spec", ["registry.example/os", "127.0.0.1:5000/os", "registry.example:5000/team/os"])
def test_a_repository_is_a_place(spec: str) -> None:
    assert place_problem(spec) == ""


def test_a_pool_waits_for_the_image_that_is_about_to_be_described_and_one_without_machines_does_not() -> None:
    mode = image_mode(configuration(**{names.IMAGE_MODE_STAGE: "2"}, **PLACE), None)
    pool = {"metadata": {"name": "worker"}, "status": {"machineCount": 2}}
    built = built_for(pool, [], [], default=gets_an_image(pool, mode))
    assert built is not None
    assert not built.ready
    empty = {**pool, "status": {"machineCount": 0}}
    assert built_for(empty, [], [], default=gets_an_image(empty, mode)) is None
