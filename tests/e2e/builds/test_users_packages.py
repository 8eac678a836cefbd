"""What a user asks for in a MachineConfig is installed by the dnf of the base, listed, and booted when the pool goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli.main import cli
from fastness.kinds.kubernetes.core import CONFIG_MAP, NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import annotations_of
from fastness.kube.port import PatchType
from tests.components import require_program, require_root
from tests.e2e.builds.package_bases import dnf_base, rpm_extensions
from tests.e2e.builds.registry_images import layer_notes, pulled
from tests.e2e.builds.test_image_story import Pool, worker_pool
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long("dnf installs four packages in a sandbox, and a machine boots them"),
]
PACKAGES = ("usbguard", "kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra")
LAYER = "RUN cat /usr/lib/installed/usbguard > /etc/seen\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.mark.row("003-05")
@pytest.mark.row("003-06")
@pytest.mark.row("003-19")
@pytest.mark.row("003-20")
@pytest.mark.row("003-41")
@pytest.mark.row("003-68")
@pytest.mark.row("003-93")
async def test_extensions_and_kernel_of_a_machine_config_are_in_the_image_that_can_be_scanned_before_anybody_boots_it(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    base = dnf_base(registry)
    source = rpm_extensions(registry, tmp_path / "rpms", *PACKAGES, "nobody-asked")
    async with worker_pool(tmp_path, registry) as pool:
        # What a MicroShift has and others have not; one node as there, and nothing else is otherwise.
        await pool.cluster.create(CONFIG_MAP.resource, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "microshift-version", "namespace": "kube-public"},
            "data": {"version": "4.20.0"},
        })  # fmt: skip
        await _pause(pool, True)
        await pool.config("50-packages", {
            "osImageURL": base, "extensions": ["usbguard"], "kernelType": "realtime", "baseOSExtensionsContainerImage": source,
        })  # fmt: skip
        await pool.describe(LAYER)
        await pool.until(lambda: _image(pool))
        image = await _image(pool)

        content, _, layers = pulled(registry, image)
        installed = {name: content[f"usr/lib/installed/{name}"].decode().strip() for name in PACKAGES}
        assert installed == {name: name for name in PACKAGES}
        assert "usr/lib/installed/nobody-asked" not in content
        assert content["etc/seen"] == b"usbguard\n", "what people write comes after packages"
        assert layer_notes(registry, image) == ["", "packages", "config", "content"]
        assert layers[0] == pulled(registry, base)[2][0], "the base is as it was"
        assert not [name for name in content if "var/cache/dnf" in name or name.endswith("dnf.log")]

        words = ["image", "packages", "worker", "-o", "json", "--kubeconfig", str(tmp_path / "state/kubeconfig")]
        listed = await asyncio.to_thread(lambda: CliRunner().invoke(cli, words))
        assert listed.exit_code == 0, listed.output
        answer = json.loads(listed.stdout)
        assert answer["image"] == image
        assert {package["name"]: package["version"] for package in answer["packages"]} == dict.fromkeys(PACKAGES, "1-1")
        bill = await asyncio.to_thread(lambda: CliRunner().invoke(cli, [*words, "--sbom"]))
        purls = {component["purl"].partition("?")[0] for component in json.loads(bill.stdout)["components"]}
        assert purls == {f"pkg:rpm/{name}@1-1" for name in PACKAGES}, "what scanners read"
        assert pool.booted() == {pool.base}, "the rollout waits"
        assert "paused" in json.dumps(await pool.get())

        await _pause(pool, False)
        await pool.until(lambda: pool.settled(image))
        (node,) = (await pool.cluster.list(NODE.resource)).items
        assert annotations_of(node)[names.CURRENT_IMAGE] == image


async def _pause(pool: Pool, paused: bool) -> None:
    await pool.cluster.patch(MACHINE_CONFIG_POOL.resource, "worker", {"spec": {"paused": paused}}, PatchType.MERGE)


async def _image(pool: Pool) -> str:
    return str(((await pool.described()).get("status") or {}).get("currentImagePullSpec") or "")
