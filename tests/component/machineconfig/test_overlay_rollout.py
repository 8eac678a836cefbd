"""NodeOverlays on day two: nodes that run go to them under the budget of their pool, and back when they are taken away."""

from __future__ import annotations

from typing import Any

from fastness.formats import data_url as dataurl
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.machineconfig.overlay.overlay import examine
from fastness.machineconfig.overlay.targets import overlays_of
from tests.component.machineconfig.worker_pool import NODE, WorkerPool, until
from tests.proven import STATUS, proven_machine


def overlay(uids: list[str], text: str = "7") -> JsonObject:
    files = [{"path": "/etc/rack", "contents": {"source": dataurl.encode(text.encode())}}]
    return {
        "apiVersion": NODE_OVERLAY.api_version, "kind": NODE_OVERLAY.kind, "metadata": {"name": "rack"},
        "spec": {"match": {"machines": uids}, "config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}},
    }  # fmt: skip


def digest(stored: JsonObject) -> str:
    return overlays_of([examine(stored)]) or ""


async def populate(workers: WorkerPool, *nodes: str) -> dict[str, str]:
    """Nodes that are machines, settled; their uids."""
    uids: dict[str, str] = {}
    for number, name in enumerate(nodes, 1):
        await workers.add_node(name)
        await proven_machine(workers.cluster, name, number)
        machine = await workers.cluster.get(MACHINE.resource, f"machine-{name}", NAMESPACE)
        uids[name] = machine["metadata"]["uid"]
    await workers.settled()
    workers.most_unavailable = 0
    return uids


async def notes(workers: WorkerPool, name: str) -> dict[str, str]:
    return dict(annotations_of(await workers.cluster.get(NODE, name)))


async def have(workers: WorkerPool, expected: dict[str, str]) -> None:
    """Wait until every node says that it has these overlays and the pool says that it is done."""

    async def there() -> bool:
        busy = int(((await workers.pool()).get("status") or {}).get("unavailableMachineCount") or 0)
        workers.most_unavailable = max(workers.most_unavailable, busy)
        told = [(await notes(workers, name), overlay) for name, overlay in expected.items()]
        return (
            all(
                note.get(names.CURRENT_OVERLAY, "") == note.get(names.DESIRED_OVERLAY, "") == overlay
                for note, overlay in told
            )
            and (condition(await workers.pool(), "Updated") or {}).get("status") == "True"
        )

    await until(there, f"not all have {expected}")


async def test_running_nodes_go_to_an_overlay_one_at_a_time_and_back_when_it_is_deleted(workers: WorkerPool) -> None:
    uids = await populate(workers, "a", "b", "c")
    stored = await workers.cluster.create(NODE_OVERLAY.resource, overlay([uids["a"], uids["b"]]))
    mine, config = digest(stored), await workers.goal()
    await have(workers, {"a": mine, "b": mine, "c": ""})
    assert workers.most_unavailable == 1
    assert names.DESIRED_OVERLAY not in await notes(workers, "c"), "who has none hears nothing of them"
    machine = await workers.cluster.get(MACHINE.resource, "machine-a", NAMESPACE)
    assert (machine["status"]["desiredConfig"], machine["status"]["desiredOverlay"]) == (config, mine)

    await workers.cluster.delete(NODE_OVERLAY.resource, "rack")
    await have(workers, {"a": "", "b": ""})
    assert await workers.goal() == config, "the pool rendered nothing anew"


async def test_a_pool_that_is_updated_says_that_it_is_updating_while_overlays_go_out(workers: WorkerPool) -> None:
    uids = await populate(workers, "a")
    goal = await workers.goal()
    workers.stuck.add(goal)
    stored = await workers.cluster.create(NODE_OVERLAY.resource, overlay([uids["a"]]))

    async def updating() -> Any:
        return (condition(await workers.pool(), "Updating") or {}).get("status") == "True"

    await until(updating, "the pool says that all is done")
    assert (await workers.pool())["status"]["updatedMachineCount"] == 0
    workers.stuck.clear()
    await have(workers, {"a": digest(stored)})


async def test_a_changed_overlay_is_one_more_update_and_a_broken_one_moves_nobody(workers: WorkerPool) -> None:
    uids = await populate(workers, "a")
    before = digest(await workers.cluster.create(NODE_OVERLAY.resource, overlay([uids["a"]])))
    await have(workers, {"a": before})
    broken = {"spec": {"config": {"kernelArguments": {"shouldExist": ["debug"]}}}}
    await workers.cluster.patch(NODE_OVERLAY.resource, "rack", broken, PatchType.MERGE)

    async def told() -> bool:
        return (condition(await workers.cluster.get(NODE_OVERLAY.resource, "rack"), "Valid") or {}).get(
            "status"
        ) == "False"

    await until(told, "nobody says that it is broken")
    await have(workers, {"a": before})
    mended = {"spec": {"config": {"kernelArguments": None, "storage": overlay([], "8")["spec"]["config"]["storage"]}}}
    after = digest(await workers.cluster.patch(NODE_OVERLAY.resource, "rack", mended, PatchType.MERGE))
    assert after != before
    await have(workers, {"a": after})


async def test_what_a_machine_proves_later_brings_its_node_an_overlay(workers: WorkerPool) -> None:
    await populate(workers, "a")
    made = overlay([])
    made["spec"]["match"] = {"properties": {"chip-generation": "Genoa"}}
    stored = await workers.cluster.create(NODE_OVERLAY.resource, made)
    proved = {"status": {"properties": {"chip-generation": "Genoa"}}}
    await workers.cluster.patch(MACHINE.resource, "machine-a", proved, PatchType.MERGE, NAMESPACE, STATUS)
    await have(workers, {"a": digest(stored)})
