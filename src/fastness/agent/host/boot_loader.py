"""The boot loader of a host, which no deployment replaces: brought up to date from an image that was staged, as far as that goes.

A loader stays on a disk for years while images come and go, until firmware that revokes old loaders refuses it, or until it does
not know the key of a new kernel. So it is updated before the first boot of the new image, by the image's own `bootupctl`:

* only with Secure Boot, where a stale loader stops a machine, and on processors that bootupd knows;
* first by the host's own unit where the image has one, then by the new image in a container, without a network;
* never at the cost of the update: whatever fails is a sentence in the node's condition, and the old loader boots the new image.

Nobody undoes it: a newer loader boots the older image too. Whether it is done at all says the configuration
(`names.BOOT_LOADER_FILE`), which does not ask for it where the loader is part of what a machine proves (decision 74).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from fastness.agent.host.engine import NODE_SECRET, Commands, in_a_unit
from fastness.agent.host.errors import CommandFailed, DriverError

SECURE_BOOT: Final = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
OWN_UNIT: Final = "bootloader-update.service"
NO_PROGRAM: Final = 127
ARCHITECTURES: Final = ("x86_64", "aarch64")
# bootupctl refuses to run outside a unit, and looks for this to tell.
_IN_A_UNIT: Final = f"--env=INVOCATION_ID={'0' * 32}"


class LoaderUpdate(NamedTuple):
    """What became of the boot loader, for people; `failed` if somebody should look."""

    text: str
    failed: bool = False


LEFT_ALONE: Final = LoaderUpdate("the boot loader is left as it is: the configuration does not ask for its update")
NO_LOADER: Final = LoaderUpdate("this machine has no boot loader of its own")


class NoBootLoader:
    """For machines that boot without one: directories and virtual machines in memory."""

    def update(self, image: str) -> LoaderUpdate:
        """Nothing to do."""
        return NO_LOADER


class HostBootLoader:
    """The boot loader of the machine that the agent runs on."""

    def __init__(
        self, commands: Commands | None = None, *, podman: Sequence[str] = ("podman",),
        systemctl: Sequence[str] = ("systemctl",), launcher: Sequence[str] = ("systemd-run",),
        secure_boot: Callable[[], bytes] = SECURE_BOOT.read_bytes, architecture: str = "",
    ) -> None:  # fmt: skip
        self._commands = commands or Commands()
        self._podman = tuple(podman)
        self._systemctl = tuple(systemctl)
        self._launch = in_a_unit(launcher)
        self._secure_boot = secure_boot
        self._architecture = architecture or platform.machine()

    def update(self, image: str) -> LoaderUpdate:
        """Bring the boot loader of an image onto the disk; never raises for what a host refuses."""
        if self._architecture not in ARCHITECTURES:
            return LoaderUpdate(f"the boot loader is left as it is: bootupd does not know {self._architecture}")
        if not self._is_secure():
            return LoaderUpdate("the boot loader is left as it is: Secure Boot is off")
        own = self._by_own_unit()
        try:
            self._commands.deploy([*self._launch, *self._podman, "pull", "--quiet", f"--authfile={NODE_SECRET}", image])
            self._commands.deploy([
                *self._launch, *self._podman, "run", "--rm", "--privileged", "--pid=host", "--net=none", _IN_A_UNIT,
                "--volume=/boot:/boot:rslave", "--volume=/dev:/dev", image, "bootupctl", "update",
            ])  # fmt: skip
        except CommandFailed as error:
            if error.status == NO_PROGRAM:
                return LoaderUpdate(f"the boot loader is left as it is: {image} has no bootupctl")
            return LoaderUpdate(
                f"the boot loader could not be updated and is as it was{own}: {error.message}", failed=True
            )
        finally:
            # A whole system in the storage of containers, which nobody runs again: it would fill the disk, one update at a time.
            with suppress(DriverError):
                self._commands.deploy([*self._podman, "rmi", "--ignore", image])
        return LoaderUpdate(f"the boot loader is that of {image}")

    def _by_own_unit(self) -> str:
        """Let the running image update its loader, where it has a unit for that; what there is to say of it."""
        try:
            self._commands.ask([*self._systemctl, "cat", OWN_UNIT])
        except CommandFailed:
            return ""
        try:
            self._commands.deploy([*self._systemctl, "start", OWN_UNIT])
        except CommandFailed as error:
            return f" ({error.message})"
        return f", or that of the image that runs ({OWN_UNIT})"

    def _is_secure(self) -> bool:
        """Whether the firmware checks signatures: four bytes of attributes, then one of value (UEFI 2.10, 3.3)."""
        try:
            value = self._secure_boot()
        except OSError:
            return False  # no such firmware
        return len(value) == 5 and value[4] == 1
