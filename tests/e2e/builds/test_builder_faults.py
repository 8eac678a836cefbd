"""Whatever happens to the builder of this machine on its way: it ends right or says why, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.builds.errors import BuildFailed, TransferFailed
from fastness.builds.live import buildah, transfers, workshop
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.sandbox import drop_groups
from fastness.builds.live.workshop import BuildLimits
from fastness.builds.log import BuildLog
from fastness.machineconfig.live.registry_session import Session
from tests.bed.images import Image, busybox_image, push
from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import processes_of_builds, pulled, pushed, pushed_busybox, tags
from tests.e2e.builds.test_buildah import SMALL, access, order
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually

pytestmark = pytest.mark.processes
REGISTRY = Path("/usr/bin/docker-registry")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(REGISTRY, "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def groups() -> list[Path]:
    """The control groups of builds that have ended."""
    every = [*Path("/sys/fs/cgroup").glob("*/fastness-build-*"), *Path("/sys/fs/cgroup").glob("fastness-build-*")]
    return [each for each in every if not Path("/proc", each.name.rpartition("-")[2]).exists()]


def _without_groups() -> bool:
    drop_groups()
    return groups() == []


def nothing_is_left(directory: Path) -> None:
    """Neither files nor processes nor control groups of a build."""
    assert os.listdir(directory) == []
    eventually(lambda: not processes_of_builds(directory), "the end of every process of the build")
    # Builds of other tests end as well, at any moment.
    eventually(_without_groups, "the end of the control groups")


# ------------------------------------------------------------ killed

Around = Callable[..., Any]


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _before(there: Around) -> Around:
    def ends(*_: object, **__: object) -> None:
        _killed()

    return ends


def _after(there: Around) -> Around:
    async def ends(*given: Any, **named: Any) -> None:
        await there(*given, **named)
        _killed()

    return ends


def _after_plain(there: Around) -> Around:
    def ends(*given: Any) -> None:
        there(*given)
        _killed()

    return ends


STEPS: dict[str, tuple[object, str, Callable[[Around], Around]]] = {
    "nothing is pulled yet": (transfers, "pull", _before),
    "layers are pulled, and the image is not written": (transfers, "write_base", _before),
    "everything is laid out": (workshop, "write_context", _after_plain),
    "the Containerfile runs": (workshop, "require_space", _before),
    "it was built, and nobody looked at it": (workshop, "build", _after),
    "it was read, and nothing is pushed": (transfers, "push", _before),
    "layers are pushed, and nobody named the image": (Session, "publish", _before),
    "it is in the registry, and nobody was told": (Session, "publish", _after),
}


def built_by_somebody_who_is_killed(directory: Path, registry: LocalRegistry, base: str, step: str) -> None:
    """A process of its own builds, and is no more at this step; what it runs goes with it."""
    whose, name, around = STEPS[step]
    child = os.fork()
    if child == 0:
        try:
            setattr(whose, name, around(getattr(whose, name)))
            if whose is workshop and name == "require_space":
                setattr(buildah, "partial", lambda *_: lambda: None)  # noqa: B010 - it looks while it pulls, too
            asyncio.run(Buildah(directory, SMALL).build(order(registry, base, LAYER, "worker-k"), BuildLog()))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, step
    eventually(lambda: not processes_of_builds(directory), f"the end of what was run when {step}")


LAYER = "RUN echo mine > /etc/mine; sleep 0.7"


def test_a_builder_that_is_killed_at_any_step_ends_right_when_it_begins_anew(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    base = pushed_busybox(registry)
    directory = tmp_path / "builds"
    for step in STEPS:
        built_by_somebody_who_is_killed(directory, registry, base, step)
        assert os.listdir(directory) == ["worker-k"], step
        assert ("worker-k" in tags(registry, "os/worker")) == (step == list(STEPS)[-1]), "nothing claims success"
    # Meanwhile somebody moved the tag of the base to another image: a digest is what is built on.
    push(registry.url, replace(busybox_image(Path("/bin/busybox")), labels=(("moved", "yes"),)))
    image = asyncio.run(Buildah(directory, SMALL).build(order(registry, base, LAYER, "worker-k"), BuildLog()))
    files, _, layers = pulled(registry, image)
    assert files["etc/mine"] == b"mine\n"
    assert layers[0] == pulled(registry, base)[2][0]
    nothing_is_left(directory)


async def test_what_nobody_wants_after_a_kill_is_taken_away(registry: LocalRegistry, tmp_path: Path) -> None:
    base = pushed_busybox(registry)
    await asyncio.to_thread(
        built_by_somebody_who_is_killed, tmp_path, registry, base, "layers are pulled, and the image is not written"
    )
    assert os.listdir(tmp_path) == ["worker-k"]
    await Buildah(tmp_path, SMALL).forget("worker-k")
    await Buildah(tmp_path, SMALL).forget("worker-that-never-was")
    nothing_is_left(tmp_path)


# ------------------------------------------------------------ without end, without room


async def test_a_containerfile_that_never_ends_is_ended_and_leaves_nothing(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    limits = replace(SMALL, seconds=4)
    layer = "RUN trap '' TERM INT HUP; echo begun; while true; do sleep 2147483647; done"
    log = BuildLog()
    with pytest.raises(BuildFailed, match="the build did not end within 4 seconds"):
        await Buildah(tmp_path, limits).build(order(registry, pushed_busybox(registry), layer, "worker-e"), log)
    assert "begun" in log.text
    assert "worker-e" not in tags(registry, "os/worker")
    await asyncio.to_thread(nothing_is_left, tmp_path)


async def test_a_registry_that_is_full_takes_nothing_and_takes_it_later(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    base = pushed_busybox(registry)
    with small_disk(tmp_path / "full" / "storage", "3m") as disk, running_registry(REGISTRY, tmp_path / "full") as full:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * (2800 * 1024))
        asking = order(registry, base, "RUN head -c 400000 /dev/urandom > /etc/mine", "worker-r")
        rights = replace(access(registry), settings=None)
        asking = replace(asking, target=f"{full.address}/os/worker:worker-r", push=access(full))
        assert rights is not None
        builder = Buildah(tmp_path / "builds", SMALL)
        with pytest.raises(TransferFailed, match=r"worker-r was not pushed: .*it answered 5\d\d") as failure:
            await builder.build(asking, BuildLog())
        assert failure.value.pushing
        assert not failure.value.absent
        assert tags(full, "os/worker") == []
        ballast.unlink()
        image = await builder.build(asking, BuildLog())
        await builder.require(image, access(full))
        await asyncio.to_thread(nothing_is_left, tmp_path / "builds")


def bomb(path: str, megabytes: int) -> Image:
    """An image with a shell and a file that is small only while it is packed."""
    image = busybox_image(Path("/bin/busybox"))
    sink = io.BytesIO(image.layer)
    with tarfile.open(fileobj=sink, mode="a", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("usr/big")
        entry.size = megabytes * 1024**2
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return replace(image, path=path, layer=sink.getvalue())


async def test_a_base_that_unpacks_to_more_than_the_disk_fails_and_leaves_the_disk_as_it_was(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    base = pushed(registry, bomb("bed/bomb", 96))
    with small_disk(tmp_path / "disk", "48m") as disk:
        with pytest.raises(BuildFailed, match=r"no space left on device|less than \d+ bytes were left"):
            await Buildah(disk / "builds", SMALL).build(order(registry, base, "RUN true", "worker-d"), BuildLog())
        await asyncio.to_thread(nothing_is_left, disk / "builds")
        assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 44 * 1024**2
    assert "worker-d" not in tags(registry, "os/worker")


async def test_a_pull_leaves_the_room_that_others_need(registry: LocalRegistry, tmp_path: Path) -> None:
    """The vault and the store of the control plane are on that disk, too."""
    body = os.urandom(6 * 1024**2)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        entry = tarfile.TarInfo("noise")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    base = pushed(registry, replace(busybox_image(Path("/bin/busybox")), path="bed/noise", layer=sink.getvalue()))
    with small_disk(tmp_path / "disk", "8m") as disk:
        limits = replace(SMALL, free=4 * 1024**2, names=0)
        with pytest.raises(BuildFailed, match="less than 4194304 bytes were left on the disk"):
            await Buildah(disk / "builds", limits).build(order(registry, base, "RUN true", "worker-p"), BuildLog())
        assert os.listdir(disk / "builds") == []


async def test_a_build_that_makes_files_without_end_ends_before_nobody_else_can_make_one(
    registry: LocalRegistry, tmp_path: Path
) -> None:
    base = pushed_busybox(registry)
    place = tmp_path / "disk"
    with small_disk(place, "64m,nr_inodes=6000") as disk:
        limits = BuildLimits(seconds=60, processes=200, memory=1024**3, file=64 * 1024**2, free=1, names=2000)
        layer = "RUN mkdir /many; i=0; while [ $i -lt 3500 ]; do i=$((i+1)); : > /many/$i; done; sleep 5"
        with pytest.raises(BuildFailed, match="less than 2000 more files could be made"):
            await Buildah(disk / "builds", limits).build(order(registry, base, layer, "worker-i"), BuildLog())
        await asyncio.to_thread(nothing_is_left, disk / "builds")
