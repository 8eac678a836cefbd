"""Machines of the simulation: they boot, prove themselves again, and are switched off in the middle of anything.

A machine that was refused is switched on again after ten minutes, as an operator who put something right would do. One that
has its configuration is a node (`nodes.py`) and proves itself at each boot and at every interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from fastness.agent.boot.boot import BootedConfig, BootRefused, BootRequest, boot_once
from fastness.agent.boot.configs import AttestedConfigs
from fastness.agent.boot.enrol import Doors, DoorUnreachable, RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import DoorRefused
from fastness.agent.boot.reattest import Staying
from fastness.agent.host.errors import DriverError
from fastness.crypto.secret import SecretText
from fastness.runtime.clock import Entropy
from fastness.sim.first_boot import ACCEPT
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage
from fastness.sim.tee.vendor import SimVendor
from tests.simulation.loop import LoopClock
from tests.simulation.network import CALLER
from tests.simulation.nodes import SimNode
from tests.simulation.processes import Line

TEES = ("tpm", "snp", "tdx")
AGAIN_SECONDS = 600.0
PATIENCE_SECONDS = 3600.0
FIRST_PROOF_SECONDS = 60.0
LAUNCHES = 1_000_000
BROKER, GATE = "https://broker.test", "https://gate.test"


@dataclass
class SimMachine:
    """One machine: its hardware, what it boots, and what it knows. Without `joins` it never becomes a node.

    A copy has the chip of the machine with that number, and the state of its TPM from when it was copied.
    """

    number: int
    chip: int
    tee: str
    image: BootImage
    ticket: SecretText
    joins: bool = True
    boots: int = 0
    bodies: list[bytes] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    configured: bool = False
    node: SimNode | None = None
    lines: tuple[Line, ...] = ()
    task: asyncio.Task[None] | None = None

    def attester(self, vendor: SimVendor) -> SimAttester:
        """The machine as it booted last. The TPM of a copy goes on counting where it was copied; launches are never the same."""
        chip = vendor.chip(self.tee, serial=self.chip)
        chip.boots = max(self.boots - 1, 0) + (0 if self.tee == "tpm" else LAUNCHES * self.number)
        return SimAttester(chip.boot(self.image))

    async def live(
        self,
        vendor: SimVendor,
        trust: ImageTrust,
        entropy: Entropy,
        *,
        install: Callable[[SimMachine, BootedConfig], SimNode],
        lines: Callable[[str], tuple[Line, Line]],
    ) -> None:
        """From power on until it is switched off; `install` gives it a disk, `lines` a way to the API."""
        CALLER.set(str(self.number))
        attester, clock = self.attester(vendor), LoopClock()
        staying = Staying(attester, lambda: BROKER, lambda: trust.tls, clock, entropy)
        configs = AttestedConfigs(attester, lambda: Doors(BROKER, GATE), lambda: trust, clock, entropy)
        wait = 0.0
        while not self.configured:
            booted = await self._first_boot(attester, trust, entropy)
            self.bodies.append(booted.body)
            try:
                self.node = install(self, booted) if self.joins else None
                self.configured, wait = True, FIRST_PROOF_SECONDS
            except DriverError:  # Ignition fails in the same way, and somebody switches the machine off and on
                await clock.sleep(AGAIN_SECONDS)
        if self.node is not None and not self.lines:
            self.lines = lines(self.node.name)
        while True:
            async with asyncio.TaskGroup() as group:
                proving = group.create_task(staying.run(wait))
                if self.node is not None:
                    await self.node.live(configs, *self.lines)
                    proving.cancel()
            wait = 0.0

    async def _first_boot(self, attester: SimAttester, trust: ImageTrust, entropy: Entropy) -> BootedConfig:
        ask = BootRequest("worker", self.ticket, "https://enrol.test", ACCEPT)
        clock = LoopClock()
        while True:
            try:
                patience = RetryBudget(clock, entropy, PATIENCE_SECONDS, pause=5.0)
                return await boot_once(attester, ask, trust, patience)
            except BootRefused as error:
                self.refusals.append(error.reason)
                await clock.sleep(AGAIN_SECONDS)
            except (DoorUnreachable, DoorRefused) as error:
                self.refusals.append(error.code)

    async def switch_off(self) -> None:
        """Power is gone: what it was about to write is not written."""
        task, self.task = self.task, None
        if task is None:
            return
        for line in self.lines:
            line.break_off()
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
        for line in self.lines:
            line.mend()
        if self.node is not None:
            self.node.power_cut()

    @property
    def is_copy(self) -> bool:
        """Whether it has the identity of another machine."""
        return self.chip != self.number

    def wipe(self) -> None:
        """Nothing is on its disk any more."""
        self.configured, self.node, self.lines = False, None, ()
