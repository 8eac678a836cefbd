"""What the agent needs of a host, as small as it can be.

The adapters are in `agent/host`. `Host` puts one of each together: a real machine, a root directory, a virtual machine.
Three trees keep apart what is whose: `root` is the machine's, `originals` holds what stood there before us, `state` is the
agent's own (the journal).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.host.boot_loader import LoaderUpdate, NoBootLoader
from fastness.agent.host.states import DEFAULT_DIRECTORY_MODE, Deployment, File, Large, State, Stored


class Files(Protocol):
    """A tree of files that no path leaves; all raise DriverError."""

    def look(self, path: str) -> State:
        """What is at a path, with its content."""

    def inspect(self, path: str, up_to: int) -> State | Large:
        """What is at a path, with its content if that has at most so many bytes."""

    def reading(self, path: str) -> AbstractContextManager[tuple[int, Large] | None]:
        """A regular file, open, and what it is; None if there is none."""

    def writing(
        self, path: str, meta: File | Large | Stored, *, directory_mode: int = DEFAULT_DIRECTORY_MODE,
        own_directories: bool = False,
    ) -> AbstractContextManager[int]:  # fmt: skip
        """A descriptor that becomes the content of a path, atomically and durably, when the block ends well."""

    def put(
        self, path: str, state: State, *, directory_mode: int = DEFAULT_DIRECTORY_MODE, own_directories: bool = False
    ) -> None:
        """Bring a path into a state, atomically and durably."""

    def append(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Add bytes at the end of a file, durably."""

    def truncate(self, path: str, size: int) -> None:
        """Cut a file off after so many bytes, durably."""

    def move(self, path: str, target: str) -> None:
        """Give a file or a directory another name, atomically and durably."""

    def free(self) -> int:
        """The bytes that can still be written here."""

    def missing_directories(self, path: str) -> list[str]:
        """The directories above a path that do not exist, outermost first."""

    def remove_empty(self, directory: str) -> None:
        """Remove a directory if it is there and empty."""

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order."""


class Units(Protocol):
    """The services of a machine; all raise DriverError."""

    def is_enabled(self, unit: str) -> str:
        """The word of `systemctl is-enabled`."""

    def is_running(self, unit: str) -> bool:
        """Whether a service runs now; one that ends again and again does not."""

    def enable(self, units: Sequence[str]) -> None:
        """Start units at boot."""

    def disable(self, units: Sequence[str]) -> None:
        """Do not start units at boot."""

    def preset(self, unit: str) -> None:
        """Do what the distribution's presets say."""

    def daemon_reload(self) -> None:
        """Let the service manager read its units again."""

    def reload(self, service: str) -> None:
        """Let a service read its configuration again."""

    def restart(self, service: str) -> None:
        """Restart a service."""

    def stop(self, service: str) -> None:
        """Stop a service."""

    def start(self, service: str) -> None:
        """Start a service."""


class OperatingSystem(Protocol):
    """What a machine boots; all raise DriverError."""

    @property
    def brings_arguments(self) -> bool:
        """Whether kernel arguments that an image brings in its files count, without anybody setting them on the machine."""

    @property
    def owns_usr(self) -> bool:
        """Whether /usr belongs to the image, and no config writes there."""

    @property
    def brings_usr(self) -> bool:
        """Whether what an image has below /usr is there when it is booted."""

    def booted(self) -> Deployment:
        """What runs now."""

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs."""

    def stage(self, deployment: Deployment, old: Deployment = ..., extensions_image: str = ...) -> None:
        """Make a deployment that the next boot will run, or nothing; `old` is what the config before asked for."""

    def discard(self) -> None:
        """Forget what was staged."""

    def on_trial(self) -> bool:
        """Whether what runs was booted once, and the next boot goes back unless `booted_well` comes first."""

    def booted_well(self) -> None:
        """The machine runs what it should; what it would have fallen back to is not needed any more."""

    def last_boot_log(self) -> str:
        """What making the staged deployment bootable said when the machine last went down; empty where nobody can tell."""


class BootLoader(Protocol):
    """What starts the operating system, and outlives its deployments."""

    def update(self, image: str) -> LoaderUpdate:
        """Bring that of an image onto the disk as far as that goes; what became of it."""


class Power(Protocol):
    """Reboots."""

    def boot_id(self) -> str:
        """Differs after each boot."""

    def reboot(self, reason: str) -> None:
        """Ask for a reboot; the machine goes down soon after."""


class Watcher(Protocol):
    """What notices changes of files."""

    def watch(self, paths: Collection[str]) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """The paths out of these that change from now on, as they change; a path may come more than once."""


def no_runtime() -> ContainerImages | None:
    """The container runtime of a machine that has none."""
    return None


@dataclass(frozen=True, slots=True)
class Host:
    """A machine, put together from its parts."""

    root: Files
    originals: Files
    state: Files
    units: Units
    system: OperatingSystem
    power: Power
    watcher: Watcher
    images: Callable[[], ContainerImages | None] = no_runtime
    boot_loader: BootLoader = NoBootLoader()  # noqa: RUF009 - it has no state
