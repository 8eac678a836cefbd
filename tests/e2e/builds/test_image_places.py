"""Where files of a pool with an image live, seen by a user: real builder, real registry, two virtual machines, the commands.

One control plane for a whole story, as its parts need each other: an image for a pool whose nodes have files, pods with a budget
and files of another operator, then what is on disks, in the registry, in the history and in what support gets.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.app.embedded import PlaneOptions, running
from fastness.cli.main import cli
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, EVENT, NAMESPACE, NODE, POD, POD_DISRUPTION_BUDGET, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.openshift.config import INFRASTRUCTURE
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.files_of_others import DIRECTORY
from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import pulled, pushed_busybox
from tests.e2e.builds.test_image_story import Pool
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.unit.machineconfig.build import CERTIFICATE

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long("two builds, and two machines that boot one after the other, four times"),
]
DROPIN = "systemd/system/zincati.service.d/mco-disabled.conf"
INOTIFY, OURS_IN_VAR = "/etc/sysctl.d/inotify.conf", "/var/lib/kubelet/config.json"
KEY, KEYS = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBzLz me@example", "home/core/.ssh/authorized_keys.d/ignition"
FOREIGN, CANARY = "etc/sriov/0000.json", "canary-of-the-push-secret"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


class TwoNodes(Pool):
    """A worker pool with two nodes, and the commands of a user."""

    kubeconfig: Path

    @property
    def roots(self) -> list[Path]:
        """The disks of the machines."""
        return sorted((self.simulation.state / "machines").glob("*/root"))

    def on_disks(self, path: str) -> list[str | None]:
        """A file on every machine; None where it is not."""
        places = [root / path for root in self.roots]
        return [place.read_text() if place.exists() else None for place in places]

    async def command(self, *words: str) -> str:
        """What a command prints."""
        whole = [*words, "--kubeconfig", str(self.kubeconfig)]
        result = await asyncio.to_thread(lambda: CliRunner().invoke(cli, whole))
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    async def cordoned(self) -> list[str]:
        nodes = (await self.cluster.list(NODE.resource)).items
        return [str(node["metadata"]["name"]) for node in nodes if (node.get("spec") or {}).get("unschedulable")]

    async def arrived(self, image: str) -> bool:
        """Whether every node has what the pool wants now, and runs an image."""
        pool = await self.get()
        goal = pool["spec"]["configuration"]["name"]
        nodes = (await self.cluster.list(NODE.resource)).items
        there = [annotations_of(node).get(names.CURRENT_CONFIG) == goal for node in nodes]
        return pool["status"]["configuration"].get("name") == goal and all(there) and await self.settled(image)

    async def degraded(self, kind: str, *words: str) -> bool:
        state = await self.says(kind)
        return state.get("status") == "True" and all(word in str(state.get("message")) for word in words)

    async def write_map(self, namespace: str, name: str, data: JsonObject) -> None:
        with suppress(AlreadyExists):
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self.cluster.create(NAMESPACE.resource, place)
        made = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data,
        }  # fmt: skip
        await self.cluster.create(CONFIG_MAP.resource, made)


@asynccontextmanager
async def two_nodes(directory: Path, registry: LocalRegistry) -> AsyncIterator[TwoNodes]:
    async with running(PlaneOptions(directory / "state", machines=2, profile="containers")) as plane:
        pool = TwoNodes(plane, registry, pushed_busybox(registry))
        pool.kubeconfig = plane.kubeconfig
        # A hosted control plane: a pool that is not confidential has images there as everywhere.
        hosted, options = {"status": {"controlPlaneTopology": "External"}}, WriteOptions(subresource="status")
        await pool.cluster.patch(INFRASTRUCTURE.resource, "cluster", hosted, PatchType.MERGE, "", options)
        await pool.prepare()
        login = base64.b64encode(f"me:{CANARY}".encode()).decode()
        content = base64.b64encode(json.dumps({"auths": {registry.address: {"auth": login}}}).encode()).decode()
        await pool.cluster.create(SECRET.resource, {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "mine", "namespace": names.OPERATOR_NAMESPACE}, "data": {".dockerconfigjson": content},
        })  # fmt: skip
        await pool.until(lambda: pool.settled(pool.base))
        yield pool


def _mine() -> JsonObject:
    """What a user has for a pool: files in /etc and /var, a drop-in over one of ours, a key, files of somebody else."""
    declared = base64.b64encode(json.dumps({"owner": "sriov", "paths": ["/etc/sriov"]}).encode()).decode()
    files = {
        "/var/lib/mine": "data:,mine", INOTIFY: "data:,mine", f"{DIRECTORY}/sriov.json": f"data:;base64,{declared}",
    }  # fmt: skip
    dropin = {"name": "mco-disabled.conf", "contents": "[Unit]\nDescription=mine\n"}
    return {"config": {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": path, "mode": 420, "overwrite": True, "contents": {"source": source}}
                              for path, source in files.items()]},
        "systemd": {"units": [{"name": "zincati.service", "dropins": [dropin]}]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [KEY]}]},
    }}  # fmt: skip


@pytest.mark.row("003-04")
@pytest.mark.row("003-12")
@pytest.mark.row("003-14")
@pytest.mark.row("003-21")
@pytest.mark.row("003-25")
@pytest.mark.row("003-28")
@pytest.mark.row("003-29")
@pytest.mark.row("003-34")
@pytest.mark.row("003-35")
@pytest.mark.row("003-47")
@pytest.mark.row("003-48")
@pytest.mark.row("003-49")
@pytest.mark.row("003-59")
@pytest.mark.row("003-60")
@pytest.mark.row("003-65")
@pytest.mark.row("003-66")
@pytest.mark.row("003-78")
@pytest.mark.row("003-79")
async def test_a_user_finds_every_file_of_a_pool_before_after_and_beside_its_image(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with two_nodes(tmp_path, registry) as pool:
        await _without_an_image(pool)
        image = await _switched_within_a_budget(pool)
        await _where_files_are(pool, image)
        await _what_drifts_is_right_after_a_boot(pool, image)
        await _an_authority_of_a_registry(pool, image)
        await _what_support_gets(pool, image, tmp_path)
        (old,) = await pool.builds()
        note = {"metadata": {"annotations": {names.REBUILD: ""}}}
        await pool.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", note, PatchType.MERGE)
        await pool.until(lambda: _is_another_build(pool, str(old["metadata"]["uid"])))
        assert names.REBUILD not in annotations_of(await pool.described())


async def _without_an_image(pool: TwoNodes) -> None:
    """Image mode off: configs are rendered, problems told, files written, and nothing is built."""
    before = (await pool.get())["spec"]["configuration"]["name"]
    await pool.config("50-mine", _mine())
    await pool.until(lambda: _rendered(pool, before))
    goal = (await pool.get())["spec"]["configuration"]
    assert {"00-worker", "10-base", "50-mine"} <= {source["name"] for source in goal["source"]}
    await pool.until(lambda: _event(pool, goal["name"], "50-mine"))
    await pool.until(lambda: pool.arrived(pool.base))
    assert pool.on_disks(INOTIFY.lstrip("/")) == ["mine", "mine"]
    assert pool.on_disks("var/lib/mine") == ["mine", "mine"]
    assert pool.on_disks("usr/lib/sysctl.d/inotify.conf") == [None, None], (
        "without an image nothing of ours is below /usr"
    )
    nodes = (await pool.cluster.list(NODE.resource)).items
    assert await pool.builds() == []
    assert not any(names.DESIRED_IMAGE in annotations_of(node) for node in nodes)

    disk = {"device": "/dev/vda", "partitions": [{"label": "x", "number": 1}]}
    await pool.config("60-disk", {"config": {"ignition": {"version": "3.4.0"}, "storage": {"disks": [disk]}}})
    await pool.until(lambda: pool.degraded("RenderDegraded", "60-disk", "disk"))
    await pool.cluster.delete(MACHINE_CONFIG.resource, "60-disk")
    await pool.config(
        "60-bad", {"kernelType": "steam", "extensions": ["no-such"], "config": {"ignition": {"version": "3.4.0"}}}
    )
    await pool.until(lambda: pool.degraded("RenderDegraded", "60-bad", "steam", "no-such"))
    await pool.cluster.delete(MACHINE_CONFIG.resource, "60-bad")
    await pool.until(lambda: pool.arrived(pool.base))


async def _rendered(pool: TwoNodes, before: str) -> bool:
    return bool((await pool.get())["spec"]["configuration"]["name"] != before)


async def _event(pool: TwoNodes, *words: str) -> bool:
    events = (await pool.cluster.list(EVENT.resource)).items
    return any(all(word in str(event.get("message")) for word in words) for event in events)


async def _switched_within_a_budget(pool: TwoNodes) -> str:
    """A pod with a budget on each node; nobody goes down before the budget allows it, and one after the other then."""
    for number, root in enumerate(pool.roots):
        (root / FOREIGN).parent.mkdir(parents=True)
        (root / FOREIGN).write_text("by the operator")
        node = (await pool.cluster.list(NODE.resource)).items[number]["metadata"]["name"]
        meta = {"name": f"web-{number}", "namespace": "default", "labels": {"app": "web"}}
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        await pool.cluster.create(POD.resource, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        options = WriteOptions(subresource="status")
        await pool.cluster.patch(POD.resource, f"web-{number}", ready, PatchType.MERGE, "default", options)
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    await pool.cluster.create(POD_DISRUPTION_BUDGET.resource, budget)
    await pool.describe("RUN echo built > /etc/built", secret="mine")
    await pool.until(pool.cordoned)
    await pool.until(lambda: _event(pool, "web-", "budget"))
    (first,) = await pool.cordoned()
    image = str((await pool.described())["status"]["currentImagePullSpec"])
    assert pool.booted() == {pool.base}, "the budget holds the switch up"
    lower = {"spec": {"minAvailable": 1}}
    await pool.cluster.patch(POD_DISRUPTION_BUDGET.resource, "keep", lower, PatchType.MERGE, "default")
    await pool.until(lambda: _another_waits(pool, first))
    node = await pool.cluster.get(NODE.resource, first)
    assert annotations_of(node)[names.BOOTED_IMAGE] == image, "the first is back, and at work, before the next one goes"
    assert pool.booted() == {pool.base, image}
    await pool.cluster.delete(POD_DISRUPTION_BUDGET.resource, "keep", "default")
    await pool.until(lambda: pool.settled(image))
    await pool.until(lambda: _nobody_is_cordoned(pool))
    return image


async def _another_waits(pool: TwoNodes, first: str) -> bool:
    cordoned = await pool.cordoned()
    return bool(cordoned) and first not in cordoned


async def _nobody_is_cordoned(pool: TwoNodes) -> bool:
    return not await pool.cordoned()


async def _where_files_are(pool: TwoNodes, image: str) -> None:
    files = pulled(pool.registry, image)[0]
    assert files[f"etc/{DROPIN}"] == b"[Unit]\nDescription=mine\n"
    assert b"/enoent" in files[f"usr/lib/{DROPIN}"], "ours is below it, in the same image"
    assert b"max_user_watches" in files["usr/lib/sysctl.d/inotify.conf"]
    assert b"[Service]" in files["usr/lib/systemd/system/kubelet.service"]
    merged = ("etc/systemd/system/", "etc/sysctl.d/", "etc/modules-load.d/")
    in_etc = [path for path, content in files.items() if path.startswith(merged) and content]
    starting = [path for path in in_etc if ".wants/" in path or ".requires/" in path]
    assert sorted({*in_etc} - {*starting}) == [f"etc/{DROPIN}"], (
        "nothing of ours is in /etc that has a place below /usr"
    )
    assert "etc/kubernetes/kubelet.conf" in files, "the kubelet looks nowhere else"
    assert not any(path.startswith("var/lib/mine") or KEY.encode() in content for path, content in files.items())

    assert pool.on_disks(f"etc/{DROPIN}") == ["[Unit]\nDescription=mine\n"] * 2, "the user's word wins on disks too"
    assert pool.on_disks(INOTIFY.lstrip("/")) == ["mine", "mine"]
    assert pool.on_disks("var/lib/mine") == ["mine", "mine"]
    assert pool.on_disks(KEYS) == [f"{KEY}\n"] * 2
    assert pool.on_disks(FOREIGN) == ["by the operator"] * 2, "what another operator wrote is there after the switch"

    parts = json.loads(await pool.command("image", "what-goes-where", "worker", "-o", "json"))
    listed = {part["path"]: part for part in parts}
    assert (listed["/etc/sriov"]["owner"], listed["/etc/sriov"]["where"]) == ("sriov", "disk")
    assert (listed[f"/usr/lib/{DROPIN}"]["owner"], listed[f"/etc/{DROPIN}"]["owner"]) == ("00-worker", "50-mine")
    ours = {"00-worker", "01-worker-kubelet", "01-worker-container-runtime"}
    in_var = [
        (part["path"], part["why"]) for part in parts if part["owner"] in ours and part["path"].startswith("/var")
    ]
    assert in_var == [(OURS_IN_VAR, "is the pull secret")]
    (blamed,) = json.loads(await pool.command("blame", "worker", "zincati.service/mco-disabled.conf", "-o", "json"))
    assert (blamed["source"], blamed["overrode"], blamed["image"]["counts"]) == (
        "50-mine",
        ["00-worker"],
        f"/etc/{DROPIN}",
    )


async def _what_drifts_is_right_after_a_boot(pool: TwoNodes, image: str) -> None:
    root = pool.roots[0]
    machine = root.parent.name
    (root / f"etc/{DROPIN}").write_text("by hand\n")
    (root / FOREIGN).write_text("newer, by the operator")
    await pool.until(lambda: pool.degraded("NodeDegraded", "mco-disabled.conf"))
    assert "sriov" not in str((await pool.says("NodeDegraded"))["message"]), "what is declared is no drift"
    await pool.simulation.reboot(machine)
    await pool.until(lambda: _is_well(pool))
    await pool.until(lambda: pool.arrived(image))
    assert pool.on_disks(f"etc/{DROPIN}") == ["[Unit]\nDescription=mine\n"] * 2
    assert (root / FOREIGN).read_text() == "newer, by the operator"
    assert pool.on_disks(KEYS) == [f"{KEY}\n"] * 2, "a key is there after every boot"


async def _is_well(pool: TwoNodes) -> bool:
    return (await pool.says("NodeDegraded")).get("status") == "False"


async def _an_authority_of_a_registry(pool: TwoNodes, image: str) -> None:
    boots, builds = pool.boots(), len(await pool.builds())
    await pool.write_map("openshift-config-managed", "image-registry-ca", {"r.example..5000": CERTIFICATE})

    async def everywhere() -> bool:
        return pool.on_disks("etc/docker/certs.d/r.example:5000/ca.crt") == [CERTIFICATE] * 2

    await pool.until(everywhere)
    assert (pool.boots(), len(await pool.builds()), pool.booted()) == (boots, builds, {image})


async def _what_support_gets(pool: TwoNodes, image: str, directory: Path) -> None:
    (build,) = await pool.builds()
    name = str((await pool.cluster.list(NODE.resource)).items[0]["metadata"]["name"])
    boots = json.loads(await pool.command("image", "history", name, "-o", "json"))["boots"]
    assert [(boot["image"], boot["build"]) for boot in boots][-1] == (image, build["metadata"]["name"])
    assert [boot["at"] for boot in boots] == sorted(boot["at"] for boot in boots)
    assert "50-mine" in boots[-1]["sources"]

    bundle = directory / "bundle"
    await pool.command("support", "bundle", "--dest-dir", str(bundle))
    texts = {path: path.read_text(errors="replace") for path in bundle.rglob("*") if path.is_file()}
    assert any("RUN echo built" in text for path, text in texts.items() if "machineosconfigs" in str(path))
    assert any(build["metadata"]["name"] in text for path, text in texts.items() if "machineosbuilds" in str(path))
    assert any("image-queue" in text for path, text in texts.items() if "machineconfignodes" in str(path))
    assert any(
        "STEP" in text and "echo built" in text
        for path, text in texts.items()
        if path.name == f"{build['metadata']['name']}.log"
    ), "the log"
    secrets = (CANARY, base64.b64encode(f"me:{CANARY}".encode()).decode())
    assert not [path for path, text in texts.items() if any(secret in text for secret in secrets)]


async def _is_another_build(pool: TwoNodes, old: str) -> bool:
    builds = [each for each in await pool.builds() if each["metadata"]["uid"] != old]
    return (
        len(builds) == 1
        and (condition(builds[0], "Succeeded") or {}).get("status") == "True"
        and bool(await pool.built())
    )
