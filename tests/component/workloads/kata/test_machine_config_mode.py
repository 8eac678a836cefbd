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
    is_done,
    is_gone,
    kata_config,
    told,
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
    async with open_worker_pool(embedded_server) as found:
        for name in ("worker-0", "worker-1"):
            await found.add_node(name)
        await found.settled()
        yield found


async def label(workers: WorkerPool, node: str, **labels: str) -> None:
    await workers.cluster.patch(NODE, node, {"metadata": {"labels": labels}}, PatchType.MERGE)


def subsequence(wanted: list[JsonObject], seen: list[JsonObject]) -> bool:
    rest = iter(seen)
    return all(any(one == other for other in rest) for one in wanted)


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
    everything = [(kind.kind, one["metadata"]) for kind in kinds for one in (await workers.cluster.list(kind)).items]
    found = {(kind, meta["name"]) for kind, meta in everything if meta.get("namespace") != HOME}
    labels = {
        (one["metadata"]["name"], key) for one in (await workers.cluster.list(NODE)).items for key in labels_of(one)
    }
    return found | labels


async def test_the_table_of_the_manual_is_told_and_nothing_is_left_behind(workers: WorkerPool) -> None:
    await feature_gates(workers.cluster, confidential="true")
    for node in BOTH:
        await label(workers, node, **{names.TDX_LABEL: "true", names.BASE_LABEL: "true"})
    before = await listed(workers)
    async with told(workers.cluster) as story:
        await workers.cluster.create(KATA, kata_config(checkNodeEligibility=True))
        config = await until(workers.cluster, is_done)
        classes = {one["metadata"]["name"]: one for one in (await workers.cluster.list(CLASS)).items}
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
