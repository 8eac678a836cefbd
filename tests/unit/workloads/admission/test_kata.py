"""KataConfig at the API: there is one, and confidential machines get none."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.admission import Allowed, Denied
from tests.unit.admission.writes import World, review, write

KATA = "kataconfigs.kataconfiguration.openshift.io"
CONFIG = {"metadata": {"name": "one"}, "spec": {}}


def hosts(*pools: str) -> dict[str, Any]:
    listed = [{"name": name, "trustModel": "ContainersHost"} for name in pools]
    return {"spec": {"mode": "Enforce", "pools": listed}}


def test_a_second_one_is_refused_whatever_its_name() -> None:
    assert review(write("CREATE", KATA, CONFIG), World()) == Allowed()
    answer = review(write("CREATE", KATA, CONFIG), World(all_kata=[{"metadata": {"name": "other"}}]))
    assert isinstance(answer, Denied)
    assert answer.message.endswith("A KataConfig instance already exists, refusing to create a duplicate")
    assert answer.code == 403


def test_changing_the_one_is_not_creating_a_second() -> None:
    world = World(all_kata=[CONFIG])
    assert isinstance(review(write("UPDATE", KATA, CONFIG, CONFIG), world), Allowed)
    assert isinstance(review(write("DELETE", KATA, None, CONFIG), world), Allowed)


@pytest.mark.parametrize(
    ("cluster", "allowed"),
    [
        (None, True),
        ({"spec": {"mode": "Disabled"}}, True),
        ({"spec": {"mode": "Enforce"}}, False),
        ({"spec": {"mode": "Audit"}}, False),
        (hosts("worker"), False),
        (hosts("kata-oc"), True),
        (hosts("master"), True),
    ],
)
def test_a_cluster_of_confidential_machines_gets_none_and_reads_why(
    cluster: dict[str, Any] | None, allowed: bool
) -> None:
    answer = review(write("CREATE", KATA, CONFIG), World(cluster=cluster))
    assert isinstance(answer, Allowed) is allowed
    if isinstance(answer, Denied):
        assert "pool kata-oc has the trust model ConfidentialCluster" in answer.message
        assert "trustModel ContainersHost" in answer.message
