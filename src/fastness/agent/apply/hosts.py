"""Hosts put together from drivers: this machine, or a directory that stands for one.

    real         root /                      originals /etc/machine-config-daemon      state /var/lib/fastness-agent
    directory    DIR/root                    originals DIR                             state DIR/agent

A directory has units as links, an operating system and container images in memory, and a power button that its runner watches;
everything else is the same code.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.apply.ports import Host, OperatingSystem, Watcher
from fastness.agent.host import containerd_images, crio_images
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.memory_images import MemoryImages
from fastness.agent.host.memory_os import MemoryOs
from fastness.agent.host.power import HostPower, VirtualPower
from fastness.agent.host.states import Deployment, File
from fastness.agent.host.systemd import Systemctl
from fastness.agent.host.unit_links import UnitLinks
from fastness.kinds.kata import runtime

ORIGINALS: Final = Path("/etc/machine-config-daemon")
STATE: Final = Path("/var/lib/fastness-agent")
# What the packages of a virtual machine put on its disk.
_RUNTIME: Final = {path: File(content, mode) for path, (content, mode) in runtime.VIRTUAL_FILES.items()}
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_CONTENTS: Final = dict.fromkeys(runtime.PACKAGES, _RUNTIME)


class PlainSystem:
    """An operating system that nobody deploys: whatever is asked of it is refused."""

    def booted(self) -> Deployment:
        """What was installed."""
        return Deployment()

    def staged(self) -> None:
        """None: nothing can be staged here."""

    def stage(self, deployment: Deployment) -> None:
        """Raises ImageFailure."""
        raise ImageFailure(
            "this machine's operating system is not managed", "Start the agent with --os ostree on an image-based host."
        )

    def discard(self) -> None:
        """Nothing to forget."""


def real_host(watcher: Watcher, system: OperatingSystem) -> Host:
    """The machine that the agent runs on."""
    for directory in (ORIGINALS, STATE):
        directory.mkdir(mode=0o755 if directory is ORIGINALS else 0o700, parents=True, exist_ok=True)
    trees = (RootedFiles(Path("/")), RootedFiles(ORIGINALS), RootedFiles(STATE))
    units = Systemctl()
    return Host(*trees, units, system, HostPower(), watcher, lambda: _runtime(trees[0], units))


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

    def __init__(self, directory: Path, watcher: Watcher, new_id: Callable[[], str], root: Path | None = None) -> None:
        self.root = root or directory / "root"
        for part in (self.root, directory / "orig", directory / "agent"):
            part.mkdir(mode=0o755, parents=True, exist_ok=True)
        files, state = RootedFiles(self.root), RootedFiles(directory / "agent")
        self.units = UnitLinks(files)
        self.system = MemoryOs(record=state, root=files, contents=_CONTENTS)
        self.power = VirtualPower(new_id)
        self.images = MemoryImages(record=state)
        self.host = Host(
            files, RootedFiles(directory), state, self.units, self.system, self.power, watcher, lambda: self.images
        )

    def reboot(self) -> None:
        """The machine goes through a boot."""
        self.system.reboot()
        self.power.booted()
