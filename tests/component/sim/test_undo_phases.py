"""Taking a config back at every phase of an update: real loops, a real agent on a directory, and nobody's hands.

The phase is recognised by what the node itself says; at that moment the config is deleted. Whatever the agent and the drain were
doing, the machine ends with the files that it had, and the node takes pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fastness.app.embedded import PlaneOptions, running
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from tests.component.agent.directory_machine import relevant, snapshot
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, config
from tests.patience import PATIENCE

PHASES: dict[str, Callable[[dict[str, str], str], bool]] = {
    "told": lambda notes, goal: notes.get(names.DESIRED_CONFIG) == goal,
    "asked to be drained": lambda notes, goal: notes.get(names.DESIRED_DRAIN) == f"drain-{goal}",
    "drained": lambda notes, goal: notes.get(names.LAST_APPLIED_DRAIN) == f"drain-{goal}",
    "about to reboot": lambda notes, goal: notes.get(names.POST_CONFIG_ACTION) == names.REBOOTING,
    "asked to be put back": lambda notes, goal: notes.get(names.DESIRED_DRAIN) == f"uncordon-{goal}",
    "put back": lambda notes, goal: notes.get(names.LAST_APPLIED_DRAIN) == f"uncordon-{goal}",
    "done": lambda notes, goal: notes.get(names.CURRENT_CONFIG) == goal,
}


async def until(check: Callable[[], Awaitable[Any]], what: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while True:
            result = await check()
            if result:
                return result
            await asyncio.sleep(0.05)
    raise AssertionError(what)


async def settled(cluster: Cluster) -> JsonObject | None:
    """The pool, when all of it is updated and its node is quiet."""
    try:
        pool, node = await cluster.get(POOL, "worker"), await cluster.get(NODE, "worker-0")
    except NotFound:
        return None
    updated, notes = condition(pool, "Updated"), annotations_of(node)
    goal = (pool["spec"].get("configuration") or {}).get("name")
    quiet = notes.get(names.STATE) == "Done" and notes.get(names.CURRENT_CONFIG) == goal == notes.get(
        names.DESIRED_CONFIG
    )
    at_work = not (node.get("spec") or {}).get("unschedulable") and not (node.get("spec") or {}).get("taints")
    same = (pool.get("status") or {}).get("configuration", {}).get("name") == goal
    ready = updated is not None and updated["status"] == "True" and notes.get(names.REASON) == ""
    return pool if ready and quiet and at_work and same and pool["status"].get("machineCount") == 1 else None


@pytest.mark.parametrize("phase", PHASES)
async def test_a_config_that_is_taken_back_in_the_middle_leaves_the_machine_as_it_was(
    tmp_path: Path, phase: str
) -> None:
    root = tmp_path / "state/machines/worker-0/root"
    async with running(PlaneOptions(tmp_path / "state", machines=1, profile="containers")) as plane:
        cluster = plane.server.cluster
        good = (await until(lambda: settled(cluster), "the first config"))["spec"]["configuration"]["name"]
        before = relevant(snapshot(root))
        async with asyncio.timeout(PATIENCE), cluster.watch(NODE, initial=True) as events:
            await cluster.create(CONFIG, config("50-motd"))
            async for event in events:
                notes = annotations_of(event.object)
                goal = notes.get(names.DESIRED_CONFIG, "")
                if goal not in ("", good) and PHASES[phase](dict(notes), goal):
                    break
        await cluster.delete(CONFIG, "50-motd")

        async def back() -> bool:
            pool = await settled(cluster)
            return pool is not None and pool["spec"]["configuration"]["name"] == good

        assert await until(back, "the way back")
        assert relevant(snapshot(root)) == before
        assert not (tmp_path / "state/machines/worker-0/agent/journal").exists()
