"""An image by its digest in an attested pool: the wave waits for its values, a bare approval is enough, and then it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.attestation.values.from_images import set_name
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from tests.components import require_program, require_root
from tests.e2e.builds.test_image_story import Pool, worker_pool
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.lowering import lowered

pytestmark = pytest.mark.processes
HOME = "fastness-system"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


async def approve(pool: Pool, name: str, image: str) -> None:
    """What `kubectl apply` of two lines does: no measurement, no file, no command of ours."""
    meta = {"name": name, "namespace": HOME}
    approval = {
        "apiVersion": APPROVED_IMAGE.api_version,
        "kind": "ApprovedImage",
        "metadata": meta,
        "spec": {"image": image},
    }
    await pool.cluster.create(APPROVED_IMAGE.resource, approval)


async def values_of(pool: Pool, image: str) -> JsonObject:
    return await pool.cluster.get(REFERENCE_VALUE_SET.resource, set_name(image))


async def waits(pool: Pool, image: str) -> bool:
    message = str((await pool.says("Updating")).get("message"))
    return image in message and "values" in message


async def attested(pool: Pool) -> bool:
    machines = (await pool.cluster.list(MACHINE.resource)).items
    return all((condition(machine, "Attested") or {}).get("status") == "True" for machine in machines) and bool(
        machines
    )


async def built_image(pool: Pool, but: str = "") -> str:
    image = str(((await pool.described()).get("status") or {}).get("currentImagePullSpec") or "")
    return image if image != but else ""


async def test_approving_a_digest_sends_an_attested_pool_there_and_a_build_waits_for_its_own_approval(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    async with worker_pool(tmp_path, registry, "cluster") as pool:
        installed = pool.booted()
        await pool.until(lambda: waits(pool, pool.base))
        assert pool.booted() == installed
        await approve(pool, "base", pool.base)
        await pool.until(lambda: pool.settled(pool.base))
        await pool.until(lambda: attested(pool))

        await pool.describe("RUN echo mine > /etc/mine")
        await pool.until(lambda: built_image(pool))
        built = await built_image(pool)
        await pool.until(lambda: waits(pool, built))
        await pool.until(lambda: _has_values_that_do_not_count(pool, built))
        assert (await values_of(pool, built))["spec"]["pools"] == ["worker"]
        await asks_for_signatures(pool, f"{registry.address}/os/worker")
        assert pool.booted() == {pool.base}, "writing a MachineOSConfig makes no machine boot anything"
        await approve(pool, "built", built)
        await pool.until(lambda: pool.settled(built))
        await pool.until(lambda: attested(pool))
        assert (await values_of(pool, built))["spec"]["pools"] == ["worker"]

        await lowered(pool.cluster, {"images": {"approval": "BuiltHere", "pools": ["worker"]}})
        await pool.change("RUN echo other > /etc/mine")
        await pool.until(lambda: built_image(pool, but=built))
        second = await built_image(pool, but=built)
        await pool.until(lambda: pool.settled(second))
        await pool.until(lambda: attested(pool))
        approvals = (await pool.cluster.list(APPROVED_IMAGE.resource)).items
        (standing,) = [each for each in approvals if each["spec"]["image"] == second]
        assert annotations_of(standing)["fastness.dev/approved-by"] == "ConfidentialCluster.spec.images"


async def asks_for_signatures(pool: Pool, place: str) -> None:
    """What is built here must have been signed by this cluster, from now on."""
    keys = await pool.cluster.get(CONFIG_MAP.resource, "image-public-keys", HOME)
    signer = {"name": "this cluster", "key": keys["data"]["cosign.pub"], "images": [place]}
    images = {"spec": {"images": {"signers": [signer]}}}
    await pool.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", images, PatchType.MERGE)


async def _has_values_that_do_not_count(pool: Pool, image: str) -> bool:
    values = await values_of(pool, image)
    return bool(values["spec"]["values"]) and (condition(values, "Published") or {}).get("reason") == "NotApproved"
