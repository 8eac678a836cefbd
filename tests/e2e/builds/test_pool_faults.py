"""What can go wrong while a pool gets its image: the old image keeps booting, nothing claims success, nothing is left behind."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fastness.app.embedded import PlaneOptions, running
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import condition
from fastness.kube.errors import Invalid
from tests.bed.images import MANIFEST, Image, busybox_image, push
from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import processes_of_builds, pushed_busybox, tags
from tests.e2e.builds.test_image_story import Pool, _building, _builds, _degraded, _says
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually

pytestmark = pytest.mark.processes
MACHINES = 2


@pytest.fixture
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write, and that is empty."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry"), deletes=True) as started:
        yield started


@asynccontextmanager
async def pool_of_two(state: Path, registry: LocalRegistry, base: str) -> AsyncIterator[Pool]:
    """A life of the control plane, with what an earlier one left."""
    async with running(PlaneOptions(state, machines=MACHINES, profile="containers")) as plane:
        yield Pool(plane, registry, base)


def is_in(registry: LocalRegistry, image: str) -> bool:
    """Whether anybody can still pull an image."""
    path, digest = image.removeprefix(f"{registry.address}/").split("@")
    url = f"{registry.url}/v2/{path}/manifests/{digest}"
    return httpx.head(url, headers={"accept": MANIFEST}, trust_env=False).is_success


async def image_of(pool: Pool) -> str:
    """The image of the MachineOSConfig, whoever runs it."""
    return str(((await pool.described()).get("status") or {}).get("currentImagePullSpec") or "")


async def has_image(pool: Pool, but: str = "") -> bool:
    return await image_of(pool) not in ("", but)


async def is_half(pool: Pool, old: str, new: str) -> bool:
    return pool.booted() == {old, new}


async def nothing_is_left(pool: Pool, state: Path) -> None:
    """Of builds and their logs, in the cluster and on the machine of the control plane."""
    await pool.until(lambda: _builds(pool, 0))
    maps = (await pool.cluster.list(CONFIG_MAP.resource)).items
    assert [
        each["metadata"]["name"] for each in maps if "MachineOSBuild" in str(each["metadata"].get("ownerReferences"))
    ] == []
    eventually(lambda: not processes_of_builds(state), "the end of every process of a build")
    assert os.listdir(state / "builds") == []


async def test_a_second_description_and_a_password_build_nothing_and_a_build_that_is_deleted_leaves_nothing(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with pool_of_two(tmp_path / "state", registry, pushed_busybox(registry)) as pool:
        await pool.prepare()
        await pool.until(lambda: pool.settled(pool.base))
        await _secret_with_a_password(pool)
        await pool.describe("RUN echo 'correct horse battery' > /etc/password", secret="named")
        await pool.until(lambda: _degraded(pool, "BuildFailed"))
        assert await _says(pool, "ImageBuildDegraded", "the Containerfile holds a password of a registry")
        (refused,) = await pool.builds()
        assert "correct horse" not in json.dumps(refused)

        await pool.change("RUN sleep 2147483647")
        await pool.until(lambda: _building(pool))
        (running_build,) = await pool.builds()
        with pytest.raises(Invalid, match="can only have one MachineOSConfig per MachineConfigPool"):
            await _second(pool, "a-second-one")
        assert [each["metadata"]["uid"] for each in await pool.builds()] == [running_build["metadata"]["uid"]]

        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "worker")
        await nothing_is_left(pool, tmp_path / "state")
        await pool.until(lambda: pool.settled(pool.base))
        assert (await pool.says("ImageBuildDegraded"))["status"] == "False"
        assert [tag for tag in tags(registry, "os/worker") if tag.startswith("worker-")] == []


async def _secret_with_a_password(pool: Pool) -> None:
    auth = base64.b64encode(b"robot:correct horse battery").decode()
    secret = json.dumps({"auths": {"elsewhere.example": {"auth": auth}}}).encode()
    await pool.cluster.create(SECRET.resource, {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "named", "namespace": names.OPERATOR_NAMESPACE},
        "data": {".dockerconfigjson": base64.b64encode(secret).decode()},
    })  # fmt: skip


async def _second(pool: Pool, name: str) -> None:
    """Another MachineOSConfig for the same pool, under a name that comes first."""
    first = await pool.described()
    meta: JsonObject = {"name": name}
    await pool.cluster.create(
        MACHINE_OS_CONFIG.resource,
        {"apiVersion": first["apiVersion"], "kind": first["kind"], "metadata": meta, "spec": first["spec"]},
    )


async def test_a_control_plane_that_is_replaced_in_the_middle_goes_on_and_a_deletion_half_way_takes_all_nodes_back(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    state, base = tmp_path / "state", pushed_busybox(registry)
    async with pool_of_two(state, registry, base) as pool:
        await pool.prepare()
        await pool.until(lambda: pool.settled(base))
        await pool.describe("RUN sleep 3; echo first > /etc/mine")
        await pool.until(lambda: _building(pool))
        (ordered,) = await pool.builds()
    eventually(lambda: not processes_of_builds(state), "the end of a build whose control plane ended")
    assert tags(registry, "os/worker") == [], "nothing was pushed"

    async with pool_of_two(state, registry, base) as pool:
        assert pool.booted() == {base}
        await pool.until(lambda: has_image(pool))
        first = await image_of(pool)
        (built,) = await pool.builds()
        assert built["metadata"]["uid"] == ordered["metadata"]["uid"], "it is the build that was asked for"
        await pool.until(lambda: is_half(pool, base, first))

    async with pool_of_two(state, registry, base) as pool:
        await pool.until(lambda: pool.settled(first))
        assert [each["metadata"]["uid"] for each in await pool.builds()] == [ordered["metadata"]["uid"]]
        # The tag of what was built is anybody's to move: machines and objects name the digest.
        push(registry.url, _under(str(ordered["metadata"]["name"])))
        await pool.change("RUN echo second > /etc/mine")
        await pool.until(lambda: has_image(pool, but=first))
        second = await image_of(pool)
        await pool.until(lambda: is_half(pool, first, second))
        await pool.cluster.delete(MACHINE_OS_CONFIG.resource, "worker")
        await pool.until(lambda: pool.settled(base))
        await nothing_is_left(pool, state)
        assert [is_in(registry, image) for image in (first, second)] == [False, False], "nobody boots them any more"
        assert is_in(registry, base)
        assert (condition(await pool.get(), "Degraded") or {}).get("status") == "False"


def _under(build: str) -> Image:
    """Another image under the tag of a build."""
    return replace(busybox_image(Path("/bin/busybox")), path="os/worker", tag=build, labels=(("moved", "yes"),))
