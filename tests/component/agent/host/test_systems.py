"""One contract for operating systems: memory, and the real `ostree` in a sysroot directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from fastness.agent.apply.ports import OperatingSystem
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.memory_os import MemoryOs
from fastness.agent.host.ostree import OstreeOs
from fastness.agent.host.states import Deployment

ONE, TWO = "quay.io/os/one@sha256:" + "1" * 64, "quay.io/os/two@sha256:" + "2" * 64
BASE = ("root=UUID=1", "rw")


class Bootable(OperatingSystem, Protocol):
    """An operating system whose machine the test can boot."""

    def reboot(self) -> None:
        """Boot what comes next."""


def _tree(directory: Path, version: str) -> Path:
    kernel = directory / "usr/lib/modules/6.12"
    kernel.mkdir(parents=True)
    (kernel / "vmlinuz").write_text(f"kernel {version}")
    (kernel / "initramfs.img").write_text(f"initramfs {version}")
    (directory / "usr/lib/os-release").write_text(f"ID=test\nPRETTY_NAME=test {version}\n")
    (directory / "usr/etc").mkdir()
    for name in ("boot", "sysroot", "var", "tmp", "proc", "sys", "dev", "run", "ostree"):
        (directory / name).mkdir()
    return directory


def _memory(directory: Path) -> Bootable:
    directory.mkdir()
    return MemoryOs(Deployment(ONE), _registry, record=RootedFiles(directory))


def _registry(reference: str) -> str:
    if reference not in {ONE, TWO}:
        raise ImageFailure(f"{reference} cannot be pulled")
    return reference


def _ostree(directory: Path) -> Bootable:
    if shutil.which("ostree") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("ostree is missing")
        pytest.skip("ostree is missing: install the package ostree")
    system = OstreeOs(directory / "sysroot", "cc", base=BASE)
    system.initialise()
    system.import_tree(ONE, _tree(directory / "one", "1"), "1")
    system.import_tree(TWO, _tree(directory / "two", "2"), "2")
    system.stage(Deployment(ONE))
    system.reboot()
    return system


@pytest.fixture(params=[_memory, _ostree], ids=["memory", "ostree"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Bootable:
    """A machine that runs image one."""
    make: Callable[[Path], Bootable] = request.param
    return make(tmp_path / "machine")


def test_staging_changes_nothing_before_the_boot(system: Bootable) -> None:
    system.stage(Deployment(TWO, ("quiet", "console=ttyS0")))
    assert system.booted() == Deployment(ONE)
    assert system.staged() == Deployment(TWO, ("quiet", "console=ttyS0"))
    system.reboot()
    assert system.booted() == Deployment(TWO, ("quiet", "console=ttyS0"))
    assert system.staged() is None


def test_discarding_takes_the_staged_one_back(system: Bootable) -> None:
    system.stage(Deployment(TWO))
    system.discard()
    assert system.staged() is None
    system.reboot()
    assert system.booted() == Deployment(ONE)
    system.discard()


def test_arguments_are_replaced_as_a_whole_and_keep_their_order(system: Bootable) -> None:
    system.stage(Deployment(ONE, ("b=2", "a=1", "b=2")))
    system.reboot()
    assert system.booted().arguments == ("b=2", "a=1", "b=2")
    system.stage(Deployment("", ("a=1",)))
    system.reboot()
    assert system.booted() == Deployment(ONE, ("a=1",))


def test_staging_again_replaces_what_was_staged(system: Bootable) -> None:
    system.stage(Deployment(TWO))
    system.stage(Deployment(ONE, ("x",)))
    assert system.staged() == Deployment(ONE, ("x",))
    system.stage(Deployment(ONE))
    assert system.staged() is None


def test_the_way_back_is_another_stage(system: Bootable) -> None:
    system.stage(Deployment(TWO))
    system.reboot()
    system.stage(Deployment(ONE))
    system.reboot()
    assert system.booted() == Deployment(ONE)


def test_an_image_that_is_not_there_is_named_and_nothing_is_staged(system: Bootable) -> None:
    with pytest.raises(ImageFailure, match=r"quay\.io/os/three"):
        system.stage(Deployment("quay.io/os/three@sha256:3"))
    assert system.staged() is None


def test_memory_outlives_its_process(tmp_path: Path) -> None:
    system = _memory(tmp_path / "m")
    system.stage(Deployment(TWO, ("x",)))
    again = MemoryOs(record=RootedFiles(tmp_path / "m"))
    assert (again.booted(), again.staged()) == (Deployment(ONE), Deployment(TWO, ("x",)))


def test_memory_that_loses_power_loses_what_was_staged(tmp_path: Path) -> None:
    system = MemoryOs(Deployment(ONE), _registry, record=RootedFiles(_made(tmp_path / "m")))
    system.stage(Deployment(TWO))
    system.power_cut()
    assert (system.booted(), system.staged()) == (Deployment(ONE), None)
    assert TWO in system.last_boot_log()


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_ostree_writes_what_the_boot_loader_reads(tmp_path: Path) -> None:
    system = _ostree(tmp_path / "m")
    system.stage(Deployment(TWO, ("quiet",)))
    entries = sorted((tmp_path / "m/sysroot/boot/loader/entries").glob("*.conf"))
    options = [line for path in entries for line in path.read_text().splitlines() if line.startswith("options")]
    assert any("root=UUID=1 rw quiet" in line for line in options)
    assert len(entries) == 2


def test_ostree_says_that_it_has_no_package_manager(tmp_path: Path) -> None:
    system = _ostree(tmp_path / "m")
    with pytest.raises(ImageFailure, match="kernel"):
        system.stage(Deployment(ONE, kernel="realtime"))
