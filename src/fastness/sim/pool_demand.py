"""How many machines each pool wants, said on the pool: machine sets say it where there are some; virtual machines belong to none.

The ticket in the pool's user-data is good for twice as many (`machineconfig.pool_ticket`). The number only grows: a machine
that was thrown away may be replaced.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import ApiError
from fastness.kube.port import PatchType
from fastness.observe.logs import logger
from fastness.sim.fleet import RunningMachines

LOOK_SECONDS: Final = 0.2
_log = logger("machines")


async def _say(machines: RunningMachines) -> None:
    """Say it whenever machines came to a pool, as soon as there is that pool; never ends."""
    last, fleet = Counter[str](), machines.fleet
    while True:
        for name, count in Counter(machine.spec.pool for machine in machines).items():
            if count <= last[name]:
                continue
            try:
                pool = await fleet.cluster.get(MACHINE_CONFIG_POOL.resource, name)
                text = annotations_of(pool).get(names.WANTED_MACHINES, "")
                if not text.isdecimal() or int(text) < count:
                    patch = {"metadata": {"annotations": {names.WANTED_MACHINES: str(count)}}}
                    await fleet.cluster.patch(MACHINE_CONFIG_POOL.resource, name, patch, PatchType.MERGE)
                last[name] = count
            except ApiError as error:
                _log.debug("machine.waiting", pool=name, error=error)
        await fleet.clock.sleep(LOOK_SECONDS)


@asynccontextmanager
async def wanting(machines: RunningMachines, *, wanted: bool) -> AsyncIterator[None]:
    """Keep saying how many machines there are, for the time of the block."""
    if not wanted:
        yield
        return
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_say(machines), name="simulator:wanted")
        try:
            yield
        finally:
            task.cancel()
