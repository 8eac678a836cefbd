"""Virtual machines that run: they come and go until all of them are switched off.

    async with running_machines(fleet) as running:
        running.place(spec)              # a machine is put there and switched on
        await running.take(name)         # switched off and thrown away

One task for each machine, one inotify instance for all of them. At the end of the block every machine is switched off, and what
it had running has ended.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastness.agent.apply.ports import Watcher
from fastness.agent.host.file_changes import Inotify, InotifyWatcher, NoInotify, PollingWatcher
from fastness.kinds.machineconfiguration import names
from fastness.observe.logs import logger
from fastness.sim.hardware import TEES
from fastness.sim.inventory import Spec
from fastness.sim.machines import VirtualMachine
from fastness.sim.platform import Fleet

_log = logger("machines")


class RunningMachines:
    """Machines that run."""

    def __init__(self, fleet: Fleet, group: asyncio.TaskGroup, inotify: Inotify | None) -> None:
        self.fleet = fleet
        self._group = group
        self._inotify = inotify
        self._machines: dict[str, tuple[VirtualMachine, asyncio.Task[None]]] = {}

    def __iter__(self) -> Iterator[VirtualMachine]:
        return iter([machine for machine, _ in self._machines.values()])

    def __len__(self) -> int:
        return len(self._machines)

    def get(self, name: str) -> VirtualMachine | None:
        """The machine of a name."""
        machine = self._machines.get(name)
        return machine[0] if machine is not None else None

    def build(self, spec: Spec) -> VirtualMachine:
        """A machine that is not switched on yet."""
        return VirtualMachine(self.fleet, spec, self._watcher)

    def place(self, machine: VirtualMachine) -> None:
        """Switch a machine on."""
        self._machines[machine.name] = machine, self._group.create_task(machine.run(), name=machine.name)

    async def take(self, name: str) -> None:
        """Switch a machine off and throw it away, with everything on it."""
        machine, task = self._machines.pop(name)
        task.cancel()
        await asyncio.wait([task])
        await machine.forget()
        await asyncio.to_thread(shutil.rmtree, self.fleet.directory / name, ignore_errors=True)

    def close(self) -> None:
        """Switch all machines off."""
        for _, task in self._machines.values():
            task.cancel()

    def _watcher(self, root: Path) -> Watcher:
        if self._inotify is not None:
            return InotifyWatcher(self._inotify, root)
        return PollingWatcher(root, self.fleet.clock)


@asynccontextmanager
async def running_machines(fleet: Fleet) -> AsyncIterator[RunningMachines]:
    """Room for machines, empty at first, for the time of the block."""
    inotify: Inotify | None = None
    try:
        inotify = Inotify()
    except NoInotify as error:
        _log.warning("machine.polling", error=error)
    try:
        async with asyncio.TaskGroup() as group:
            opened = RunningMachines(fleet, group, inotify)
            try:
                yield opened
            finally:
                opened.close()
    finally:
        if inotify is not None:
            inotify.close()


@asynccontextmanager
async def machines(fleet: Fleet, count: int) -> AsyncIterator[list[VirtualMachine]]:
    """So many machines for the time of the block, with all kinds of evidence in turn."""
    async with running_machines(fleet) as opened:
        for number in range(count):
            opened.place(opened.build(Spec(f"{names.WORKER}-{number}", number, TEES[number % len(TEES)])))
        yield list(opened)
