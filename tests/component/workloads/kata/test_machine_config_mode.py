"""KataConfig over the embedded API with machine configs: the table of the manual, live."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of
from fastness.kinds.registry import find
from fastness.kube.places import HOME
from fastness.kube.port import PatchType
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, WorkerPool, open_worker_pool
from tests.component.workloads.kata.story import (
    CLASS,
    KATA,
    feature_gates,
    follow_story,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
)
from tests.embedded.fixtures import Embedded

RUNTIME = find("machineconfiguration.openshift.io", "v1", "containerruntimeconfigs").resource
DAEMON_SET = find("apps", "v1", "daemonsets").resource
ACCOUNT = find("", "v1", "serviceaccounts").resource
SECRET = find("", "v1", "secrets").resource
CONSTRAINTS = find("security.openshift.io", "v1", "securitycontextconstraints").resource


@pytest.fixture
async def workers(embedded_server: Embedded) -> AsyncIterator[WorkerPool]:
    """Two workers."""
    async with open_worker_pool(embedded_server) as pool:
        for name in ("worker-0", "worker-1"):
            await pool.add_node(name)
        await pool.settled()
        yield pool


async def label(workers: WorkerPool, node: str, **labels: str) -> None:
    await workers.cluster.patch(NODE, node, {"metadata": {"labels": labels}}, PatchType.MERGE)


def subsequence(expected: list[JsonObject], observed: list[JsonObject]) -> bool:
    rest = iter(observed)
    return all(any(entry == other for other in rest) for entry in expected)


def nodes(count: int, ready: int, **lists: list[str]) -> JsonObject:
    return {"nodeCount": count, "readyNodeCount": ready, **lists}


BOTH, ZERO, ONE = ["worker-0", "worker-1"], ["worker-0"], ["worker-1"]
TABLE = [
    nodes(0, 0),
    nodes(2, 0, waitingToInstall=BOTH),
    nodes(2, 0, installing=ZERO, waitingToInstall=ONE),
    nodes(2, 1, installed=ZERO, installing=ONE),
    nodes(2, 2, installed=BOTH),
    nodes(0, 0, waitingToUninstall=BOTH),
    nodes(0, 0, uninstalling=ZERO, waitingToUninstall=ONE),
    nodes(0, 0, uninstalling=ONE),
]  # fmt: skip


async def listed(workers: WorkerPool) -> set[tuple[str, str]]:
    """Kind and name of everything that an installation may leave behind; what we keep for ourselves is not meant."""
    kinds = (CONFIG, POOL, CLASS, RUNTIME, DAEMON_SET, ACCOUNT, CONSTRAINTS, SECRET)
    everything = [(kind.kind, obj["metadata"]) for kind in kinds for obj in (await workers.cluster.list(kind)).items]
    names_of_kinds = {(kind, meta["name"]) for kind, meta in everything if meta.get("namespace") != HOME}
    labels = {
        (obj["metadata"]["name"], key) for obj in (await workers.cluster.list(NODE)).items for key in labels_of(obj)
    }
    return names_of_kinds | labels


async def test_the_table_of_the_manual_is_told_and_nothing_is_left_behind(workers: WorkerPool) -> None:
    await feature_gates(workers.cluster, confidential="true")
    for node in BOTH:
        await label(workers, node, **{names.TDX_LABEL: "true", names.BASE_LABEL: "true"})
    before = await listed(workers)
    async with follow_story(workers.cluster) as story:
        await workers.cluster.create(KATA, kata_config(checkNodeEligibility=True))
        config = await until(workers.cluster, is_done)
        classes = {
            runtime_class["metadata"]["name"]: runtime_class
            for runtime_class in (await workers.cluster.list(CLASS)).items
        }
        await workers.cluster.delete(KATA, "example-kataconfig")
        await is_gone(workers.cluster)
    assert subsequence(TABLE, story.nodes), story.nodes
    assert story.most_moving == 1
    assert story.reasons == [("True", "Installing"), ("False", ""), ("True", "Uninstalling")]
    assert sorted(classes) == config["status"]["runtimeClasses"] == ["kata", "kata-cc"]
    assert classes["kata-cc"]["handler"] == "kata-tdx"
    assert classes["kata-cc"]["overhead"]["podFixed"] == {"cpu": "250m", "memory": "350Mi", "tdx.intel.com/keys": "1"}
    chosen = {names.ROLE_LABEL: "", names.TDX_LABEL: "true"}
    assert classes["kata-cc"]["scheduling"]["nodeSelector"] == chosen
    await until_equal(lambda: listed(workers), before)
