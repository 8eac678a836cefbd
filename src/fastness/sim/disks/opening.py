"""What the initial file system of a virtual machine does about its volumes, as that of a real one does.

    initrd = volumes.boot(attester, tls, patience, tell)     # power on: an unlock key that nobody else has
    await initrd.make(names, broker)(enrolled)               # first boot: between enrolment and the first session
    await initrd.open(broker)                                # later boots: who it is stands in the note
    await initrd.leave()                                     # the phase is over, the unlock key forgotten

    STATE/machines/<name>/note        the note beside the volumes (`protocol.unlock_note`), with its volumes' names in clear

Which volumes a machine has is part of its image, and the image is installed for its pool: the names are those of the day of its
first boot. Where the pool gets a volume later, machines that run keep what they have.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import MakeVolumes
from fastness.agent.boot.enrol import Enrolled, RetryBudget
from fastness.agent.boot.unlock import Tell, Unlock, UnlockTarget
from fastness.agent.boot.volumes import DiskRefused
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.keys.key_files import write_private
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.protocol.disk_keys import is_volume
from fastness.protocol.unlock_note import NOTE_BYTES, BadNote, UnlockNote, read_note, written
from fastness.runtime.clock import Entropy
from fastness.sim.disks.container import SealedVolumes

NONE: Final = "none"


async def volumes_of(cluster: Cluster, pool: str) -> tuple[str, ...]:
    """The volumes that images of a pool are installed with today."""
    try:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return ()
    pools = (confidential.get("spec") or {}).get("pools") or ()
    names = {str((entry.get("disk") or {}).get("volume") or NONE) for entry in pools if entry.get("name") == pool}
    return tuple(sorted(names - {NONE}))


class VirtualVolumes:
    """The volumes of one virtual machine, over its boots."""

    def __init__(self, directory: Path, entropy: Entropy) -> None:
        self._note = directory / "note"
        self._entropy = entropy
        self.sealed = SealedVolumes(directory / "volumes", entropy)

    @property
    def names(self) -> tuple[str, ...]:
        """The volumes that it was made with; none before its first boot."""
        stems = {path.stem for path in self.sealed.directory.glob("*.sealed")} if self._note.exists() else set()
        return tuple(sorted(filter(is_volume, stems)))

    def boot(self, attester: Attester, tls: ssl.SSLContext, patience: RetryBudget, tell: Tell) -> Initrd:
        """The initial file system of one boot."""
        key = PrivateKey.generate(self._entropy)
        return Initrd(self, attester, Unlock(attester, tls, self.sealed, key, patience, tell))

    def note(self) -> UnlockNote:
        """The machine's own word; raises DiskRefused."""
        try:
            return read_note(self._note.read_bytes()[:NOTE_BYTES])
        except (OSError, BadNote) as error:
            raise DiskRefused("bad-note", f"the note beside the volumes cannot be read: {error}") from error

    def write_note(self, note: UnlockNote) -> None:
        """Keep who the machine is; raises DiskRefused."""
        try:
            content = bytearray(self._note.read_bytes()) if self._note.exists() else bytearray(NOTE_BYTES)
            place, data = written(note, bytes(content))
            content[place : place + len(data)] = data
            write_private(self._note, SecretBytes(bytes(content)))
        except (OSError, BadNote) as error:
            raise DiskRefused("bad-note", f"the note beside the volumes cannot be written: {error}") from error


class Initrd:
    """The initial file system of one boot of a virtual machine with volumes."""

    def __init__(self, volumes: VirtualVolumes, attester: Attester, unlock: Unlock) -> None:
        self._volumes = volumes
        self._attester = attester
        self._unlock = unlock

    def make(self, names: tuple[str, ...], broker: Callable[[], str]) -> MakeVolumes:
        """What a first boot does between enrolment and its first session; raises BootRefused, DiskRefused, DriverError."""

        async def made(enrolled: Enrolled) -> None:
            await self._unlock.run(UnlockTarget(enrolled.machine, names, broker, first_boot=True))
            self._volumes.write_note(UnlockNote(enrolled.machine, broker()))

        return made

    async def open(self, broker: Callable[[], str]) -> None:
        """What a later boot does before anything else; raises BootRefused, DiskRefused, DriverError."""
        # The doors of a simulation move with every start of its process: its name service knows where the note leads to today.
        machine = self._volumes.note().machine
        await self._unlock.run(UnlockTarget(machine, self._volumes.names, broker, first_boot=False))

    async def leave(self) -> None:
        """Say in a register that the initial file system is over; raises DriverError. The key ends with this object."""
        await self._attester.leave_initrd()
