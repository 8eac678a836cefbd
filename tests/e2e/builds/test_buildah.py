"""The builder of this machine on real parts: buildah, a registry, and Containerfiles that mean no good."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.builds.errors import BuildFailed, TransferFailed
from fastness.builds.inputs import BuildInputs, ImageFile
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.builder import Order
from fastness.builds.live.sandbox import FIRST_USER, USERS
from fastness.builds.live.workshop import BuildLimits
from fastness.builds.log import BuildLog
from fastness.machineconfig.streams.access import RegistryAccess
from tests.components import require_program, require_root
from tests.e2e.agent.test_container_images import LOGIN
from tests.e2e.builds.registry_images import processes_of_builds, pulled, pushed_busybox, tags
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually
from tests.unit.machineconfig.render.registries.build import image, settings

pytestmark = pytest.mark.processes
CANARY = "canary-5e1f-never-in-an-image"
SMALL = BuildLimits(seconds=120, processes=200, memory=1024**3, file=64 * 1024**2, free=0)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def base(registry: LocalRegistry) -> str:
    """An image with a shell, by digest."""
    return pushed_busybox(registry)


def access(registry: LocalRegistry, credentials: bytes = b"") -> RegistryAccess:
    return RegistryAccess(settings(image(insecure=[registry.address])), credentials)


def order(registry: LocalRegistry, base: str, layer: str = "", name: str = "worker-1", *files: ImageFile) -> Order:
    rights = access(registry)
    labels = {"machineconfigpool": "worker", "machineconfig": "rendered-worker-1"}
    return Order(name, BuildInputs(base, layer, files), f"{registry.address}/os/worker:{name}", rights, rights, labels)


@pytest.mark.row("003-01")
@pytest.mark.row("003-05")
@pytest.mark.row("003-56")
async def test_base_config_and_what_people_add_are_layers_of_one_image(
    registry: LocalRegistry, base: str, tmp_path: Path
) -> None:
    config = ImageFile("/etc/chrony.conf", b"server a\n", 0o640), ImageFile("/etc/localtime", link="/usr/share/zone")
    layer = "FROM configs AS final\nRUN echo mine > /etc/mine && cat /etc/chrony.conf > /etc/seen\n"
    asking = order(registry, base, layer, "worker-a", *config)
    first, again = [await Buildah(tmp_path / name, SMALL).build(asking, BuildLog()) for name in "ab"]
    assert first == again, "the same inputs are the same image"
    files, settings_of, layers = pulled(registry, first)
    assert (files["etc/chrony.conf"], files["etc/mine"], files["etc/seen"]) == (b"server a\n", b"mine\n", b"server a\n")
    assert files["etc/localtime"] == b"/usr/share/zone"
    assert "bin/busybox" in files
    assert len(layers) == 3
    assert layers[0] in pulled(registry, base)[2], "the base is pushed as it was pulled"
    assert settings_of["config"]["Labels"]["machineconfigpool"] == "worker"
    await Buildah(tmp_path, SMALL).require(first, access(registry))


@pytest.mark.row("003-54")
async def test_a_containerfile_that_fails_says_where_and_leaves_nothing(
    registry: LocalRegistry, base: str, tmp_path: Path
) -> None:
    builder, log = Buildah(tmp_path, SMALL), BuildLog()
    with pytest.raises(BuildFailed, match=r"(?s)ended with .*oh dear"):
        await builder.build(order(registry, base, "RUN echo oh dear; false", "worker-f"), log)
    assert os.listdir(tmp_path) == []
    assert "oh dear" in log.text
    assert log.progress.startswith("step ")
    assert "worker-f" not in tags(registry, "os/worker")
    with pytest.raises(TransferFailed) as failure:
        await builder.require(f"{registry.address}/os/worker@sha256:{'0' * 64}", access(registry))
    assert failure.value.absent


HOSTILE = """RUN cat {vault} /build/../{vault} /proc/1/root{vault}; find / -name '*canary*' 2>/dev/null; true
RUN wget -q -O - http://{registry}/v2/ && echo REACHED; wget -q -O - http://127.0.0.1:{port}/v2/ && echo REACHED; true
RUN id -u > /etc/whoami; cat /proc/self/uid_map >> /etc/whoami; ls / /build /proc > /etc/listing 2>&1; mount >> /etc/listing; true
"""


async def test_a_build_reads_no_vault_and_reaches_nobody(registry: LocalRegistry, base: str, tmp_path: Path) -> None:
    vault = tmp_path / "state" / "vault" / "canary.key"
    vault.parent.mkdir(parents=True)
    vault.write_text(CANARY)
    vault.chmod(0o644)  # not permissions keep it away: it is not there
    layer = HOSTILE.format(vault=vault, registry=registry.address, port=registry.address.rpartition(":")[2])
    builder = Buildah(tmp_path / "state" / "builds", SMALL)
    output = BuildLog()
    built = await builder.build(order(registry, base, layer, "worker-h"), output)
    files = pulled(registry, built)[0]
    log = output.text
    assert not any(CANARY.encode() in content for content in files.values())
    assert CANARY not in log
    assert "REACHED" not in log.replace("echo REACHED", "")
    assert files["etc/whoami"].split() == [b"0", b"0", str(FIRST_USER).encode(), str(USERS).encode()]
    assert str(tmp_path).encode() not in files["etc/listing"]


async def test_a_build_that_forks_without_end_ends_and_leaves_no_process(
    registry: LocalRegistry, base: str, tmp_path: Path
) -> None:
    bomb = "RUN b() { b | b & }; b; sleep 2147483647"
    limits = BuildLimits(seconds=6, processes=200, memory=1024**3, file=64 * 1024**2, free=0)
    with pytest.raises(BuildFailed, match=r"did not end within 6 seconds|ended with"):
        await Buildah(tmp_path, limits).build(order(registry, base, bomb, "worker-b"), BuildLog())
    await asyncio.to_thread(
        eventually, lambda: not processes_of_builds(tmp_path), "the end of every process of the build"
    )


async def test_a_build_that_writes_without_end_fails(registry: LocalRegistry, base: str, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="buildah ended with"):
        await Buildah(tmp_path, SMALL).build(
            order(registry, base, "RUN dd if=/dev/zero of=/big bs=1M count=100", "worker-x"), BuildLog()
        )


async def test_credentials_are_for_transfers_and_in_no_layer_and_no_log(
    tmp_path: Path, base: str, registry: LocalRegistry
) -> None:
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    user, password, line = LOGIN
    (tmp_path / "r").mkdir()
    with running_registry(program, tmp_path / "r", line) as closed:
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        secret = json.dumps({"auths": {closed.address: {"auth": auth}}}).encode()
        rights = RegistryAccess(settings(image(insecure=[closed.address, registry.address])), secret)
        made_of = BuildInputs(base, "RUN env > /etc/env; find / -xdev -type f > /etc/all 2>/dev/null; true")
        log = BuildLog()
        target = Order("worker-c", made_of, f"{closed.address}/os/worker:worker-c", rights, rights, {"a": "b"})
        built = await Buildah(tmp_path / "b", SMALL).build(target, log)
        with pytest.raises(TransferFailed, match="wants credentials") as failure:
            await Buildah(tmp_path / "b", SMALL).require(built, access(closed))
        assert not failure.value.absent, "who may not look cannot say that it is gone"
        await Buildah(tmp_path / "b", SMALL).require(built, rights)
        storage = [each.read_bytes() for each in (tmp_path / "r" / "storage").rglob("data")]
        unpacked = [gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each for each in storage]
    logs = [log.text.encode()]
    assert storage
    assert not any(word.encode() in text for text in (*unpacked, *logs) for word in (password, auth))


async def test_a_state_directory_may_be_named_from_where_one_stands(
    registry: LocalRegistry, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `make up` names it."""
    monkeypatch.chdir(tmp_path)
    builder = Buildah(Path("state/builds"), SMALL)
    assert await builder.obstacle() == ""
    await builder.require(
        await builder.build(order(registry, base, "RUN echo mine > /etc/mine\n"), BuildLog()), access(registry)
    )


async def test_without_the_program_the_builder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await Buildah(tmp_path).obstacle()).startswith("buildah is not installed here: install")
    monkeypatch.undo()
    if os.geteuid() == 0:
        assert await Buildah(tmp_path).obstacle() == ""
