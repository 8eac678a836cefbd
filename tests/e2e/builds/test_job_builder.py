"""Builds in Jobs: the entry point of their pods as processes, real buildah and registry, the embedded API."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from fastness.builds import job
from fastness.builds.build_objects import NAMESPACE
from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import BuildInputs, ImageFile
from fastness.builds.job import JobSettings, job_name
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.builder import Order
from fastness.builds.live.job_builder import JobBuilder
from fastness.builds.live.workshop import REMOVED, BuildLimits, packed
from fastness.builds.log import BuildLog
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.kubernetes.core import NAMESPACE as NAMESPACES
from fastness.kinds.kubernetes.native import JOB
from fastness.kube.port import Scope
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.runtime.clock import SystemClock
from tests.components import require_program, require_root
from tests.e2e.agent.test_container_images import LOGIN
from tests.e2e.builds.registry_images import processes_of_builds, pulled, pushed_busybox
from tests.e2e.builds.standin_jobs import StandInJobs, standing_in
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE, eventually
from tests.unit.machineconfig.render.registries.build import image, settings

pytestmark = pytest.mark.processes
HOW = JobSettings("ghcr.io/fastness/fastness-builder:1")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
async def jobs(embedded_server: Embedded, tmp_path: Path) -> AsyncIterator[StandInJobs]:
    """Somebody who runs Jobs on the embedded API."""
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await embedded_server.cluster.create(NAMESPACES.resource, place)
    async with standing_in(embedded_server.cluster, tmp_path / "pods") as running:
        yield running


def builder(jobs: StandInJobs) -> JobBuilder:
    return JobBuilder(jobs.cluster, jobs, SystemClock(), HOW)


async def built(jobs: StandInJobs, asking: Order, log: BuildLog) -> str:
    """The image of an order, in good time."""
    async with asyncio.timeout(PATIENCE):
        return await builder(jobs).build(asking, log)


def order(registry: LocalRegistry, layer: str, name: str = "worker-1", uid: str = "uid-1", *, base: str = "") -> Order:
    rights = RegistryAccess(settings(image(insecure=[registry.address])))
    files = (ImageFile("/etc/mine", b"mine\n", 0o640), ImageFile("/etc/localtime", link="/usr/share/zone"))
    made_of = BuildInputs(base or pushed_busybox(registry), layer, files)
    return Order(name, made_of, f"{registry.address}/os/worker:{name}", rights, rights, {"a": "b"}, uid)


async def reached(holds: Callable[[], bool], what: str) -> None:
    """Wait beside the loop."""
    await asyncio.to_thread(eventually, holds, what)


async def left(jobs: StandInJobs) -> list[str]:
    """What of builds is in the cluster."""
    kinds = (JOB.resource, CONFIG_MAP.resource, SECRET.resource)
    objects = [each for kind in kinds for each in (await jobs.cluster.list(kind, Scope(NAMESPACE))).items]
    return sorted(each["metadata"]["name"] for each in objects if each["metadata"]["name"] != "kube-root-ca.crt")


@pytest.mark.row("003-52")
@pytest.mark.row("003-56")
async def test_a_job_builds_what_this_machine_builds_and_leaves_nothing(
    registry: LocalRegistry, jobs: StandInJobs, tmp_path: Path
) -> None:
    log = BuildLog()
    image_of = await built(jobs, order(registry, "RUN echo hello; cat /etc/mine > /etc/seen"), log)
    files, config, layers = pulled(registry, image_of)
    assert (files["etc/mine"], files["etc/seen"], files["etc/localtime"]) == (b"mine\n", b"mine\n", b"/usr/share/zone")
    assert (len(layers), config["config"]["Labels"]["a"]) == (3, "b")
    assert "hello" in log.text
    assert "T00:00:00Z" not in log.text
    assert await left(jobs) == [
        "base-worker-1",
        "build-worker-1",
        "containerfile-worker-1",
        "context-worker-1",
        "final-worker-1",
    ]
    assert await built(jobs, order(registry, "RUN echo hello; cat /etc/mine > /etc/seen"), BuildLog()) == image_of
    here = await Buildah(tmp_path / "here", BuildLimits(free=0)).build(
        order(registry, "RUN echo hello; cat /etc/mine > /etc/seen"), BuildLog()
    )
    assert here == image_of, "the same inputs are the same image, wherever they are built"
    assert jobs.pods == ["build-worker-1-0"], "who asks again, as after a restart, gets the Job that is there"
    await builder(jobs).forget("worker-1")
    assert await left(jobs) == []


async def test_a_restart_loses_no_build_and_begins_none_and_one_that_nobody_wants_ends(
    registry: LocalRegistry, jobs: StandInJobs, tmp_path: Path
) -> None:
    asking = order(registry, "RUN echo begun; sleep 2147483647")
    first = BuildLog()
    work = asyncio.ensure_future(builder(jobs).build(asking, first))
    await reached(lambda: "begun" in first.text.replace("echo begun", ""), "the log of the build")
    assert first.progress.startswith("step "), "its log is live"
    work.cancel()
    await asyncio.wait((work,))
    again, second = BuildLog(), builder(jobs)
    work = asyncio.ensure_future(second.build(asking, again))
    await reached(lambda: "begun" in again.text.replace("echo begun", ""), "its log again")
    assert jobs.pods == ["build-worker-1-0"]
    await second.forget("worker-1")
    with pytest.raises(BuildFailed, match="deleted by somebody else"):
        await work
    await reached(lambda: not processes_of_builds(tmp_path), "the end of every process of the build")
    assert await left(jobs) == []


@pytest.mark.row("003-54")
async def test_a_containerfile_that_fails_is_not_tried_again_and_says_where(
    registry: LocalRegistry, jobs: StandInJobs
) -> None:
    log = BuildLog()
    with pytest.raises(BuildFailed, match=r"(?s)buildah ended with .*oh dear"):
        await built(jobs, order(registry, "RUN echo oh dear; false"), log)
    assert jobs.pods == ["build-worker-1-0"]
    assert "oh dear" in log.text
    assert job_name("worker-1") in await left(jobs), "kept for whoever looks"
    other = await built(jobs, order(registry, "RUN true", uid="uid-2"), BuildLog())
    assert pulled(registry, other)[2], "the Job of a build of that name before it made way"


async def test_a_base_that_is_gone_is_asked_for_four_times_and_told(registry: LocalRegistry, jobs: StandInJobs) -> None:
    gone = f"{registry.address}/bed/busybox@sha256:{'0' * 64}"
    with pytest.raises(BuildFailed, match=r"the base image .* cannot be pulled: "):
        await built(jobs, order(registry, "RUN true", "worker-g", base=gone), BuildLog())
    assert len(jobs.pods) == 4


async def test_a_push_that_is_denied_is_told_and_no_credential_is_in_log_or_reason(
    registry: LocalRegistry, jobs: StandInJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "RETRIES", 1)
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    (tmp_path / "r").mkdir()
    with running_registry(program, tmp_path / "r", LOGIN[2]) as closed:
        auth = base64.b64encode(f"{LOGIN[0]}:wrong-canary-password".encode()).decode()
        secret = json.dumps({"auths": {closed.address: {"auth": auth}}}).encode()
        rights = RegistryAccess(settings(image(insecure=[closed.address, registry.address])), secret)
        made_of = BuildInputs(pushed_busybox(registry), "RUN env; cat /proc/*/environ /way/* /build/../way/*; true")
        log = BuildLog()
        with pytest.raises(BuildFailed, match=r"not pushed: .*was not pushed: ") as failure:
            await built(
                jobs, Order("worker-d", made_of, f"{closed.address}/os/d:d", rights, rights, {"a": "b"}, "uid-d"), log
            )
    assert len(jobs.pods) == 2
    assert failure.value.pushing, "it is counted as a push that failed"
    for text in (log.text, failure.value.message):
        assert "canary" not in text
        assert auth not in text


async def test_without_a_sandbox_the_build_is_refused_with_the_way_out(registry: LocalRegistry, tmp_path: Path) -> None:
    """As in a pod that may not make namespaces: without capabilities."""
    setpriv = require_program(Path("/usr/bin/setpriv"), "util-linux")
    root = tmp_path
    for name in ("order", "dev", "work/build/context/root", "work/build/out"):
        (root / name).mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "empty/Containerfile").write_text("FROM oci:/build/base:base\n")
    (root / "empty" / REMOVED).write_text("[]")
    (root / "order/context.tar.gz").write_bytes(packed(root / "empty"))
    process = await asyncio.create_subprocess_exec(
        setpriv, "--bounding-set=-all,+chown,+dac_override", "--inh-caps=-all", sys.executable, "-m", "fastness.builds.live.pod",
        "build", env={**os.environ, "FASTNESS_BUILD_ROOT": str(root)},
    )  # fmt: skip
    assert await process.wait() == 4
    error = json.loads((root / "dev/termination-log").read_text())["error"]
    assert "the sandbox of builds cannot be made in this pod" in error
    assert "builds.userNamespaces=false" in error
