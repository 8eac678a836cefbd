"""KataConfig over virtual machines that install for real: packages in their system, drop-ins on their disk, reboots."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.formats import json
from fastness.kinds.kata import names, runtime
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, labels_of
from fastness.kinds.registry import find
from fastness.kube.port import Cluster, PatchType
from tests.component.workloads.kata.story import (
    KATA,
    Story,
    feature_gates,
    follow_story,
    in_progress,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
)

NODE = find("", "v1", "nodes").resource
BOTH = ["worker-0", "worker-1"]


async def ready(cluster: Cluster) -> list[str]:
    """The nodes that joined."""
    return [node["metadata"]["name"] for node in (await cluster.list(NODE)).items]


def extensions(plane: ControlPlane) -> list[list[str]]:
    """The package sets that each machine runs."""
    files = sorted((plane.state / "machines").glob("*/agent/system.json"))
    return [json.decode(path.read_bytes())["booted"][3] for path in files]


def drop_in(plane: ControlPlane, path: str) -> list[bool]:
    return [(plane.state / "machines" / name / "root" / path.lstrip("/")).exists() for name in BOTH]


def check_table(story: Story) -> None:
    """The table of the manual, whichever node went first."""
    nodes = story.nodes
    assert nodes[0] == {"nodeCount": 0, "readyNodeCount": 0}
    assert {"nodeCount": 2, "readyNodeCount": 0, "waitingToInstall": BOTH} in nodes
    first = next(lists["installing"][0] for lists in nodes if lists.get("installing"))
    (second,) = set(BOTH) - {first}
    assert {"nodeCount": 2, "readyNodeCount": 0, "installing": [first], "waitingToInstall": [second]} in nodes
    assert {"nodeCount": 2, "readyNodeCount": 1, "installed": [first], "installing": [second]} in nodes
    assert {"nodeCount": 2, "readyNodeCount": 2, "installed": BOTH} in nodes
    assert {"nodeCount": 0, "readyNodeCount": 0, "waitingToUninstall": BOTH} in nodes
    assert [lists for lists in nodes if lists.get("uninstalling") and lists.get("waitingToUninstall")]
    assert story.reasons == [("True", "Installing"), ("False", ""), ("True", "Uninstalling")]
    assert story.most_moving == 1


@pytest.mark.parametrize("mode", ["MachineConfig", "DaemonSet"])
async def test_machines_install_and_remove_the_runtime_one_at_a_time(tmp_path: Path, mode: str) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=2, profile="containers")) as plane:
        cluster = plane.server.cluster
        await until_equal(lambda: ready(cluster), BOTH)
        await feature_gates(cluster, deploymentMode=mode)
        async with follow_story(cluster) as story:
            await cluster.create(KATA, kata_config())
            await until(cluster, is_done)
            assert await asyncio.to_thread(extensions, plane) == [[names.EXTENSION]] * 2
            assert await asyncio.to_thread(drop_in, plane, names.RUNTIME_FILE) == [True, True]
            assert await asyncio.to_thread(drop_in, plane, runtime.SHIM) == [True, True]
            await cluster.delete(KATA, "example-kataconfig")
            await is_gone(cluster)
        check_table(story)
        assert await asyncio.to_thread(extensions, plane) == [[], []]
        for path in runtime.PATHS:
            assert await asyncio.to_thread(drop_in, plane, path) == [False, False]
        for node in (await cluster.list(NODE)).items:
            assert not {names.ROLE_LABEL, names.STATE_LABEL} & set(labels_of(node))


@pytest.mark.parametrize("mode", ["MachineConfig", "DaemonSet"])
async def test_the_files_of_peer_pods_are_on_the_disk_when_the_class_is_there_and_go_with_it(
    tmp_path: Path, mode: str
) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=1, profile="containers")) as plane:
        cluster, root = plane.server.cluster, plane.state / "machines" / "worker-0" / "root"

        def on_disk() -> dict[str, bytes]:
            files = {path: root / path.lstrip("/") for path in runtime.REMOTE_FILES}
            return {path: file.read_bytes() for path, file in files.items() if file.exists()}

        await until_equal(lambda: ready(cluster), ["worker-0"])
        await feature_gates(cluster, deploymentMode=mode)
        await cluster.create(KATA, kata_config(enablePeerPods=True))
        config = await until(cluster, is_done)
        assert names.REMOTE_CLASS in config["status"]["runtimeClasses"]
        assert await asyncio.to_thread(on_disk) == runtime.REMOTE_FILES
        await cluster.patch(KATA, "example-kataconfig", {"spec": {"enablePeerPods": False}}, PatchType.MERGE)
        await until_equal(lambda: asyncio.to_thread(on_disk), {})
        await until(
            cluster, lambda config: is_done(config) and names.REMOTE_CLASS not in config["status"]["runtimeClasses"]
        )


async def test_a_machine_that_vanishes_does_not_hold_up_the_others_and_the_log_level_reaches_their_disk(
    tmp_path: Path,
) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=2, profile="containers")) as plane:
        cluster = plane.server.cluster
        await until_equal(lambda: ready(cluster), BOTH)
        await cluster.create(KATA, kata_config())
        moving = await until(
            cluster, lambda config: (config.get("status") or {}).get("kataNodes", {}).get("installing")
        )
        gone: str = moving["status"]["kataNodes"]["installing"][0]
        assert plane.simulated is not None
        await plane.simulated.simulation.remove(gone)
        config: JsonObject = await until(cluster, is_done)
        assert config["status"]["kataNodes"]["installed"] == [name for name in BOTH if name != gone]
        await cluster.patch(KATA, "example-kataconfig", {"spec": {"logLevel": "debug"}}, PatchType.MERGE)
        await until(cluster, lambda config: in_progress(config) == ("True", "Updating"))
        await until(cluster, is_done)
        (left,) = set(BOTH) - {gone}
        written = plane.state / "machines" / left / "root" / names.LOG_LEVEL_FILE.lstrip("/")
        assert 'log_level = "debug"' in await asyncio.to_thread(written.read_text)


async def test_a_node_whose_container_runtime_lost_the_handlers_is_not_installed(tmp_path: Path) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=1, profile="containers")) as plane:
        cluster, root = plane.server.cluster, plane.state / "machines" / "worker-0" / "root"
        await until_equal(lambda: ready(cluster), ["worker-0"])
        await feature_gates(cluster, deploymentMode="MachineConfig")
        await cluster.create(KATA, kata_config())
        await until(cluster, is_done)
        drop = root / names.RUNTIME_FILE.lstrip("/")
        await asyncio.to_thread(drop.unlink)
        config = await until(cluster, lambda config: in_progress(config) == ("True", "Failed"))
        assert config["status"]["kataNodes"]["failedToInstall"] == ["worker-0"]
        assert not config["status"]["kataNodes"]["readyNodeCount"]
        message = (condition(config, "InProgress") or {})["message"]
        assert f"{names.RUNTIME_FILE}: the container runtime does not know the handlers kata, kata-tdx" in message

        await asyncio.to_thread(drop.write_bytes, runtime.DROP_IN)
        await until(cluster, is_done)

        await asyncio.to_thread((root / runtime.SHIM.lstrip("/")).unlink)
        config = await until(cluster, lambda config: in_progress(config) == ("True", "Failed"))
        assert f"{runtime.SHIM}: the program" in (condition(config, "InProgress") or {})["message"]
