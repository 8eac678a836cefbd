"""Hosts put together from drivers: this machine, or a directory that stands for one.

    real         root /                      originals /var/lib/fastness/originals     state /var/lib/fastness/agent
    directory    DIR/root                    originals DIR                             state DIR/agent

A directory has units as links, an operating system and container images in memory, and a power button that its runner watches;
everything else is the same code.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from fastness.agent.apply.moved_state import HOME, move_state
from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.apply.ports import Files, Host, OperatingSystem, Watcher
from fastness.agent.host import containerd_images, crio_images
from fastness.agent.host.boot_entries import BootEntries
from fastness.agent.host.boot_loader import HostBootLoader
from fastness.agent.host.bootc import BootcOs
from fastness.agent.host.composefs import ComposefsOs
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.memory_images import MemoryImages
from fastness.agent.host.memory_os import MemoryOs, no_registry
from fastness.agent.host.ostree import OstreeOs
from fastness.agent.host.power import HostPower, VirtualPower
from fastness.agent.host.rpm_ostree_os import RpmOstreeOs
from fastness.agent.host.states import NOTHING, Deployment, File
from fastness.agent.host.systemd import Systemctl
from fastness.agent.host.unit_links import UnitLinks
from fastness.kinds.kata import runtime

ORIGINALS: Final = HOME / "originals"
STATE: Final = HOME / "agent"
# What the packages of a virtual machine put on its disk.
_RUNTIME: Final = {path: File(content, mode) for path, (content, mode) in runtime.VIRTUAL_FILES.items()}
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_CONTENTS: Final = dict.fromkeys(runtime.PACKAGES, _RUNTIME)


class PlainSystem:
    """The operating system of a package host, which nobody deploys: whatever is asked of it is refused."""

    finalizer = ""
    brings_arguments = False
    owns_usr = False
    brings_usr = False

    def booted(self) -> Deployment:
        """What was installed."""
        return Deployment()

    def staged(self) -> None:
        """None: nothing can be staged here."""

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Raises ImageFailure."""
        parts = {
            "an OS image": deployment.image,
            "kernel arguments": deployment.arguments,
            "a kernel": deployment.kernel,
        }
        asked_for = next((part for part, value in parts.items() if value), "packages")
        raise ImageFailure(
            f"cannot apply {asked_for}: this machine is a package host, neither bootc nor rpm-ostree deploys it",
            "Take the field back for this pool, or install its machines from an image.",
        )

    def discard(self) -> None:
        """Nothing to forget."""

    def on_trial(self) -> bool:
        """Never: nothing is deployed here."""
        return False

    def booted_well(self) -> None:
        """Nothing to clean."""

    def last_boot_log(self) -> str:
        """Nothing is ever finalized."""
        return ""


class Deployed(OperatingSystem, Protocol):
    """The operating system of a real machine."""

    @property
    def finalizer(self) -> str:
        """The unit that makes a staged deployment bootable; empty where nothing is staged."""


def deployed_by(driver: str, root: Files, ostree_name: str) -> Deployed:
    """The operating system of this machine, by its driver."""
    match driver:
        case "bootc":
            return BootcOs(root)
        case "rpm-ostree":
            return RpmOstreeOs(root)
        case "composefs":
            return ComposefsOs(root, BootEntries())
        case "ostree":
            return OstreeOs(Path("/sysroot"), ostree_name)
        case _:
            return PlainSystem()


def real_host(watcher: Watcher, system: Deployed) -> Host:
    """The machine that the agent runs on."""
    # First: a directory that was made empty would count as one that has moved already.
    move_state()
    for directory in (ORIGINALS, STATE):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    trees = (RootedFiles(Path("/")), RootedFiles(ORIGINALS), RootedFiles(STATE))
    units = Systemctl()
    power = HostPower(finalizer=lambda: system.finalizer)
    return Host(*trees, units, system, power, watcher, lambda: _runtime(trees[0], units), HostBootLoader())


def _runtime(root: RootedFiles, units: Systemctl) -> ContainerImages | None:
    """The container runtime that runs here now: which one it is may change with a config."""
    if crio_images.SOCKET.exists():
        return crio_images.CrioImages(root, units.reload, _platform())
    if containerd_images.SOCKET.exists():
        return containerd_images.ContainerdImages(root, _platform())
    return None


def _platform() -> str:
    """This machine in the words of images."""
    machine = platform.machine()
    return f"linux/{_ARCHITECTURES.get(machine, machine)}"


class DirectoryMachine:
    """A directory that stands for a machine: its host, and what a boot does to it."""

    def __init__(
        self, directory: Path, watcher: Watcher, new_id: Callable[[], str], root: Path | None = None, *,
        installed: str = "", pull: Callable[[str], str] = no_registry,
    ) -> None:  # fmt: skip
        """`installed` is the image on its disk, `pull` the registry that it reaches."""
        self.root = root or directory / "root"
        for part in (self.root, directory / "orig", directory / "agent"):
            part.mkdir(mode=0o755, parents=True, exist_ok=True)
        files, state = RootedFiles(self.root), RootedFiles(directory / "agent")
        self.units = UnitLinks(files)
        self.system = MemoryOs(Deployment(installed), pull, record=state, root=files, contents=_CONTENTS)
        self.power = VirtualPower(new_id)
        self.images = MemoryImages(record=state)
        self.host = Host(
            files, RootedFiles(directory), state, self.units, self.system, self.power, watcher, lambda: self.images
        )

    def reboot(self) -> None:
        """The machine goes through a boot."""
        self.system.reboot()
        self.power.booted()

    def power_cut(self) -> None:
        """The machine loses power and boots again: what was staged was never made bootable."""
        self.system.power_cut()
        self.power.booted()
