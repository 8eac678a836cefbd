"""Builds as time goes by: bases behind a login, a control plane that dies and comes back, a registry that fills up.

All loops of the product, a real builder and real registries; where a node is needed, what its agent would say is said for it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.controllers import product_loops
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.builds import life
from fastness.builds.build_objects import LOG, log_name
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.workshop import BuildLimits
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, NAMESPACE, NODE, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import condition
from fastness.kinds.openshift.images import IMAGE
from fastness.kube.controllers import Runner
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.bed.images import MANIFEST, busybox_image, push
from tests.components import require_program, require_root
from tests.e2e.agent.test_container_images import LOGIN
from tests.e2e.builds.registry_images import pushed_busybox
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

pytestmark = pytest.mark.processes
BUILDS, CONFIGS, NODES, SECRETS = MACHINE_OS_BUILD.resource, MACHINE_OS_CONFIG.resource, NODE.resource, SECRET.resource
MAPS = CONFIG_MAP.resource
QUICK = replace(SIMULATED, render_delay=0.05, rollout_delay=0.05, streams_retry=0.3)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry that anybody may write to, and take images out of."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry"), deletes=True) as running:
        yield running


class Site:
    """An API, and control planes over it that come and go."""

    def __init__(self, embedded: Embedded, registry: LocalRegistry, directory: Path) -> None:
        self.embedded = embedded
        self.cluster = embedded.cluster
        self.registry = registry
        self.directory = directory

    @asynccontextmanager
    async def control_plane(self) -> AsyncIterator[None]:
        """All loops, until the block ends; then they are gone at once, whatever they were doing."""
        clock, entropy = SystemClock(), SystemEntropy()
        async with Informers(self.cluster, clock=clock, entropy=entropy) as informers:
            bundle = self.embedded.server.pki.bundle.decode()
            loops = kube_loops(self.cluster, Inventory(self.embedded.server.api), clock, bundle, WITHOUT_OWNERS)
            product = product_loops(
                self.cluster, informers, clock, entropy, timing=QUICK,
                builder=lambda _cluster: Buildah(self.directory / "builds", BuildLimits(free=0)),
            )  # fmt: skip
            runner = Runner([*loops.controllers, *product], informers, clock, entropy, feeds=loops.feeds)
            work = asyncio.create_task(runner.run())
            try:
                yield
            finally:
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

    async def furnish(self, base: str, *insecure: str) -> None:
        """What an administrator has before a first build."""
        with suppress(AlreadyExists):
            place = {"metadata": {"name": names.OPERATOR_NAMESPACE}}
            await self.cluster.create(NAMESPACE.resource, {"apiVersion": "v1", "kind": "Namespace", **place})
        await self.secret("push", {})
        await self.cluster.create(IMAGE.resource, {
            "apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
            "spec": {"registrySources": {"insecureRegistries": [self.registry.address, *insecure]}},
        })  # fmt: skip
        await self.cluster.create(MACHINE_CONFIG.resource, {
            "apiVersion": names.API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": "10-base", "labels": {names.ROLE_LABEL: "worker"}}, "spec": {"osImageURL": base},
        })  # fmt: skip

    async def secret(self, name: str, auths: JsonObject) -> None:
        content = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
        await self.cluster.create(SECRETS, {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": names.OPERATOR_NAMESPACE}, "data": {".dockerconfigjson": content},
        })  # fmt: skip

    async def describe(self, text: str, **more: Any) -> None:
        """A MachineOSConfig, or another text for it."""
        spec = {
            "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": f"{self.registry.address}/os/worker:latest",
            "containerFile": [{"containerfileArch": "NoArch", "content": text}], **more,
        }  # fmt: skip
        whole = {
            "apiVersion": names.API_VERSION,
            "kind": "MachineOSConfig",
            "metadata": {"name": "worker"},
            "spec": spec,
        }
        try:
            await self.cluster.create(CONFIGS, whole)
        except AlreadyExists:
            await self.cluster.patch(CONFIGS, "worker", {"spec": spec}, PatchType.MERGE)

    async def image(self, but: str = "") -> str:
        """The image of the MachineOSConfig, once it is another one than that."""

        async def there() -> str:
            stated = str(
                ((await self.cluster.get(CONFIGS, "worker")).get("status") or {}).get("currentImagePullSpec") or ""
            )
            return stated if stated != but else ""

        return str(await self.until(there, "an image"))

    async def builds(self) -> list[JsonObject]:
        return (await self.cluster.list(BUILDS)).items

    async def until(self, holds: Callable[[], Awaitable[Any]], what: str) -> Any:
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(NotFound):
                        if value := await holds():
                            return value
                    await asyncio.sleep(0.05)
        except TimeoutError:
            states = [(each["metadata"]["name"], each.get("status")) for each in await self.builds()]
            raise AssertionError(f"in vain for {what}: {states}") from None

    async def says(self, reason: str) -> str:
        """What the pool says of its image, when it says this."""

        async def so() -> str:
            stated = (
                condition(await self.cluster.get(MACHINE_CONFIG_POOL.resource, "worker"), "ImageBuildDegraded") or {}
            )
            message = str(stated.get("message") or "")
            return message if stated.get("status") == "True" and reason in message else ""

        return str(await self.until(so, reason))

    def has(self, image: str) -> bool:
        path, digest = image.removeprefix(f"{self.registry.address}/").split("@")
        url = f"{self.registry.url}/v2/{path}/manifests/{digest}"
        return httpx.head(url, headers={"accept": MANIFEST}, trust_env=False).is_success


@pytest.fixture
def site(embedded_server: Embedded, registry: LocalRegistry, tmp_path: Path) -> Site:
    return Site(embedded_server, registry, tmp_path)


@pytest.mark.row("003-40")
async def test_a_base_behind_a_login_is_pulled_with_the_secret_and_one_that_opens_nothing_is_told(
    site: Site, tmp_path: Path
) -> None:
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    (tmp_path / "closed").mkdir()
    with running_registry(program, tmp_path / "closed", LOGIN[2]) as closed:
        image = busybox_image(require_program(Path("/bin/busybox"), "busybox-static"))
        await asyncio.to_thread(push, closed.url, image, LOGIN[:2])
        answer = await asyncio.to_thread(
            httpx.head,
            f"{closed.url}/v2/{image.path}/manifests/{image.tag}",
            headers={"accept": MANIFEST},
            auth=LOGIN[:2],
            trust_env=False,
        )
        base = f"{closed.address}/{image.path}@{answer.headers['docker-content-digest']}"
        await site.furnish(base, closed.address)
        for name, password in (("wrong", "canary-nothing"), ("right", LOGIN[1])):
            auth = base64.b64encode(f"{LOGIN[0]}:{password}".encode()).decode()
            await site.secret(name, {closed.address: {"auth": auth}})
        async with site.control_plane():
            await site.describe("RUN true", baseImagePullSecret={"name": "missing"})
            assert "there is no Secret" in await site.says("spec.baseImagePullSecret.name")
            await site.describe("RUN true", baseImagePullSecret={"name": "wrong"})
            reason = await site.says("cannot be pulled")
            assert closed.address in reason
            assert "canary" not in reason
            await site.describe("RUN true", baseImagePullSecret={"name": "right"})
            assert site.has(await site.image())


@pytest.mark.long("nine builds, so that some are more than are kept")
async def test_after_many_builds_what_nobody_needs_is_gone_and_what_a_node_boots_or_was_told_to_boot_is_there(
    site: Site,
) -> None:
    await site.furnish(pushed_busybox(site.registry))
    images = [""]
    async with site.control_plane():
        for number in range(life.KEPT + 4):
            await site.describe(f"RUN echo {number} > /etc/number")
            images.append(await site.image(images[-1]))
            if number < 2:
                # As agents say it: one boots the first image, another was told to go to the second.
                note = {names.BOOTED_IMAGE: images[-1]} if number == 0 else {names.DESIRED_IMAGE: images[-1]}
                meta = {"name": f"node-{number}", "annotations": note}
                await site.cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        made = images[1:]
        needed = [*made[:2], *made[-life.KEPT - 1 :]]

        async def pruned() -> bool:
            return {life.image_of(each) for each in await site.builds()} == set(needed)

        await site.until(pruned, "the end of old builds")
        await site.until(
            lambda: asyncio.to_thread(lambda: [each for each in made if site.has(each)] == needed), "the registry"
        )
        await site.describe(f"RUN echo {life.KEPT + 2} > /etc/number")
        assert await site.image(made[-1]) == made[-2], "going back takes what is there"
        assert len(await site.builds()) == len(needed)


async def test_a_control_plane_that_ends_while_it_builds_begins_no_other_build_and_loses_none(site: Site) -> None:
    await site.furnish(pushed_busybox(site.registry))
    await site.describe("RUN sleep 3; echo one > /etc/number")
    uids: set[str] = set()

    async def exists() -> bool:
        return bool(await site.builds())

    async def is_building() -> bool:
        stated = [condition(each, "Building") or {} for each in await site.builds()]
        return any(each.get("status") == "True" for each in stated)

    async def runs() -> bool:
        (build,) = await site.builds()
        log = await site.cluster.get(MAPS, log_name(build["metadata"]["name"]), names.OPERATOR_NAMESPACE)
        return "RUN sleep" in str(log["data"][LOG])

    for moment in (exists, is_building, runs):
        async with site.control_plane():
            await site.until(moment, moment.__name__)
            uids |= {each["metadata"]["uid"] for each in await site.builds()}
    async with site.control_plane():
        assert site.has(await site.image())
        uids |= {each["metadata"]["uid"] for each in await site.builds()}
    async with site.control_plane():
        await site.image()
        uids |= {each["metadata"]["uid"] for each in await site.builds()}
    assert len(uids) == 1, "one build, begun anew, and no other"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def resized(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


@asynccontextmanager
async def slowed(target: LocalRegistry) -> AsyncIterator[LocalRegistry]:
    """A way to a registry on which everything takes its time."""

    async def carried(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(16384):
                await asyncio.sleep(0.02)
                sink.write(chunk)
                await sink.drain()
        sink.close()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.address.rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(carried(reader, back), carried(there, writer))

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as server:
        yield LocalRegistry(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")


@pytest.mark.long("two builds over a slow line, one of them pushed four times in vain")
async def test_a_full_registry_is_told_and_the_image_of_before_goes_on_and_a_slow_one_is_waited_for(
    embedded_server: Embedded, registry: LocalRegistry, small_disk: Path, tmp_path: Path
) -> None:
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    base = pushed_busybox(registry)
    with running_registry(program, small_disk) as filling:
        async with slowed(filling) as slow:
            site = Site(embedded_server, slow, tmp_path)
            await site.furnish(base, registry.address)
            async with site.control_plane():
                await site.describe("RUN echo small > /etc/size")
                first = await site.image()
                used = shutil.disk_usage(small_disk).used
                await asyncio.to_thread(resized, small_disk, f"{used // 1024 + 64}k")
                await site.describe("RUN dd if=/dev/urandom of=/etc/size bs=1024 count=2048")
                reason = await site.says("was not pushed")
                assert slow.address in reason
                assert await site.image() == first, "the image of before goes on"
                await asyncio.to_thread(resized, small_disk, "64m")
                note = {"metadata": {"annotations": {names.REBUILD: ""}}}
                await site.cluster.patch(CONFIGS, "worker", note, PatchType.MERGE)
                assert await site.image(first)


async def test_an_image_that_its_registry_lost_is_built_again_and_is_the_same(site: Site) -> None:
    await site.furnish(pushed_busybox(site.registry))
    async with site.control_plane():
        await site.describe("RUN echo lost > /etc/number")
        image = await site.image()
    path, digest = image.removeprefix(f"{site.registry.address}/").split("@")
    url = f"{site.registry.url}/v2/{path}/manifests/{digest}"
    (await asyncio.to_thread(httpx.delete, url, trust_env=False)).raise_for_status()
    assert not site.has(image)
    async with site.control_plane():
        await site.until(lambda: asyncio.to_thread(site.has, image), "the image again")
