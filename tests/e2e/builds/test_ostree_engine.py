"""What was built here is deployed by the engine of bootc and rpm-ostree, into a sysroot that never boots: there, on, and back.

The programs themselves cannot be had; `ostree-ext`, the library that pulls and deploys beneath both, can (`tools/ostree`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fastness.builds.inputs import ImageFile
from fastness.builds.live.buildah import Buildah
from fastness.builds.log import BuildLog
from tests.bed.images import MANIFEST
from tests.components import require_program, require_root
from tests.e2e.builds.test_buildah import SMALL, order
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.soaking import in_soak
from tools.rust_engines_ostree import NoEngine, ensure

pytestmark = [
    pytest.mark.processes,
    *in_soak("the engine is built from source, minutes; programs stand in for bootc and rpm-ostree in `make test`"),
]
KERNEL = "6.1.0-test"
NAME = "fastness"


class Sysroot:
    """A directory with deployments, and the engine that makes them."""

    def __init__(self, place: Path, engine: Path, registry: LocalRegistry) -> None:
        self.place, self._engine = place / "sysroot", engine
        self._registry = registry
        settings = place / "home" / ".config" / "containers"
        settings.mkdir(parents=True)
        (settings / "registries.conf").write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n')
        self._env = {**os.environ, "HOME": str(place / "home")}
        self.place.mkdir()
        self.run("ostree", "admin", "init-fs", str(self.place))
        self.run("ostree", "admin", "os-init", f"--sysroot={self.place}", NAME)
        # A sysroot without a disk has no boot loader that could be told.
        self.run("ostree", f"--repo={self.place}/ostree/repo", "config", "set", "sysroot.bootloader", "none")

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self._env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def encapsulated(self, tree: Path) -> str:
        """A tree as the image that bases of such hosts are: an ostree commit in layers; by digest."""
        repository, name = self.place.parent / "repo", f"{self._registry.address}/os/base"
        self.run("ostree", f"--repo={repository}", "init", "--mode=bare-user")
        owner = ("--owner-uid=0", "--owner-gid=0")
        self.run("ostree", f"--repo={repository}", "commit", "-b", "base", f"--tree=dir={tree}", "--bootable", *owner)
        self.run(str(self._engine), "container", "encapsulate", f"--repo={repository}", "base", f"docker://{name}:1")
        answer = httpx.head(
            f"{self._registry.url}/v2/os/base/manifests/1", headers={"accept": MANIFEST}, trust_env=False
        )
        return f"{name}@{answer.raise_for_status().headers['docker-content-digest']}"

    def deploy(self, image: str) -> None:
        words = ("container", "image", "deploy", "--sysroot", str(self.place), "--stateroot", NAME)
        self.run(str(self._engine), *words, "--imgref", f"ostree-unverified-registry:{image}")

    def first(self) -> Path:
        """The deployment that the boot loader would start: the one that the first entry names."""
        entries = sorted((self.place / "boot/loader/entries").glob("*.conf"))
        options = next(line for line in entries[-1].read_text().splitlines() if line.startswith("options "))
        link = next(word.removeprefix("ostree=") for word in options.split() if word.startswith("ostree="))
        return (self.place / link.lstrip("/")).resolve()

    def origin(self) -> str:
        """What the origin of that deployment says that it came from."""
        return self.first().with_name(f"{self.first().name}.origin").read_text()


@pytest.fixture
def sysroot(tmp_path: Path) -> Iterator[Sysroot]:
    require_program(Path("/usr/bin/ostree"), "ostree")
    require_program(Path("/usr/bin/skopeo"), "skopeo")
    require_program(Path("/usr/bin/buildah"), "buildah")
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_root("the sandbox of builds")
    try:
        engine = ensure(os.environ)
    except NoEngine as error:
        pytest.skip(str(error))
    with running_registry(program, tmp_path) as registry:
        yield Sysroot(tmp_path, engine, registry)


def host_tree(place: Path) -> Path:
    """The least that is an operating system for ostree: a kernel with its initial file system, a shell, and /usr/etc."""
    modules = place / "usr/lib/modules" / KERNEL
    for directory in (
        modules,
        place / "usr/bin",
        place / "usr/etc",
        *(place / name for name in ["sysroot", "boot", "tmp", "var"]),
    ):
        directory.mkdir(parents=True)
    for link, target in {
        "bin": "usr/bin",
        "lib": "usr/lib",
        "ostree": "sysroot/ostree",
        "usr/bin/sh": "busybox",
    }.items():
        (place / link).symlink_to(target)
    busybox = place / "usr/bin/busybox"
    busybox.write_bytes(require_program(Path("/bin/busybox"), "busybox-static").read_bytes())
    busybox.chmod(0o755)
    (modules / "vmlinuz").write_bytes(b"kernel")
    (modules / "initramfs.img").write_bytes(b"initrd")
    (place / "usr/lib/os-release").write_text("ID=test\nNAME=Test\nVERSION_ID=1\n")
    return place


async def test_the_engine_deploys_what_the_builder_made_and_goes_back_to_the_image_of_before(
    sysroot: Sysroot, tmp_path: Path
) -> None:
    registry = sysroot._registry
    base = sysroot.encapsulated(host_tree(tmp_path / "tree"))
    images = []
    for number in ("1", "2"):
        layer = f"FROM configs AS final\nRUN echo {number} > /usr/lib/mine && echo {number} > /etc/mine\n"
        config = ImageFile("/etc/chrony.conf", f"server {number}\n".encode(), 0o640)
        asking = order(registry, base, layer, f"worker-{number}", config)
        images.append(await Buildah(tmp_path / "builds", SMALL).build(asking, BuildLog()))
    first, second = images

    sysroot.deploy(first)
    assert f"container-image-reference=ostree-unverified-registry:{first}" in sysroot.origin()
    assert (sysroot.first() / "etc/chrony.conf").read_text() == "server 1\n"
    assert (sysroot.first() / "usr/lib/modules" / KERNEL / "vmlinuz").read_bytes() == b"kernel", "the base is there"
    own = sysroot.first() / "etc/own"
    own.write_text("edited on the machine\n")

    sysroot.deploy(second)
    assert first not in sysroot.origin()
    assert ((sysroot.first() / "usr/lib/mine").read_text(), (sysroot.first() / "etc/mine").read_text()) == (
        "2\n",
        "2\n",
    )
    assert (sysroot.first() / "etc/chrony.conf").read_text() == "server 2\n"

    sysroot.deploy(first)
    assert f"ostree-unverified-registry:{first}" in sysroot.origin()
    assert (sysroot.first() / "usr/lib/mine").read_text() == "1\n"
