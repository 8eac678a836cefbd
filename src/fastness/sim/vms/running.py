"""The real machines of `fastness up --vms N`, for the time of a block.

Building the image and booting take half a minute, so they happen beside the control plane, which is ready long before. A machine
that powers off, because it was refused or lost its network, is switched on again after a while, as an operator would.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.boot.volumes import ROOT
from fastness.agent.host.errors import DriverError
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import ApiError
from fastness.kube.port import Cluster
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock
from fastness.sim.disks.opening import volumes_of
from fastness.sim.swtpm import TpmMaker
from fastness.sim.vms import image, initrd, parts, qemu, root_disk, trusted

AGAIN_SECONDS: Final = 30.0
_log = logger("vms")


@dataclass(frozen=True, slots=True)
class RealMachines:
    """Real machines of a cluster, with a directory of their own, and what they are told.

    `trust` is the content of the image's trust.json, `user_data` what the platform gives a machine, `ports` those of the doors.
    `root` is the directory that `fastness machine image` prepared, for machines that become nodes.
    """

    cluster: Cluster
    directory: Path
    trust: Callable[[], bytes]
    user_data: Callable[[], Awaitable[bytes]]
    broker: str
    ports: tuple[int, ...]
    clock: Clock
    root: Path | None = None

    @asynccontextmanager
    async def running(self, count: int) -> AsyncIterator[None]:
        """So many machines for the time of the block; what they are trusted for ends with it."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._run(count), name="vms")
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])
                await trusted.withdraw(self.cluster)

    async def _run(self, count: int) -> None:
        """Make the image, believe in it, boot; a failure is told and leaves the rest of the control plane alone."""
        maker = TpmMaker(self.directory / "maker")
        try:
            disk, has_volume = await self._prepare(maker)
            async with asyncio.TaskGroup() as group:
                for number in range(count):
                    group.create_task(self._machine(maker, disk, f"vm-{number}", has_volume), name=f"vm-{number}")
        except* (parts.NoRealMachine, DriverError, ApiError) as failed:
            for error in failed.exceptions:
                _log.error("vms.failed", error=error, hint=getattr(error, "hint", ""))
        finally:
            maker.close()

    async def _prepare(self, maker: TpmMaker) -> tuple[Path, bool]:
        """The disk that all machines boot from, and whether they have a volume; by then the cluster believes in it."""
        shutil.rmtree(self.directory / "agent", ignore_errors=True)
        agent = await asyncio.to_thread(image.agent_directory, self.directory / "agent")
        line = image.COMMAND_LINE
        if self.root is not None:
            sealed = await asyncio.to_thread(root_disk.write_root_disk, self.root, self._root_disk)
            line = b" ".join((line, sealed.command_line, image.ROOT_WORDS))
        # As with virtual machines: an image is made for its pool, with the volume that the pool has today.
        volume = next(iter(await volumes_of(self.cluster, names.WORKER)), "")
        if volume == ROOT and self.root is not None:
            raise parts.NoRealMachine(
                "machines with a root of their own have no encrypted root: theirs is sealed, and what they write is in memory",
                "Give the pool the volume var or none, or start without --vm-root.",
            )
        uki = await asyncio.to_thread(image.image, agent, self.trust(), line, volume=volume)
        measured = await asyncio.to_thread(image.predicted, uki)
        disk = self.directory / "image.disk"
        await asyncio.to_thread(qemu.write_disk, disk, uki)
        await maker.open()
        await trusted.grant(self.cluster, maker.certificates, uki, measured)
        _log.info("vms.image", megabytes=len(uki) // 1024**2)
        return disk, bool(volume)

    @property
    def _root_disk(self) -> Path:
        return self.directory / "root.disk"

    async def _machine(self, maker: TpmMaker, disk: Path, name: str, has_volume: bool) -> None:
        """One machine, boot after boot."""
        place = self.directory / name
        made = place / "tpm" / ".provisioned"
        if not made.exists():
            shutil.rmtree(place, ignore_errors=True)
            await maker.provision(made.parent, name)
            made.touch()
        while True:
            answers = {
                initrd.USER_DATA: await self.user_data(), initrd.BROKER: self.broker.encode(),
                initrd.PORTS: " ".join(map(str, self.ports)).encode(),
            }  # fmt: skip
            _log.info("vms.boot", machine=name)
            root = self._root_disk if self.root is not None else None
            boot = qemu.Boot(disk, self.ports, answers, root, volume=has_volume)
            await qemu.life(place, boot, lambda line: _log.info("vms.says", machine=name, line=line))
            _log.warning("vms.off", machine=name, console=str(place / "console.log"))
            await self.clock.sleep(AGAIN_SECONDS)
