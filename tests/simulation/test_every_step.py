"""Every part stops at every step of a machine's walk from its ticket to its configuration, in the middle of that step.

One machine after the other walks; each is met at another request, and for twenty seconds a part of the cluster is gone: both
replicas of it, or all ways to the API, or the machine itself, or what verdicts rest on. Afterwards nobody lends a hand. A
machine that booted something else walks along all the time and never gets anything.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from fastness.attestation.live.simulated_vendor import NAME as VENDOR
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import PatchType
from fastness.sim.announce import announce_vendor
from tests.simulation.loop import run
from tests.simulation.machines import SimMachine
from tests.simulation.whole_cluster import GOOD, TAMPERED, World, vendor, world

GONE_SECONDS = 20.0
HEALED_LOOKS = 16
PARTS = ("enrol", "gate", "broker", "controllers", "API", "machine", "collateral")
VIAS = ("Gate", "Broker")
ALL = [(part, via) for part in PARTS for via in VIAS]
WALKS = ALL if os.environ.get("FASTNESS_SOAK") else [(part, VIAS[number % 2]) for number, part in enumerate(PARTS, 1)]
"""Each part on one of the two ways, gate and broker on their own; on both in a soak."""


class Walks:
    """Machines that walk one after the other, and what is done to them."""

    def __init__(self, here: World, part: str) -> None:
        self.here, self.part = here, part
        self.requests = 0
        self._work: list[asyncio.Task[None]] = []

    async def walk(self, step: int = 0) -> SimMachine:
        """A new machine walks; at its request number `step` the part is gone, with 0 never."""
        self.requests = 0
        ticket = await self.here.ticket(uses=1)
        await self.here.pass_time(1)  # until the doors have heard of it
        machine = self.here.add("tpm", ticket, GOOD, joins=False)

        def meet(caller: str) -> None:
            if caller != str(machine.number):
                return
            self.requests += 1
            if self.requests == step:
                self._work.append(asyncio.ensure_future(self._gone(machine)))

        self.here.network.meet = meet
        for _ in range(HEALED_LOOKS):
            await self.here.pass_time(GONE_SECONDS + 5)
            if machine.configured:
                break
        for task in self._work:
            await task
        return machine

    async def _gone(self, machine: SimMachine) -> None:
        if self.part == "machine":
            await machine.switch_off()
            await asyncio.sleep(GONE_SECONDS)
            self.here.switch_on(machine)
        elif self.part == "collateral":
            await self.here.cluster.delete(CONFIG_MAP.resource, VENDOR, NAMESPACE)
            await asyncio.sleep(GONE_SECONDS)
            await announce_vendor(self.here.cluster, vendor(), self.here.clock.now())
        elif self.part == "API":
            lines = [process.line for process in self.here.processes.values()]
            for line in lines:
                line.break_off()
            await asyncio.sleep(GONE_SECONDS)
            for line in lines:
                line.mend()
        else:
            await self._killed()

    async def _killed(self) -> None:
        replicas = [process for name, process in self.here.processes.items() if name.startswith(self.part)]
        for process in replicas:
            await process.kill()
        await asyncio.sleep(GONE_SECONDS)
        for process in replicas:
            process.start()


@pytest.mark.parametrize(("part", "via"), WALKS)
def test_whatever_stops_at_any_step_the_machine_gets_there_and_a_changed_one_does_not(part: str, via: str) -> None:
    async def story() -> None:
        async with world(PARTS.index(part)) as here:
            patch = {"spec": {"delivery": {"via": via, "sync": "OnDemand"}}}
            await here.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
            ticket = await here.ticket()
            await here.pass_time(1)
            changed = here.add("tpm", ticket, TAMPERED, joins=False)
            walks = Walks(here, part)
            assert (await walks.walk()).configured
            steps = walks.requests
            assert steps >= 5, "enrol, prove to have the key, be challenged, attest, fetch"
            for step in range(1, steps + 1):
                machine = await walks.walk(step)
                assert machine.configured, f"stuck after {part} stopped at step {step} of {steps}: {machine.refusals}"
                await machine.switch_off()
                await here.watch.step()
            assert not changed.bodies
            assert changed.refusals
            await here.pass_time(200)
            await here.watch.complete()

    run(story())
