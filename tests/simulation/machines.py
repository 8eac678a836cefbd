"""Machines of the simulation: they boot, prove themselves again, and are switched off in the middle of anything.

A machine that was refused is switched on again after ten minutes, as an operator who put something right would do.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fastness.agent.boot import Ask, BootRefused, boot_once
from fastness.agent.enrol import DoorUnreachable, Patience
from fastness.agent.imagetrust import ImageTrust
from fastness.agent.prove import DoorRefused
from fastness.agent.reattest import Staying
from fastness.cluster.clock import Entropy
from fastness.crypto.secret import SecretText
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage
from fastness.sim.tee.vendor import SimVendor
from tests.simulation.loop import LoopClock
from tests.simulation.network import CALLER

TEES = ("tpm", "snp", "tdx")
AGAIN_SECONDS = 600.0
PATIENCE_SECONDS = 3600.0


@dataclass
class SimMachine:
    """One machine: its hardware, what it boots, and what it knows."""

    number: int
    chip: int
    tee: str
    image: BootImage
    ticket: SecretText
    bodies: list[bytes] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    configured: bool = False
    task: asyncio.Task[None] | None = None

    def attester(self, vendor: SimVendor) -> SimAttester:
        """The machine as it boots now."""
        return SimAttester(vendor.chip(self.tee, serial=self.chip).boot(self.image))

    async def live(self, vendor: SimVendor, trust: ImageTrust, entropy: Entropy) -> None:
        """From power on until it is switched off."""
        CALLER.set(str(self.number))
        clock = LoopClock()
        attester = self.attester(vendor)
        ask = Ask("worker", self.ticket, "https://enrol.test")
        while True:
            try:
                booted = await boot_once(attester, ask, trust, Patience(clock, entropy, PATIENCE_SECONDS, pause=5.0))
                break
            except BootRefused as error:
                self.refusals.append(error.reason)
                await clock.sleep(AGAIN_SECONDS)
            except (DoorUnreachable, DoorRefused) as error:
                self.refusals.append(error.code)
        self.bodies.append(booted.body)
        self.configured = True
        await Staying(attester, lambda: "https://broker.test", lambda: trust.tls, clock, entropy).run(60.0)

    async def switch_off(self) -> None:
        """Power is gone."""
        task, self.task = self.task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.result()
