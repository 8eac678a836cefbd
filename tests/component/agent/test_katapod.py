"""The pod of the DaemonSets against a real API: turns, readiness, failures that rest, and a verb that says what it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from click.testing import CliRunner

from fastness.agent.host.errors import ImageFailure
from fastness.agent.kata.pod import KataPod, Waits
from fastness.cli.machine.agent import agent
from fastness.kinds.kata import names
from fastness.kinds.kata.names import InstallState
from fastness.kinds.objects import annotations_of, labels_of
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.agent.test_kata import Node
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

NODE = find("", "v1", "nodes").resource
QUICK = Waits(settle=0.01, ready=0.4, failed=0.1, resync=5.0)


class Pod:
    """A node of the cluster, the machine behind it, and the pod on it."""

    def __init__(self, embedded: Embedded, directory: Path) -> None:
        self.cluster = embedded.cluster
        self.host = Node(directory)
        unit = self.host.machine.root / "usr/lib/systemd/system/crio.service"
        unit.parent.mkdir(parents=True)
        unit.write_text("[Service]\nExecStart=/bin/true\n")

    async def turn(self, state: InstallState) -> None:
        patch = {"metadata": {"labels": {names.STATE_LABEL: str(state)}}}
        await self.cluster.patch(NODE, "n", patch, PatchType.MERGE)

    async def ready(self, word: str) -> None:
        status = {"conditions": [{"type": "Ready", "status": word}]}
        await self.cluster.patch(NODE, "n", {"status": status}, PatchType.MERGE, "", WriteOptions(subresource="status"))

    async def until(self, state: InstallState) -> dict[str, str]:
        async with asyncio.timeout(PATIENCE):
            while True:
                node = await self.cluster.get(NODE, "n")
                if labels_of(node).get(names.STATE_LABEL) == state:
                    return dict(annotations_of(node))
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def running(self, *, leaving: bool = False) -> AsyncIterator[None]:
        step = self.host.steps.uninstall if leaving else self.host.steps.install
        pod = KataPod(self.cluster, "n", step, SystemClock(), SystemEntropy(), QUICK)
        task = asyncio.create_task(pod.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_node_goes_all_the_way_and_back(embedded_server: Embedded, tmp_path: Path) -> None:
    pod = Pod(embedded_server, tmp_path)
    await pod.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await pod.ready("True")
    async with pod.running():
        await pod.until(InstallState.WAITING_TO_INSTALL)
        assert not pod.host.packages.installed()
        await pod.turn(InstallState.INSTALLING)
        await pod.until(InstallState.INSTALLED)
    assert pod.host.packages.installed()
    async with pod.running(leaving=True):
        await pod.turn(InstallState.UNINSTALLING)
        await pod.until(InstallState.UNINSTALLED)
    assert not pod.host.packages.installed()
    assert pod.host.reboots == 1


async def test_a_node_that_does_not_come_back_failed_and_is_tried_again(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    pod = Pod(embedded_server, tmp_path)
    await pod.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await pod.ready("False")
    async with pod.running():
        await pod.until(InstallState.WAITING_TO_INSTALL)
        await pod.turn(InstallState.INSTALLING)
        annotations = await pod.until(InstallState.FAILED)
        assert "did not become ready again" in annotations[names.FAILURE]
        await pod.ready("True")
        # What is there is there: the next look finds it complete.
        annotations = await pod.until(InstallState.INSTALLED)
        assert names.FAILURE not in annotations


async def test_a_host_that_cannot_answer_does_not_end_the_pod(embedded_server: Embedded, tmp_path: Path) -> None:
    pod = Pod(embedded_server, tmp_path)
    await pod.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    calls: list[int] = []
    real = pod.host.packages.installed

    def shaky() -> bool:
        calls.append(1)
        if len(calls) < 3:
            raise ImageFailure("the host is busy")
        return real()

    pod.host.packages.installed = shaky  # type: ignore[method-assign]
    for path, state in pod.host.steps._files_by_path().items():
        pod.host.machine.host.root.put(path, state)
    async with pod.running():
        await pod.until(InstallState.WAITING_TO_INSTALL)
    assert len(calls) >= 3


def test_the_verb_says_what_it_lacks(tmp_path: Path) -> None:
    result = CliRunner().invoke(agent, ["kata", "install", "--node", "n", "--root", str(tmp_path / "nowhere")])
    assert result.exit_code != 0
    assert "not a directory" in str(result.exception) + result.output
    assert CliRunner().invoke(agent, ["kata", "upgrade", "--node", "n"]).exit_code == 2
