"""What may be said about image mode of the cluster, and when a MachineOSConfig may go."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.builds.admission.image_mode import GARBAGE_COLLECTOR
from fastness.kinds.machineconfiguration import names
from fastness.kube.access.user import User
from fastness.kube.admission import Allowed, Answer, Denied
from tests.unit.admission.writes import World, review, write

CONFIGURATIONS = "machineconfigurations.operator.openshift.io"
OS_CONFIGS = "machineosconfigs.machineconfiguration.openshift.io"
NEEDY = "rpm-ostree: this machine has layered packages (strace), which bootc refuses"
ABLE = f"rpm-ostree: rpm-ostree knows images here, and {names.BOOTC_NOT_PREFERRED}"


def refusal(answer: Answer) -> str:
    """Why a write is refused; empty when it is not."""
    return answer.message if isinstance(answer, Denied) else ""


def setting(**notes: str) -> dict[str, Any]:
    return {"metadata": {"name": "cluster", "annotations": notes}, "spec": {}}


def hosts(*drivers: str) -> World:
    return World(
        all_nodes=[{"metadata": {"name": f"n{i}", "annotations": {names.OS_DRIVER: d}}} for i, d in enumerate(drivers)]
    )


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_a_stage_is_one_of_three(stage: str) -> None:
    assert (
        review(write("UPDATE", CONFIGURATIONS, setting(**{names.IMAGE_MODE_STAGE: stage}), setting()), World())
        == Allowed()
    )
    wrong = review(
        write("UPDATE", CONFIGURATIONS, setting(**{names.IMAGE_MODE_STAGE: f"0{stage}"}), setting()), World()
    )
    assert "write 1, 2 or 3" in refusal(wrong)


def test_a_place_for_images_is_a_repository() -> None:
    tagged = setting(**{names.IMAGE_PUSH_SPEC: "registry.example/os:latest"})
    assert "write HOST[:PORT]/REPOSITORY" in refusal(
        review(write("UPDATE", CONFIGURATIONS, tagged, setting()), World())
    )


@pytest.mark.row("003-95")
def test_stage_three_waits_for_nodes_that_need_rpm_ostree_and_stage_two_warns_of_them() -> None:
    third, second = (setting(**{names.IMAGE_MODE_STAGE: stage}) for stage in "32")
    refused = refusal(review(write("UPDATE", CONFIGURATIONS, third, second), hosts("bootc: x", NEEDY, ABLE)))
    assert "nodes need rpm-ostree: n1 (this machine has layered packages (strace), which bootc refuses)" in refused
    assert "n2" not in refused
    assert review(write("UPDATE", CONFIGURATIONS, third, second), hosts("bootc: x", ABLE)) == Allowed()
    assert review(write("UPDATE", CONFIGURATIONS, third, third), hosts(NEEDY)) == Allowed(), (
        "what holds is not judged again"
    )
    warned = review(write("UPDATE", CONFIGURATIONS, second, setting()), hosts(NEEDY))
    assert isinstance(warned, Allowed)
    assert "stage 3 will be refused while nodes need rpm-ostree: n0" in warned.warnings[0]


def test_a_description_whose_nodes_would_not_come_back_stays_unless_its_owner_is_gone() -> None:
    state = {"type": names.REMOVABLE, "status": "False", "message": "/usr/lib/mine can be there in an image alone (n0)"}
    config = {"metadata": {"name": "worker"}, "spec": {}, "status": {"conditions": [state]}}
    assert "/usr/lib/mine" in refusal(review(write("DELETE", OS_CONFIGS, config, config), World()))
    free = {**config, "status": {"conditions": [{**state, "status": "True"}]}}
    assert review(write("DELETE", OS_CONFIGS, free, free), World()) == Allowed()
    swept = write("DELETE", OS_CONFIGS, config, config, user=User(GARBAGE_COLLECTOR))
    assert review(swept, World()) == Allowed()
