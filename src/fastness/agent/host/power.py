"""Reboots: of this machine, and of a virtual one.

The boot id tells whether a reboot that was asked for has happened: an agent that finds the same id after a restart knows that
the machine is still up and asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastness.agent.host.process import Run, run

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class HostPower:
    """Reboots the machine that the agent runs on."""

    def __init__(self, run: Run = run, boot_id: Path = BOOT_ID, finalizer: Callable[[], str] = lambda: "") -> None:
        """`finalizer` names the unit that makes a staged deployment bootable when the machine goes down, empty for none."""
        self._run = run
        self._boot_id = boot_id
        self._finalizer = finalizer

    def boot_id(self) -> str:
        """Differs after each boot."""
        return self._boot_id.read_text().strip()

    def reboot(self, reason: str) -> None:
        """Ask for a reboot; a unit of its own survives the end of the agent; raises CommandFailed."""
        unit = self._finalizer()
        # Required and before: a machine that went down without it would come up in the system that it left.
        order = [f"--property=Requires={unit}", f"--property=After={unit}"] if unit else []
        self._run([
            "systemd-run", "--unit=fastness-agent-reboot", f"--description={reason}", "--collect", *order, "systemctl", "reboot",
        ])  # fmt: skip


class VirtualPower:
    """A virtual machine: whoever runs it is told and starts it again."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._id = new_id()
        self.reasons: list[str] = []

    def boot_id(self) -> str:
        """Differs after each boot."""
        return self._id

    def reboot(self, reason: str) -> None:
        """Written down; the machine goes down when its runner sees it."""
        self.reasons.append(reason)

    def booted(self) -> None:
        """The machine came up again."""
        self._id = self._new_id()
