"""What a node booted, told by the CLI, and the same images brought up elsewhere from what a client sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.nodes.config_nodes import ConfigNodes
from fastness.machineconfig.rollout.image_queue import queue_of
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.components import require_program
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


async def run(*arguments: str) -> Result:
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, list(arguments)))


async def boots(embedded: Embedded, sequence: list[tuple[str, str]]) -> None:
    """A node that came to each of these images and configs, one after the other, as its agent says."""
    cluster, clock = embedded.cluster, SystemClock()
    await cluster.create(NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w0"}})
    pool: JsonObject = {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "worker"},
        "spec": {
            "machineConfigSelector": {"matchLabels": {names.ROLE_LABEL: "worker"}},
            "configuration": {"name": "rendered-worker-2", "source": [{"name": "00-worker"}, {"name": "99-mine"}]},
        },
    }  # fmt: skip
    await cluster.create(MACHINE_CONFIG_POOL.resource, pool)
    async with Informers(cluster, clock=clock, entropy=SystemEntropy()) as informers:
        loop = ConfigNodes(cluster, informers, clock)
        for source in loop.sources:
            await informers.of(source.resource).synced()
        for number, (image, config) in enumerate(sequence, start=1):
            notes = {names.BOOTED_IMAGE: image, names.CURRENT_CONFIG: config, names.STATE: "Done"}
            await cluster.patch(NODE.resource, "w0", {"metadata": {"annotations": notes}}, PatchType.MERGE)
            async with asyncio.timeout(PATIENCE):
                while True:
                    await loop.reconcile(ObjectName("", "w0"))
                    nodes = (await cluster.list(MACHINE_CONFIG_NODE.resource)).items
                    if nodes and len(queue_of(nodes[0]).boots) == number:
                        break
                    await asyncio.sleep(0.01)


@pytest.mark.row("003-13")
async def test_support_brings_up_the_images_of_a_clients_node_in_the_same_order(
    embedded_server: Embedded, registry: LocalRegistry, tmp_path: Path
) -> None:
    first, second = (
        f"{registry.address}/os/{name}@{registry.push(f'os/{name}', '1', name)}" for name in ("base", "layered")
    )
    await boots(
        embedded_server, [(first, "rendered-worker-1"), (second, "rendered-worker-2"), (first, "rendered-worker-1")]
    )
    kubeconfig = str(embedded_server.kubeconfig)
    history = await run("image", "history", "w0", "-o", "json", "--kubeconfig", kubeconfig)
    assert history.exit_code == 0, history.output
    listed = json.loads(history.stdout)["boots"]
    assert [(boot["image"], boot["config"]) for boot in listed] == [
        (first, "rendered-worker-1"), (second, "rendered-worker-2"), (first, "rendered-worker-1"),
    ]  # fmt: skip
    assert listed[1]["sources"] == ["00-worker", "99-mine"]
    assert listed[0]["at"] <= listed[1]["at"] <= listed[2]["at"]

    bundle = tmp_path / "bundle"
    assert (await run("support", "bundle", "--dest-dir", str(bundle), "--kubeconfig", kubeconfig)).exit_code == 0
    sent = bundle / f"cluster-scoped-resources/{MACHINE_CONFIG_NODE.group}/machineconfignodes.yaml"
    target = tmp_path / "replay"
    plain = ("--insecure-registry", registry.address)
    made = await run("image", "replay", "w0", "--bundle", str(sent), "--into", str(target), *plain)
    assert made.exit_code == 0, made.output
    index = json.loads((target / "index.json").read_text())
    names_in_order = [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index["manifests"]]
    assert names_in_order == ["01", "02", "03"]
    digests = [entry["digest"] for entry in index["manifests"]]
    assert digests == [image.partition("@")[2] for image in (first, second, first)]
    for manifest in (json.loads((target / "blobs" / entry.replace(":", "/")).read_text()) for entry in digests):
        assert all((target / "blobs" / part["digest"].replace(":", "/")).exists() for part in manifest["layers"])
    sequence = json.loads((target / "sequence.json").read_text())["images"]
    assert [entry["configs"] for entry in sequence] == [[boot["config"]] for boot in listed]


async def test_an_image_that_is_gone_is_named_and_the_others_are_there(
    embedded_server: Embedded, registry: LocalRegistry, tmp_path: Path
) -> None:
    there = f"{registry.address}/os/base@{registry.push('os/base', '1', 'base')}"
    gone = f"{registry.address}/os/base@sha256:{'d' * 64}"
    await boots(embedded_server, [(gone, "rendered-worker-1"), (there, "rendered-worker-2")])
    target = tmp_path / "replay"
    options = ("--insecure-registry", registry.address, "--kubeconfig", str(embedded_server.kubeconfig))
    made = await run("image", "replay", "w0", "--into", str(target), *options)
    assert made.exit_code != 0
    assert f"{gone} cannot be fetched" in made.output
    assert [entry["digest"] for entry in json.loads((target / "index.json").read_text())["manifests"]] == [
        there.partition("@")[2]
    ]
    again = await run("image", "replay", "w0", "--into", str(target), *options)
    assert "is not empty" in again.output
    nobody = await run("image", "history", "w9", "--kubeconfig", str(embedded_server.kubeconfig))
    assert "there is no MachineConfigNode 'w9'" in nobody.output
