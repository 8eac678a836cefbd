"""What the driver of sealed hosts relies on, asked of the program that stands in for cfsctl and, in the long form, of cfsctl.

The real one has a repository without fs-verity, which the kernel of this host need not have; machines have it
(tests/e2e/measured/test_sealed_machine.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.process import run
from fastness.formats.composefs import KARG, Stored, pulled_manifest, stored_images, tag_of
from fastness.formats.image_reference import digest_of
from tests.component.agent.host.sealed_machines import kernel_image
from tests.components import require_program
from tests.e2e.builds.registry_images import pushed_with
from tests.e2e.machineconfig.local_registry import running_registry
from tests.sealedvm.root import require_engines
from tests.soaking import soaking
from tests.standins.sealed_engine import SealedMachine

TREE: Mapping[str, bytes] = {"usr/lib/os-release": b"ID=x\n", "sysroot/x": b"", "boot/x": b"", "etc/x": b"x\n"}
OTHER_ROOT = "f" * 128
UKI = "boot/EFI/Linux/sealed.efi"


class World(Protocol):
    """A registry with images, a repository, and the program."""

    boot: Path

    def publish(self, name: str, *, wrong: bool = False) -> tuple[str, bytes]:
        """An image, and its kernel image; `wrong` was sealed for another root."""

    def ask(self, *words: str) -> str:
        """What the program prints; raises CommandFailed."""

    def has_root(self, root: str) -> bool:
        """Whether a machine could mount it."""


class StandIn:
    """The stand-in."""

    def __init__(self, place: Path) -> None:
        self.machine = SealedMachine(place / "machine")
        self.boot = self.machine.boot_partition

    def publish(self, name: str, *, wrong: bool = False) -> tuple[str, bytes]:
        root = name * 128
        line = f"{KARG}v1-sha512-12:{OTHER_ROOT if wrong else root} quiet"
        image, uki = f"registry.example/os@sha256:{name * 64}", kernel_image(line)
        self.machine.publish(image, root, uki, line)
        return image, uki

    def ask(self, *words: str) -> str:
        return run([*self.machine.program("cfsctl"), "--repo", "/sysroot/composefs", *words])

    def has_root(self, root: str) -> bool:
        return root in self.machine.read()["roots"]


class Real:
    """The real program with a real registry."""

    def __init__(self, place: Path) -> None:
        self._cfsctl, self._place = require_engines() / "cfsctl", place
        require_program(Path("/usr/bin/skopeo"), "skopeo")
        program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
        (place / "registry").mkdir(parents=True)
        self._running = running_registry(program, place / "registry")
        self.registry = self._running.__enter__()
        self.boot = place / "boot"
        self.boot.mkdir()
        settings = place / ".config/containers"
        settings.mkdir(parents=True)
        insecure = f'[[registry]]\nlocation = "{self.registry.address}"\ninsecure = true\n'
        (settings / "registries.conf").write_text(insecure)
        (settings / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.ask("init", "--insecure")

    def close(self) -> None:
        self._running.__exit__(None, None, None)

    def publish(self, name: str, *, wrong: bool = False) -> tuple[str, bytes]:
        files = {**TREE, "etc/name": name.encode()}
        # /boot counts for nothing, so an image without a kernel image has the root that one with it has.
        bare = pushed_with(self.registry, files)
        self.ask("oci", "pull", f"docker://{bare}", "bare")
        root = OTHER_ROOT if wrong else self.ask("oci", "compute-id", "--bootable", "bare").strip()
        self.ask("oci", "untag", "bare")
        uki = kernel_image(f"{KARG}v1-sha512-12:{root} quiet")
        return pushed_with(self.registry, {**files, UKI: uki}), uki

    def ask(self, *words: str) -> str:
        around = {"PATH": "/usr/bin:/bin", "HOME": str(self._place)}
        return run([str(self._cfsctl), "--repo", str(self._place / "repo"), *words], environment=around)

    def has_root(self, root: str) -> bool:
        return (self._place / "repo" / "images" / root).is_symlink()


@pytest.fixture(params=["a stand-in", soaking("cfsctl", why="a program stands in for it")])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param != "cfsctl":
        yield StandIn(tmp_path)
        return
    real = Real(tmp_path)
    yield real
    real.close()


def pull(world: World, image: str, *options: str) -> str:
    return world.ask("oci", "pull", *options, f"docker://{image}", tag_of(image))


def prepare(world: World, image: str) -> Path:
    world.ask("oci", "prepare-boot", tag_of(image), "--bootdir", str(world.boot), "--entry-id", "entry")
    return world.boot / "EFI/Linux/entry.efi"


def root_of(world: World, image: str) -> str:
    return world.ask("oci", "compute-id", "--bootable", tag_of(image)).strip()


def test_a_pull_says_which_manifest_came_and_the_image_is_listed_by_its_tag(world: World) -> None:
    image, _ = world.publish("a")
    assert pulled_manifest(pull(world, image, "--bootable")) == digest_of(image)
    assert stored_images(world.ask("oci", "images", "--json").encode()) == (Stored(tag_of(image), image),)


def test_the_root_is_named_in_hex_and_the_kernel_image_on_the_partition_is_that_of_the_image(world: World) -> None:
    image, uki = world.publish("a")
    pull(world, image, "--bootable")
    root = root_of(world, image)
    assert re.fullmatch(r"[0-9a-f]{128}", root)
    assert prepare(world, image).read_bytes() == uki
    assert f"v1-sha512-12:{root}".encode() in uki
    assert world.has_root(root)


def test_a_kernel_image_for_another_root_is_refused_and_nothing_is_written(world: World) -> None:
    image, _ = world.publish("b", wrong=True)
    pull(world, image, "--bootable")
    with pytest.raises(CommandFailed, match="wrong composefs digest"):
        prepare(world, image)
    assert not list(world.boot.rglob("*.efi"))


def test_a_collection_leaves_the_root_of_a_bootable_pull_and_takes_one_that_was_only_prepared(world: World) -> None:
    tied, loose = world.publish("a")[0], world.publish("b")[0]
    pull(world, tied, "--bootable")
    pull(world, loose)
    prepare(world, loose)
    roots = root_of(world, tied), root_of(world, loose)
    world.ask("gc", "--root", roots[1])
    assert [world.has_root(root) for root in roots] == [True, True], "a root that is named stays"
    world.ask("gc")
    assert [world.has_root(root) for root in roots] == [True, False]


def test_without_its_tag_an_image_is_collected(world: World) -> None:
    image, _ = world.publish("a")
    pull(world, image, "--bootable")
    root = root_of(world, image)
    world.ask("oci", "untag", tag_of(image))
    world.ask("gc")
    assert not world.has_root(root)
    assert stored_images(world.ask("oci", "images", "--json").encode()) == ()


@pytest.mark.parametrize(
    "words",
    [("oci", "untag", "nobody"), ("oci", "compute-id", "--bootable", "nobody"), ("oci", "list-images", "--json")],
    ids=["untag", "compute-id", "an unknown verb"],
)
def test_what_is_not_there_is_a_failure(world: World, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandFailed):
        world.ask(*words)


def test_an_image_that_the_registry_lacks_is_a_failure_in_the_words_of_registries(world: World) -> None:
    image, _ = world.publish("a")
    lost = f"{image.partition('@')[0]}@sha256:{'9' * 64}"
    with pytest.raises(CommandFailed, match="manifest unknown"):
        pull(world, lost, "--bootable")


def test_it_says_its_version(world: World) -> None:
    assert world.ask("--version").startswith("cfsctl 0.9.")
