"""Machines of the simulated vendor that boot again and again, as a process in the network of a bed.

    python -m tests.e2e.bed.storm DIRECTORY --machines 200 --changed 10 --url https://…

It reads `trust.json` (what the image believes) and `ticket` in the directory, and writes a line into `boots.jsonl` for every boot
that ended: board, key, changed or not, and `booted` or the code of the refusal. A machine tries again as the agent does:
it gives up at a refusal that is final. When the file `enough` appears, every machine boots once more and the process ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.fetch import own_thumbprint
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.errors import AgentError
from fastness.crypto.secret import SecretText
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.sim.hardware import AS_IT_SHOULD, Conditions, Silicon
from fastness.sim.tee.vendor import SimVendor

ACCEPT = "application/vnd.coreos.ignition+json;version=3.4.0"
BOOTED = "booted"
BOOTS, TRUST, TICKET, ENOUGH = "boots.jsonl", "trust.json", "ticket", "enough"
PATIENCE = 600.0


@dataclass(frozen=True)
class Storm:
    """Where machines knock, and how long each rests between two boots."""

    directory: Path
    url: str
    rest: float
    vendor: SimVendor

    async def machine(self, serial: int, conditions: Conditions) -> None:
        """One machine, boot after boot."""
        board = Silicon(self.vendor, "tpm", serial)
        ended = False
        while not ended:
            ended = (self.directory / ENOUGH).exists()
            attester = await board.power_on(conditions)
            outcome, key = await self._boot(attester), await own_thumbprint(attester)
            self._tell({"serial": serial, "key": key, "changed": conditions.boot_loader, "outcome": outcome})
            if not ended:
                await asyncio.sleep(self.rest * (0.5 + random.random()))

    async def _boot(self, attester: Attester) -> str:
        """What came of one boot."""
        ask = BootRequest("worker", SecretText((self.directory / TICKET).read_text()), self.url, ACCEPT)
        budget = RetryBudget(SystemClock(), SystemEntropy(), PATIENCE, pause=0.5)
        try:
            await boot_once(attester, ask, ImageTrust.load(self.directory / TRUST), budget)
        except BootRefused as refused:
            return refused.reason
        except AgentError as error:
            return f"gave up: {error.code} {error.message}"
        return BOOTED

    def _tell(self, boot: dict[str, Any]) -> None:
        with (self.directory / BOOTS).open("a") as sink:
            sink.write(json.dumps(boot) + "\n")


async def main() -> None:
    """All of them at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--machines", type=int, required=True)
    parser.add_argument("--changed", type=int, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--first", type=int, default=1000, help="serial of the first board")
    parser.add_argument("--rest", type=float, default=30.0)
    chosen = parser.parse_args()
    storm = Storm(chosen.directory, chosen.url, chosen.rest, SimVendor())
    async with asyncio.TaskGroup() as group:
        for number in range(chosen.machines + chosen.changed):
            conditions = AS_IT_SHOULD if number < chosen.machines else Conditions(boot_loader=True)
            group.create_task(storm.machine(chosen.first + number, conditions))


if __name__ == "__main__":
    asyncio.run(main())
