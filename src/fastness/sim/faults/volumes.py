"""What the host of a machine does to its encrypted volume while the machine is off: put an old one back, attach another one.

An old volume opens, because it was this machine's: the number on it gives it away, after the machine has opened it. One that is
not the recorded one is not opened at all. Undone, the machine has its own volume again; an old one has to be accepted by a person
only if it stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from fastness.crypto.secret import SecretBytes
from fastness.kinds.kind import JsonObject
from fastness.page.simulator import FaultKind
from fastness.protocol.disk_keys import KEY_BYTES, DiskKey
from fastness.runtime.tasks import uninterrupted
from fastness.sim.disks.container import SealedVolumes
from fastness.sim.faults.fault import FaultContext, Outcome, needed
from fastness.sim.machines import VirtualMachine


class _VolumeFault(ABC):
    """The file of a volume is replaced while the machine is off, and its own is kept for undoing."""

    repeatable = False
    kind: FaultKind

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """Only a machine that made a volume has one to be replaced."""
        return (
            None if needed(machine).volumes.names else "it has no encrypted volume; its pool has none, or got it later"
        )

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Replace it, and boot."""
        target = needed(machine)
        volume = target.volumes.names[0]
        await uninterrupted(lambda: self._replace(target.volumes.sealed, volume))
        target.switch()
        return Outcome(f"{target.name} boots again: {self.kind.title.lower()}", {"volume": volume})

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Put its own volume back, and boot."""
        target, volume = needed(machine), str(memory["volume"])
        sealed = target.volumes.sealed
        await uninterrupted(lambda: sealed.own_copy(volume).replace(sealed.path(volume)))
        target.switch()
        return f"{target.name} boots again, with its own volume {volume}"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:  # noqa: B027 - nothing to do
        """What lies there is still the other one."""

    def _replace(self, sealed: SealedVolumes, volume: str) -> None:
        sealed.own_copy(volume).write_bytes(sealed.path(volume).read_bytes())
        self._other(sealed, volume)

    @abstractmethod
    def _other(self, sealed: SealedVolumes, volume: str) -> None:
        """Put something else in the place of the volume."""


class OldVolume(_VolumeFault):
    """The volume as it was at the boot before."""

    kind: FaultKind = FaultKind(
        "old-volume", "Old volume",
        "The host puts back what the volume was before this boot. It opens, the number on it is too low, and the machine has no "
        "standing.",
        "machine",
    )  # fmt: skip

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """A volume that was opened once has no state of an earlier boot."""
        target = needed(machine)
        without = super().objection(machine)
        if without is None and not target.volumes.sealed.snapshot(target.volumes.names[0]).exists():
            return "its volume was opened once only; reboot it first"
        return without

    def _other(self, sealed: SealedVolumes, volume: str) -> None:
        sealed.path(volume).write_bytes(sealed.snapshot(volume).read_bytes())


class SwappedVolume(_VolumeFault):
    """A volume that another machine could have made."""

    kind: FaultKind = FaultKind(
        "swapped-volume", "Swapped volume",
        "The host attaches another encrypted volume. It is not the one that was recorded, so the machine does not open it.",
        "machine",
    )  # fmt: skip

    def _other(self, sealed: SealedVolumes, volume: str) -> None:
        sealed.make(volume, DiskKey("k1", SecretBytes(bytes(KEY_BYTES))), "none")


VOLUMES: Final = (OldVolume(), SwappedVolume())
