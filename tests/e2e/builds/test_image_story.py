"""A pool's image from its description to the machines that boot it, and back: real builder, real registry, virtual machines."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.builds.build_objects import LOG, log_name
from fastness.builds.kernel_arguments import PLACE
from fastness.builds.live import seal
from fastness.builds.placement import PUBLIC
from fastness.builds.sealing import SEALED
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, EVENT, NAMESPACE, NODE, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import annotations_of, condition, labels_of
from fastness.kinds.openshift.images import IMAGE
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType
from fastness.machineconfig.render.suggest import PushPlace, os_config
from fastness.observe import metrics
from fastness.sim.registry import INSTALLED_VERSION
from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import everything, processes_of_builds, pulled, pushed_busybox, pushed_other, tags
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import PATIENCE
from tests.soaking import soaking

pytestmark = pytest.mark.processes
CHRONY = "/etc/chrony.conf"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


class Pool:
    """The worker pool of a cluster of virtual machines, and what an administrator does to it."""

    def __init__(self, plane: ControlPlane, registry: LocalRegistry, base: str) -> None:
        self.cluster = plane.server.cluster
        assert plane.simulated is not None
        self.simulation = plane.simulated.simulation
        self.registry = registry
        self.base = base
        self.since = ""

    async def prepare(self) -> None:
        """What every administrator has before a first build: a secret, a registry that is known, a base image."""
        with suppress(AlreadyExists):
            place = {"metadata": {"name": names.OPERATOR_NAMESPACE}}
            await self.cluster.create(NAMESPACE.resource, {"apiVersion": "v1", "kind": "Namespace", **place})
        secret = base64.b64encode(json.dumps({"auths": {}}).encode()).decode()
        await self.cluster.create(SECRET.resource, {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "push", "namespace": names.OPERATOR_NAMESPACE}, "data": {".dockerconfigjson": secret},
        })  # fmt: skip
        insecure = {"registrySources": {"insecureRegistries": [self.registry.address]}}
        await self.cluster.create(IMAGE.resource, {
            "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}, "spec": insecure,
        })  # fmt: skip
        await self.config("10-base", {"osImageURL": self.base})

    async def config(self, name: str, spec: JsonObject, **notes: str) -> None:
        await self.cluster.create(MACHINE_CONFIG.resource, {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {names.ROLE_LABEL: "worker"}, "annotations": notes}, "spec": spec,
        })  # fmt: skip

    async def file(self, name: str, path: str, text: str, **notes: str) -> None:
        entry = {"path": path, "mode": 420, "contents": {"source": f"data:,{text}"}}
        await self.config(name, {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [entry]}}}, **notes)

    async def describe(self, text: str, secret: str = "push", pool: str = "worker", **notes: str) -> None:
        made = await self.cluster.create(MACHINE_OS_CONFIG.resource, {
            "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": pool, "annotations": notes},
            "spec": {
                "machineConfigPool": {"name": pool}, "imageBuilder": {"imageBuilderType": "Job"},
                "renderedImagePushSecret": {"name": secret}, "renderedImagePushSpec": f"{self.registry.address}/os/worker:latest",
                "containerFile": [{"content": text}],
            },
        })  # fmt: skip
        self.since = made["metadata"]["resourceVersion"]

    async def change(self, text: str) -> None:
        patch = {"spec": {"containerFile": [{"containerfileArch": "NoArch", "content": text}]}}
        await self.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", patch, PatchType.MERGE)

    def booted(self) -> set[str]:
        return {machine.machine.system.booted().image for machine in self.simulation._open.machines}

    def arguments(self) -> set[str]:
        """The kernel arguments that were set on machines, beside those of their image."""
        machines = self.simulation._open.machines
        return {argument for machine in machines for argument in machine.machine.system.booted().arguments}

    def on_disk(self, path: str) -> bytes:
        """A file on the disk of the one machine."""
        (file,) = (self.simulation.state / "machines").glob(f"*/root/{path}")
        return file.read_bytes()

    def boots(self) -> int:
        """How often the one machine booted."""
        return sum(machine.boots for machine in self.simulation._open.machines)

    async def get(self) -> JsonObject:
        return await self.cluster.get(MACHINE_CONFIG_POOL.resource, "worker")

    async def described(self) -> JsonObject:
        return await self.cluster.get(MACHINE_OS_CONFIG.resource, "worker")

    async def builds(self) -> list[JsonObject]:
        return (await self.cluster.list(MACHINE_OS_BUILD.resource)).items

    async def log(self, build: JsonObject) -> str:
        """What is kept of a build's log."""
        log_map = await self.cluster.get(
            CONFIG_MAP.resource, log_name(build["metadata"]["name"]), names.OPERATOR_NAMESPACE
        )
        return str(log_map["data"][LOG])

    async def says(self, kind: str) -> JsonObject:
        return dict(condition(await self.get(), kind) or {})

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self._holds(holds):  # noqa: ASYNC110 - there is nothing to be told by
                await asyncio.sleep(0.05)

    async def _holds(self, holds: Callable[[], Awaitable[Any]]) -> bool:
        try:
            return bool(await holds())
        except NotFound:
            return False

    async def settled(self, image: str) -> bool:
        """Whether every machine runs an image and the pool says so."""
        if (await self.says("Updated")).get("status") != "True" or self.booted() != {image}:
            return False
        nodes = (await self.cluster.list(NODE.resource)).items
        return {annotations_of(node).get(names.BOOTED_IMAGE) for node in nodes} == {image}

    async def built(self) -> str:
        """The image of the MachineOSConfig, when every machine runs it."""
        image = str(((await self.described()).get("status") or {}).get("currentImagePullSpec") or "")
        return image if image and await self.settled(image) else ""


@asynccontextmanager
async def worker_pool(directory: Path, registry: LocalRegistry, profile: str = "containers") -> AsyncIterator[Pool]:
    async with running(PlaneOptions(directory / "state", machines=1, profile=profile)) as plane:
        pool = Pool(plane, registry, pushed_busybox(registry))
        if profile == "containers":
            await pool.prepare()
            await pool.until(lambda: pool.settled(pool.base))
        else:
            await pool.until(lambda: pool.settled(pool.simulation.registry.installed))
            await pool.prepare()
        yield pool


@pytest.mark.row("003-01")
@pytest.mark.row("003-02")
@pytest.mark.row("003-05")
@pytest.mark.row("003-07")
@pytest.mark.row("003-08")
@pytest.mark.row("003-26")
@pytest.mark.row("003-27")
@pytest.mark.row("003-31")
@pytest.mark.row("003-32")
@pytest.mark.row("003-50")
@pytest.mark.row("003-51")
@pytest.mark.row("003-52")
@pytest.mark.row("003-53")
@pytest.mark.row("003-56")
@pytest.mark.row("003-57")
@pytest.mark.row("003-61")
@pytest.mark.row("003-62")
@pytest.mark.row("003-63")
@pytest.mark.row("003-76")
async def test_a_layer_becomes_the_image_that_machines_boot_and_deleting_it_brings_the_base_back(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with worker_pool(tmp_path, registry) as pool:
        await pool.describe("RUN echo mine > /etc/mine")
        await pool.until(pool.built)
        first = await pool.built()
        await _told_everywhere(pool, first)
        assert await _phases(pool) == ["Prepared", "Building", "Succeeded"]

        other = pushed_other(registry)
        chrony = [
            {"path": CHRONY, "mode": 420, "contents": {"source": "data:,server%20a"}},
            {"path": "/usr/lib/mine", "mode": 420, "contents": {"source": "data:,mine"}},
        ]
        document = {"ignition": {"version": "3.4.0"}, "storage": {"files": chrony}}
        await pool.config("50-chrony", {"osImageURL": other, "kernelArguments": ["nosmt"], "config": document})
        await pool.until(lambda: _is_new(pool, first))
        second = await pool.built()
        files, config, layers = pulled(registry, second)
        assert (files[CHRONY.lstrip("/")], files["etc/mine"]) == (b"server a", b"mine\n")
        assert files["usr/lib/mine"] == b"mine"
        assert files[PLACE.lstrip("/")] == b'kargs = ["nosmt"]\n', "arguments come with the image"
        assert pool.arguments() == set(), "and nobody sets them on the machine"
        assert layers[0] == pulled(registry, other)[2][0], "built on the new base"
        assert config["config"]["Labels"]["baseOSContainerImage"] == other
        assert len(layers) == 3

        await pool.file("60-var", "/var/lib/mine", "on%20disk")
        await pool.until(lambda: _builds(pool, 3))
        await pool.until(lambda: pool.settled(second))
        assert "var/lib/mine" not in files, "a change of class disk builds nothing"
        assert pool.on_disk("var/lib/mine") == b"on disk"
        boots = pool.boots()
        await pool.file("70-policy", "/etc/containers/registries.d/mine.yaml", "x")
        await pool.until(lambda: _builds(pool, 4))
        await pool.until(lambda: pool.settled(second))
        assert pool.on_disk("etc/containers/registries.d/mine.yaml") == b"x"
        assert pool.boots() == boots, "what needs no reboot is not in the image"

        await pool.cluster.delete(MACHINE_CONFIG.resource, "50-chrony")
        await pool.until(lambda: pool.settled(first))
        assert PLACE.lstrip("/") not in pulled(registry, first)[0], "and go with it"
        assert {each["status"]["digestedImagePushSpec"] for each in await pool.builds()} == {first, second}

        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "worker")
        await pool.until(lambda: pool.settled(pool.base))
        await pool.until(lambda: _builds(pool, 0))
        assert pool.on_disk("var/lib/mine") == b"on disk"


async def _phases(pool: Pool) -> list[str]:
    """What `kubectl get machineosbuild -w` shows of the first build, from its creation to its end."""
    (build,) = await pool.builds()
    lines: list[str] = []
    async with pool.cluster.watch(MACHINE_OS_BUILD.resource, since=pool.since) as events, asyncio.timeout(PATIENCE):
        async for event in events:
            true = [
                each for each in (event.object.get("status") or {}).get("conditions") or () if each["status"] == "True"
            ]
            lines += [each["type"] for each in true if each["type"] not in lines]
            if "Succeeded" in lines:
                break
    assert build["status"]["buildStart"] < build["status"]["buildEnd"]
    return lines


async def _told_everywhere(pool: Pool, image: str) -> None:
    """What pool, build, node and registry say of an image that every machine runs."""
    files, config, _ = pulled(pool.registry, image)
    assert files["etc/mine"] == b"mine\n"
    assert "bin/busybox" in files
    (build,) = await pool.builds()
    rendered = (await pool.get())["spec"]["configuration"]["name"]
    assert build["spec"]["machineConfig"]["name"] == rendered == labels_of(build)[names.BUILD_CONFIG_LABEL]
    assert build["status"]["digestedImagePushSpec"] == image
    assert build["metadata"]["name"] in tags(pool.registry, "os/worker")
    assert image in (await pool.says("Updated"))["message"]
    labels = config["config"]["Labels"]
    assert (labels["machineconfig"], labels["machineconfigpool"]) == (rendered, "worker")
    node = (await pool.cluster.list(MACHINE_CONFIG_NODE.resource)).items[0]
    assert node["status"]["configImage"] == {"currentImage": image, "desiredImage": image}
    registry = pool.simulation.registry
    assert len({registry.version(image), registry.version(pool.base), INSTALLED_VERSION}) == 3, (
        "each image measures by itself"
    )


async def _is_new(pool: Pool, old: str) -> bool:
    return await pool.built() not in ("", old)


async def _builds(pool: Pool, count: int) -> bool:
    return len(await pool.builds()) == count


async def _told(pool: Pool, reason: str, words: str) -> bool:
    """Whether an event says so."""
    events = (await pool.cluster.list(EVENT.resource)).items
    return any(each["reason"] == reason and words in each["message"] for each in events)


async def _degraded(pool: Pool, reason: str) -> bool:
    state = await pool.says("ImageBuildDegraded")
    return (state.get("status"), state.get("reason")) == ("True", reason)


@pytest.mark.row("003-30")
@pytest.mark.row("003-43")
@pytest.mark.row("003-44")
@pytest.mark.row("003-46")
@pytest.mark.row("003-50")
@pytest.mark.row("003-54")
@pytest.mark.row("003-99")
async def test_what_is_wrong_is_told_before_a_build_and_a_build_that_failed_stops_nothing_else(
    registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "PROGRAM", "cfsctl-that-nobody-installed")
    async with worker_pool(tmp_path, registry) as pool:
        await pool.file("40-usr", "/usr/lib/mine", "x")
        await pool.until(lambda: _says(pool, "NodeDegraded", "/usr belongs to the image of this machine"))
        await pool.cluster.delete(MACHINE_CONFIG.resource, "40-usr")
        await pool.until(lambda: pool.settled(pool.base))
        await pool.describe("RUN true", pool="infra")
        await pool.until(lambda: _refused(pool, "infra", "PoolNotFound"))
        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "infra")
        await pool.describe("RUN echo what went wrong; false", secret="later")
        await pool.until(lambda: _degraded(pool, "SecretNotFound"))
        state = condition(await pool.described(), names.BUILDABLE) or {}
        assert "kubectl -n openshift-machine-config-operator create secret docker-registry later" in state["message"]
        push: dict[str, object] = {"renderedImagePushSecret": {"name": "push"}}
        for value, reason in (("maybe", "SealedInvalid"), ("true", "CannotSeal"), (None, "BuildFailed")):
            assert await pool.builds() == []
            patch = {"metadata": {"annotations": {SEALED: value}}, "spec": push}
            await pool.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", patch, PatchType.MERGE)
            await pool.until(partial(_degraded, pool, reason))
        assert "what went wrong" in (await pool.says("ImageBuildDegraded"))["message"]
        (failed,) = await pool.builds()
        assert [each["type"] for each in failed["status"]["conditions"] if each["status"] == "True"] == ["Failed"]
        assert failed["status"]["buildStart"] < failed["status"]["buildEnd"]
        assert pool.booted() == {pool.base}, "the old image goes on"
        assert "what went wrong" in await pool.log(failed)
        assert metrics.REGISTRY.value("ocl_build_state", {"pool": "worker", "state": "failed"}) == 1
        assert (metrics.REGISTRY.value("ocl_build_total", {"pool": "worker", "state": "failed"}) or 0) >= 1
        await pool.until(lambda: _told(pool, "BuildFailed", "what went wrong"))

        await pool.change("RUN echo good > /etc/good")
        await pool.until(pool.built)
        assert (await pool.says("ImageBuildDegraded"))["status"] == "False"
        assert [(condition(each, "Succeeded") or {}).get("status") for each in await pool.builds()] == ["True"]


@pytest.mark.row("003-23")
async def test_a_pool_starts_on_an_image_that_was_built_before_and_builds_when_something_changes(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with worker_pool(tmp_path, registry) as pool:
        given = pushed_other(registry)
        await pool.describe("RUN true", **{names.PRE_BUILT: given.partition("@")[0]})
        await pool.until(lambda: _degraded(pool, "PreBuiltImageInvalid"))
        note = {"metadata": {"annotations": {names.PRE_BUILT: given}}}
        await pool.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", note, PatchType.MERGE)
        await pool.until(lambda: pool.settled(given))
        described = await pool.described()
        assert names.PRE_BUILT not in annotations_of(described)
        seeded = condition(described, names.SEEDED) or {}
        assert (seeded["status"], seeded["reason"]) == ("True", "PreBuiltImageSeeded")
        (standing,) = await pool.builds()
        assert labels_of(standing)[names.PRE_BUILT] == "true"

        await pool.change("RUN echo mine > /etc/mine")
        await pool.until(lambda: _is_new(pool, given))
        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "worker")
        await pool.until(lambda: _builds(pool, 0))
        assert "bin/busybox" in pulled(registry, given)[0], "what was built elsewhere is not ours to delete"


@pytest.mark.parametrize("why", [soaking("rebuilt", why="a build and its failure are told by the test above")])
async def test_a_wish_builds_anew_and_a_build_that_nobody_wants_ends(
    registry: LocalRegistry, tmp_path: Path, why: str
) -> None:
    async with worker_pool(tmp_path, registry) as pool:
        await pool.describe(f"RUN echo {why} > /etc/good")
        await pool.until(pool.built)
        good = await pool.built()
        (old,) = await pool.builds()
        note = {"metadata": {"annotations": {names.REBUILD: ""}}}
        await pool.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", note, PatchType.MERGE)
        await pool.until(lambda: _built_anew(pool, str(old["metadata"]["uid"])))
        assert names.REBUILD not in annotations_of(await pool.described())
        assert await pool.built() == good, "the same inputs are the same image"

        await pool.change("RUN sleep 2147483647")
        await pool.until(lambda: _building(pool))
        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "worker")
        await pool.until(lambda: pool.settled(pool.base))
        await pool.until(lambda: _builds(pool, 0))
        assert processes_of_builds(pool.simulation.state) == [], "what nobody wants any more ends"


async def _refused(pool: Pool, name: str, reason: str) -> bool:
    state = condition(await pool.cluster.get(MACHINE_OS_CONFIG.resource, name), names.BUILDABLE) or {}
    return (state.get("status"), state.get("reason")) == ("False", reason)


async def _built_anew(pool: Pool, old: str) -> bool:
    builds = [each for each in await pool.builds() if each["metadata"]["uid"] != old]
    return bool(builds) and len(await pool.builds()) == 1 and bool(await pool.built())


async def _building(pool: Pool) -> bool:
    return any((condition(each, "Building") or {}).get("status") == "True" for each in await pool.builds())


@pytest.mark.row("000-29")
@pytest.mark.row("003-33")
async def test_no_layer_of_a_confidential_pool_holds_what_only_attested_machines_may_read(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with worker_pool(tmp_path, registry, "cluster") as pool:
        installed = pool.booted()
        await pool.file("50-secret", "/etc/secret", "canary-of-the-config")
        await pool.file("60-public", "/etc/banner", "welcome", **{PUBLIC: "true"})
        place = PushPlace("worker", f"{registry.address}/os/worker:latest", "push")
        refused = {"metadata": {"name": "99-smt"}, "spec": {"kernelArguments": ["nosmt"]}}
        suggested = os_config([refused], place)
        assert suggested is not None
        suggested["spec"]["containerFile"][0]["content"] += (
            "RUN cat /etc/banner > /etc/seen; cat /etc/secret >> /etc/seen; true"
        )
        await pool.cluster.create(MACHINE_OS_CONFIG.resource, suggested)
        await pool.until(lambda: _image(pool))
        files, config, _ = pulled(registry, await _image(pool))
        assert files["etc/banner"] == files["etc/seen"] == b"welcome"
        assert files["usr/lib/bootc/kargs.d/50-99-smt.toml"] == b'kargs = ["nosmt"]\n', "the way out can be gone"
        # Not only what is there in the end: a layer keeps what a later one takes away.
        contents = everything(registry, "os/worker")
        assert any(b"welcome" in content for content in contents)
        assert not any(b"canary-of-the-config" in content for content in contents)
        assert "canary" not in json.dumps(config)
        await _published_under_a_name(pool, registry)
        await pool.until(lambda: _says(pool, "Updating", "values"))
        assert pool.booted() == installed, "nobody boots what nobody approved"


async def _published_under_a_name(pool: Pool, registry: LocalRegistry) -> None:
    """Who makes a config public has it in the next image, and it says so who that was; it is approved no more than any other."""
    before = await _image(pool)
    note = {"metadata": {"annotations": {PUBLIC: "true"}}}
    await pool.cluster.patch(MACHINE_CONFIG.resource, "50-secret", note, PatchType.MERGE)
    await pool.change("RUN echo another > /etc/motd")
    await pool.until(lambda: _is_other(pool, before))
    assert any(b"canary-of-the-config" in content for content in everything(registry, "os/worker"))


async def _is_other(pool: Pool, before: str) -> bool:
    return await _image(pool) not in ("", before)


async def _image(pool: Pool) -> str:
    return str(((await pool.described()).get("status") or {}).get("currentImagePullSpec") or "")


async def _says(pool: Pool, kind: str, text: str) -> bool:
    return text in str((await pool.says(kind)).get("message"))
