"""Sealed images, built by the real builder: the kernel image names the root, and what cannot be sealed is refused.

What names roots is stood in for by a script with the same face, which hashes every file but those below /boot; the long form has
the real program, and lets it pull what was built and prepare its boot, as a machine does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.process import run
from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import ImageFile
from fastness.builds.live.buildah import Buildah
from fastness.builds.live.builder import Order
from fastness.builds.log import BuildLog
from fastness.formats.composefs import root_on, tag_of
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import BootChain, Disk, predict
from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import pulled, pushed_with
from tests.e2e.builds.test_buildah import SMALL, order
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.measuredboot import minted
from tests.sealedvm.root import require_engines
from tests.soaking import SOAK, soaking

pytestmark = pytest.mark.processes
KERNEL_IMAGE = "boot/EFI/Linux/sealed.efi"
CFSCTL = """#!/bin/sh
# cfsctl --no-repo compute-karg ROOT
[ "$1 $2" = "--no-repo compute-karg" ] || exit 2
cd "$3" && root=$(find . -path ./boot -prune -o -type f -print | LC_ALL=C sort | xargs sha512sum | sha512sum | cut -d' ' -f1)
echo "composefs.digest=v1-sha512-12:$root"
"""
BOOTABLE = (
    ImageFile("/usr/lib/modules/6.1.0-test/vmlinuz", minted.kernel()),
    ImageFile("/usr/lib/modules/6.1.0-test/initramfs.img", b"initial file system"),
    ImageFile("/usr/lib/systemd/boot/efi/linuxx64.efi.stub", minted.stub()),
    ImageFile("/usr/lib/os-release", b"ID=sealed\n"),
    ImageFile("/usr/lib/bootc/kargs.d/10-base.toml", b'kargs = ["quiet"]\n'),
)
LAYER = """FROM configs AS final
RUN printf 'kargs = ["nosmt", "a=1"]' > /usr/lib/bootc/kargs.d/20-layer.toml
RUN printf 'kargs = ["no"]\\nmatch-architectures = ["aarch64"]' > /usr/lib/bootc/kargs.d/30-other.toml
RUN chown 7:7 /usr/lib/os-release
"""

LONG = (pytest.mark.soak, pytest.mark.skipif(not SOAK, reason="in `make soak`: each is a build"))
ANOTHER_ROOT = "RUN echo 'kargs = [\"composefs=none\"]' > /usr/lib/bootc/kargs.d/z.toml"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(params=["a stand-in", soaking("cfsctl", why="a script stands in for it")])
def cfsctl(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    """The real program, or None where a script stands in for it; it is on PATH either way."""
    programs, real = tmp_path / "programs", request.param == "cfsctl"
    programs.mkdir()
    if real:
        shutil.copy(require_engines() / "cfsctl", programs)
    else:
        (programs / "cfsctl").write_text(CFSCTL)
        (programs / "cfsctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin")
    return programs / "cfsctl" if real else None


def base_of(registry: LocalRegistry) -> str:
    """An image with a shell, and the directories that every root has which is sealed."""
    return pushed_with(registry, {"boot/keep": b"", "sysroot/keep": b""})


class Repository:
    """A repository of the real program, without fs-verity, which the kernel of a builder need not have."""

    def __init__(self, cfsctl: Path, place: Path, registry: LocalRegistry) -> None:
        self.boot = place / "boot"
        self.boot.mkdir(parents=True)
        insecure = f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n'
        settings = place / ".config/containers"
        settings.mkdir(parents=True)
        (settings / "registries.conf").write_text(insecure)
        (settings / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
        self._command = [str(cfsctl), "--repo", str(place / "repo")]
        self.ask("init", "--insecure")

    def ask(self, *words: str) -> str:
        """What it prints; raises CommandFailed."""
        return run([*self._command, *words], environment=self._environment)

    def prepare(self, image: str) -> tuple[str, bytes]:
        """Pull an image and prepare its boot, as the driver does: the root of what was pulled, and the kernel image."""
        self.ask("oci", "pull", "--bootable", f"docker://{image}", tag_of(image))
        root = self.ask("oci", "compute-id", "--bootable", tag_of(image)).strip()
        self.ask("oci", "prepare-boot", tag_of(image), "--bootdir", str(self.boot), "--entry-id", "entry")
        return root, (self.boot / "EFI/Linux/entry.efi").read_bytes()


def sealed(asking: Order) -> Order:
    return replace(asking, inputs=replace(asking.inputs, sealed=True))


async def test_the_kernel_image_names_the_root_and_has_the_arguments_of_base_and_layer(
    registry: LocalRegistry, tmp_path: Path, cfsctl: Path | None
) -> None:
    base = base_of(registry)
    plain = order(registry, base, LAYER, "worker-s", *BOOTABLE)
    first = await Buildah(tmp_path / "a", SMALL).build(sealed(plain), BuildLog())
    files, _, layers = pulled(registry, first)
    uki = parse_uki(files[KERNEL_IMAGE])
    line = uki.sections[".cmdline"].decode()
    assert len(root_on(line)) == 128
    assert line.split()[1:] == ["quiet", "nosmt", "a=1"]
    assert uki.sections[".linux"] == minted.kernel()
    chain = BootChain(files[KERNEL_IMAGE], minted.loader(), Disk.UNKNOWN)
    assert set(predict(chain, FirmwareVars.blank(), secure_boot=False).registers) >= {4, 9, 11, 12}
    unsealed = pulled(registry, await Buildah(tmp_path / "c", SMALL).build(plain, BuildLog()))
    assert unsealed[2] == layers[:-1], "the seal is a layer of its own, and changes nothing below it"
    if cfsctl is not None:
        repository = Repository(cfsctl, tmp_path / "machine", registry)
        assert repository.prepare(first) == (root_on(line), files[KERNEL_IMAGE]), "who seals and who boots agree"
    if not SOAK:
        return
    assert first == await Buildah(tmp_path / "b", SMALL).build(sealed(plain), BuildLog()), (
        "the same inputs are the same image"
    )
    other = order(registry, base, LAYER + "RUN echo more > /etc/more\n", "worker-t", *BOOTABLE)
    changed = pulled(registry, await Buildah(tmp_path / "d", SMALL).build(sealed(other), BuildLog()))[0]
    assert root_on(parse_uki(changed[KERNEL_IMAGE]).sections[".cmdline"].decode()) != root_on(line)


@pytest.mark.usefixtures("cfsctl")
@pytest.mark.parametrize(
    ("layer", "files", "reason"),
    [
        ("", (), "not exactly one kernel"),
        pytest.param("RUN rm -r /sysroot && ln -s boot /sysroot", BOOTABLE[:2], "no directory /sysroot", marks=LONG),
        pytest.param("", BOOTABLE[:1], "no usr/lib/modules/6.1.0-test/initramfs.img", marks=LONG),
        pytest.param("", BOOTABLE[:2], "no usr/lib/systemd/boot/efi/linuxx64.efi.stub", marks=LONG),
        ("RUN cd /usr/lib/modules/*/ && rm vmlinuz && ln -s initramfs.img vmlinuz", BOOTABLE, "kernel of the image is no"),
        pytest.param(ANOTHER_ROOT, BOOTABLE, "would decide what the root is", marks=LONG),
    ],
    ids=["no kernel", "no sysroot", "no initial file system", "no stub", "a link", "another root"],
)  # fmt: skip
async def test_what_cannot_be_sealed_is_refused_with_the_reason(
    registry: LocalRegistry, tmp_path: Path, layer: str, files: tuple[ImageFile, ...], reason: str
) -> None:
    asking = sealed(order(registry, base_of(registry), layer, "worker-r", *files))
    with pytest.raises(BuildFailed, match=reason):
        await Buildah(tmp_path / "builds", SMALL).build(asking, BuildLog())


async def test_an_image_that_carries_the_kernel_image_of_another_is_refused_when_its_boot_is_prepared(
    registry: LocalRegistry, tmp_path: Path, cfsctl: Path | None
) -> None:
    if cfsctl is None:
        pytest.skip("the stand-in of the driver refuses it in tests/component/agent/host/test_composefs.py")
    base, builder = base_of(registry), Buildah(tmp_path / "builds", SMALL)
    good = await builder.build(sealed(order(registry, base, LAYER, "worker-w", *BOOTABLE)), BuildLog())
    stolen = ImageFile(f"/{KERNEL_IMAGE}", pulled(registry, good)[0][KERNEL_IMAGE])
    other = order(registry, base, LAYER + "RUN echo evil > /etc/evil\n", "worker-x", *BOOTABLE, stolen)
    wrong = await builder.build(other, BuildLog())
    repository = Repository(cfsctl, tmp_path / "machine", registry)
    with pytest.raises(CommandFailed, match="wrong composefs digest"):
        repository.prepare(wrong)
    assert list(repository.boot.rglob("*.efi")) == []


async def test_without_what_names_roots_the_builder_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert "cargo install composefs-ctl" in await Buildah(tmp_path).seal_obstacle()
