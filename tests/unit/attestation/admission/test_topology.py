"""Confidential pools are refused where the control plane is hosted elsewhere or a single node, by name and with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.admission import Answer, Denied
from tests.unit.admission.writes import World, review, write

RESOURCE = "confidentialclusters.fastness.dev"
HOSTS = [{"name": pool, "trustModel": "ContainersHost"} for pool in ("master", "worker")]


def cluster(mode: str, pools: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "cluster", "uid": "u", "generation": 1}, "spec": {"mode": mode, "pools": pools or []}}


def judged(new: dict[str, Any], topology: str, old: dict[str, Any] | None = None) -> Answer:
    operation = "UPDATE" if old else "CREATE"
    world = World(platform={"status": {"controlPlaneTopology": topology}})
    return review(write(operation, RESOURCE, new, old, kind="ConfidentialCluster"), world)


def on_microshift(new: dict[str, Any]) -> Answer:
    world = World(version_of_microshift={"data": {"major": "4", "minor": "20"}})
    return review(write("CREATE", RESOURCE, new, None, kind="ConfidentialCluster"), world)


def refusal(answer: Answer) -> str:
    return answer.message if isinstance(answer, Denied) and "cannot be ConfidentialCluster" in answer.message else ""


@pytest.mark.parametrize("topology", ["External", "SingleReplica"])
@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
def test_confidential_pools_are_refused_there_with_the_reason(topology: str, mode: str) -> None:
    message = refusal(judged(cluster(mode), topology))
    assert f"pool master and worker cannot be ConfidentialCluster on a cluster of topology {topology}: " in message


@pytest.mark.parametrize("topology", ["HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", ""])
def test_other_topologies_and_clusters_that_say_nothing_are_supported(topology: str) -> None:
    assert refusal(judged(cluster("Enforce"), topology)) == ""


def test_a_mode_without_confidential_pools_and_hosts_of_guests_may_be_a_single_node() -> None:
    assert refusal(judged(cluster("Disabled"), "SingleReplica")) == ""
    assert refusal(judged(cluster("Enforce", HOSTS), "SingleReplica")) == ""


def test_only_what_becomes_confidential_is_refused() -> None:
    assert refusal(judged(cluster("Enforce"), "External", cluster("Audit"))) == ""
    assert "pool worker cannot" in refusal(judged(cluster("Audit", HOSTS[:1]), "External", cluster("Disabled")))


def test_micro_shift_is_no_ground_for_confidential_pools_and_may_have_others() -> None:
    assert refusal(on_microshift(cluster("Enforce"))) == (
        'ConfidentialCluster.fastness.dev "cluster" is invalid: spec.pools: Invalid value: '
        "pool master and worker cannot be ConfidentialCluster on MicroShift: it is one machine that is control plane and node, "
        "and a machine cannot attest itself; list them as ContainersHost or None"
    )
    assert refusal(on_microshift(cluster("Disabled"))) == ""
    assert refusal(on_microshift(cluster("Enforce", HOSTS))) == ""
