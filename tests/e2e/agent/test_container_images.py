"""One contract for images of container runtimes: a real containerd with a real registry, and the one of virtual machines."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.host.containerd_images import CREDENTIALS, HOSTS, ContainerdImages
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.memory_images import MemoryImages
from fastness.agent.host.process import ask
from tests.bed.images import MANIFEST
from tests.components import require_program
from tests.e2e.machineconfig.local_containerd import ctr, running_containerd
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry

pytestmark = pytest.mark.processes
# bcrypt of a password that is no secret, made once.
LOGIN = ("pins", "open sesame", "pins:$2b$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n")
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a containerd of our own listens."""
    with running_containerd(tmp_path_factory.mktemp("containerd")) as address:
        yield address


@dataclass
class Runtime:
    """A container runtime, images that its registry has and one that it does not have, and how one goes away."""

    images: ContainerImages
    there: tuple[str, str]
    gone: str
    remove: Callable[[str], None]


def _machine(tmp_path: Path, *registries: LocalRegistry) -> RootedFiles:
    """The files of a machine that may ask these registries without TLS."""
    for registry in registries:
        hosts = tmp_path / HOSTS.removeprefix("/") / registry.address
        hosts.mkdir(parents=True)
        (hosts / "hosts.toml").write_text(f'[host."{registry.url}"]\ncapabilities = ["pull", "resolve"]\n')
    return RootedFiles(tmp_path)


@pytest.fixture(params=["memory", "containerd"])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    """One of the two, with nothing in it."""
    if request.param == "memory":
        names = [f"quay.example/a/{number}@sha256:{number:064d}" for number in range(3)]
        images = MemoryImages(sizes={names[0]: 10, names[1]: 20})
        return Runtime(images, (names[0], names[1]), names[2], lambda name: images._images.__delitem__(name))
    registry, socket = request.getfixturevalue("registry"), request.getfixturevalue("socket")
    unique = request.node.name.partition("[")[0].replace("_", "")[:40]
    names = [f"{registry.address}/{unique}/{text}@{registry.push(f'{unique}/{text}', '1', text)}" for text in "ab"]
    gone = f"{registry.address}/{unique}/gone@sha256:{'0' * 64}"

    def remove(name: str) -> None:
        assert ctr(socket, "-n", "k8s.io", "images", "rm", name).returncode == 0

    made = ContainerdImages(_machine(tmp_path, registry), "linux/amd64", socket)
    return Runtime(made, (names[0], names[1]), gone, remove)


async def test_an_image_is_here_once_it_was_pulled_and_pinned_once_it_was_pinned(runtime: Runtime) -> None:
    first, second = runtime.there
    assert dict(await runtime.images.look([first, second])) == {}
    await runtime.images.pull(first)
    assert dict(await runtime.images.look([first, second])) == {first: False}
    await runtime.images.pull(second)
    await runtime.images.pin([first])
    assert dict(await runtime.images.look([first, second])) == {first: True, second: False}
    await runtime.images.pull(first)  # once more takes no pin away
    await runtime.images.pin([first])
    assert (await runtime.images.look([first]))[first]


async def test_pinning_others_lets_the_first_ones_go(runtime: Runtime) -> None:
    first, second = runtime.there
    for name in runtime.there:
        await runtime.images.pull(name)
    await runtime.images.pin([first])
    await runtime.images.pin([second])
    assert dict(await runtime.images.look([first, second])) == {first: False, second: True}
    await runtime.images.pin([])
    assert dict(await runtime.images.look([first, second])) == {first: False, second: False}


async def test_an_image_that_its_registry_does_not_have_is_refused_by_name(runtime: Runtime) -> None:
    for ask_for in (runtime.images.size, runtime.images.pull):
        with pytest.raises(ImageFailure, match="not found") as refused:
            await ask_for(runtime.gone)
        assert runtime.gone in refused.value.message
    assert dict(await runtime.images.look([runtime.gone])) == {}


async def test_what_is_not_here_cannot_be_pinned(runtime: Runtime) -> None:
    with pytest.raises(ImageFailure, match="not found"):
        await runtime.images.pin([runtime.gone])


async def test_a_pinned_image_that_somebody_removes_is_no_longer_here(runtime: Runtime) -> None:
    name = runtime.there[0]
    await runtime.images.pull(name)
    await runtime.images.pin([name])
    runtime.remove(name)
    assert dict(await runtime.images.look([name])) == {}


async def test_the_size_is_known_before_the_pull(runtime: Runtime) -> None:
    sizes = [await runtime.images.size(name) for name in runtime.there]
    assert all(size > 0 for size in sizes)
    assert dict(await runtime.images.look(runtime.there)) == {}


async def test_an_image_for_several_platforms_has_the_size_of_the_one_for_this_machine(
    registry: LocalRegistry, socket: Path, tmp_path: Path
) -> None:
    wide = registry.push("several", "amd64", "x" * 3000)
    slim = registry.push("several", "arm64", "y")
    name = f"{registry.address}/several@{_together(registry, {'amd64': wide, 'arm64': slim})}"
    root = _machine(tmp_path, registry)
    sizes = [await ContainerdImages(root, f"linux/{arch}", socket).size(name) for arch in ("amd64", "arm64")]
    assert sizes[0] != sizes[1]
    with pytest.raises(ImageFailure, match="there is no image for linux/s390x"):
        await ContainerdImages(root, "linux/s390x", socket).size(name)


def _together(registry: LocalRegistry, images: dict[str, str]) -> str:
    """One name for images of several platforms; its digest."""
    with httpx.Client(base_url=registry.url, trust_env=False) as http:
        entries = []
        for arch, made in images.items():
            size = len(
                http.get(f"/v2/several/manifests/{made}", headers={"accept": MANIFEST}).raise_for_status().content
            )
            platform = {"os": "linux", "architecture": arch}
            entries.append({"mediaType": MANIFEST, "digest": made, "size": size, "platform": platform})
        body = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
        answer = http.put("/v2/several/manifests/all", content=body, headers={"content-type": INDEX}).raise_for_status()
    return str(answer.headers["docker-content-digest"])


async def test_the_containerd_of_debian_is_told_apart_because_it_would_not_keep_what_is_pinned(
    socket: Path, tmp_path: Path
) -> None:
    images = ContainerdImages(RootedFiles(tmp_path), "linux/amd64", socket)
    server = ctr(socket, "version").stdout.partition("Server:")[2].split()[1]
    major, minor, patch = (int(part.partition("~")[0].partition("+")[0]) for part in server.lstrip("v").split(".")[:3])
    old = (major, minor, patch) < (1, 6, 29)
    assert (f"containerd {major}.{minor}.{patch} does not keep pinned images" in await images.obstacle()) is old


async def test_a_private_registry_gets_the_password_of_the_machine_and_no_command_line_shows_it(
    socket: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user, password, line = LOGIN
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    storage = tmp_path_factory.mktemp("private")
    with running_registry(program, storage) as open_registry:
        made = open_registry.push("team/private", "1", "p")
    with running_registry(program, storage, line) as private:
        name = f"{private.address}/team/private@{made}"
        commands: list[str] = []

        async def noted(command: list[str], *, typed: str = "") -> bytes:
            commands.extend(command)
            return await ask(command, typed=typed)

        images = ContainerdImages(_machine(tmp_path, private), "linux/amd64", socket, noted)  # type: ignore[arg-type]
        with pytest.raises(ImageFailure, match="401"):
            await images.size(name)
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        place = tmp_path / CREDENTIALS.removeprefix("/")
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps({"auths": {private.address: {"auth": login}}}))
        assert await images.size(name) > 0
        await images.pull(name)
        assert dict(await images.look([name])) == {name: False}
        assert password not in commands


async def test_a_mirror_never_learns_the_password_of_the_registry_that_it_stands_in_for(
    registry: LocalRegistry, socket: Path, tmp_path: Path
) -> None:
    made = registry.push("team/mirrored", "1", "m")
    hosts = tmp_path / HOSTS.removeprefix("/") / "quay.example"
    hosts.mkdir(parents=True)
    (hosts / "hosts.toml").write_text(f'[host."{registry.url}"]\ncapabilities = ["pull", "resolve"]\n')
    place = tmp_path / CREDENTIALS.removeprefix("/")
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"auths": {"quay.example": {"auth": base64.b64encode(b"u:p").decode()}}}))
    typings: list[str] = []

    async def noted(command: list[str], *, typed: str = "") -> bytes:
        typings.append(typed)
        return await ask(command, typed=typed)

    images = ContainerdImages(RootedFiles(tmp_path), "linux/amd64", socket, noted)  # type: ignore[arg-type]
    name = f"quay.example/team/mirrored@{made}"
    assert await images.size(name) > 0
    await images.pull(name)
    assert dict(await images.look([name])) == {name: False}
    assert set(typings) == {""}


async def test_a_pull_from_a_registry_that_never_answers_ends_when_it_is_given_up(socket: Path, tmp_path: Path) -> None:
    """The program goes with the task: five of them for every attempt would fill the machine."""
    silent = await asyncio.start_server(lambda _reader, _writer: asyncio.sleep(3600), "127.0.0.1", 0)
    async with silent:
        address = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        images = ContainerdImages(_machine(tmp_path, LocalRegistry(address)), "linux/amd64", socket)
        name = f"{address}/team/slow@sha256:{'0' * 64}"
        pull = asyncio.create_task(images.pull(name))
        while not _programs(name):  # noqa: ASYNC110 - it is another process that is waited for
            await asyncio.sleep(0.02)
        pull.cancel()
        await asyncio.wait([pull])
        assert _programs(name) == []
        silent.close()
    shutil.rmtree(tmp_path / "etc")


def _programs(name: str) -> list[str]:
    """The processes with this word on their command line."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if name in words:
            lines.append(place.parent.name)
    return lines
