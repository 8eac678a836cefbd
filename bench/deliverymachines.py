"""The machines of the delivery benchmark: they boot by the dozen, over the real protocol, and say what they were told."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

import orjson

from bench.deliverytalk import ENTROPY, PATIENCE, POOL, TEES, say
from fastness.crypto.secret import SecretText
from fastness.runtime.clock import SystemClock

if TYPE_CHECKING:
    from fastness.agent.boot.boot import BootedConfig
    from fastness.sim.tee.attester import SimAttester

AT_ONCE = 48


class Machines:
    """The machines and what they know."""

    def __init__(self, where: Any) -> None:
        from fastness.agent.boot.boot import BootRequest
        from fastness.agent.boot.enrol import RetryBudget
        from fastness.agent.boot.image_trust import ImageTrust
        from fastness.formats import json
        from fastness.sim.tee import SimVendor

        self._vendor, self._made = SimVendor(), 0
        self._patience = RetryBudget(SystemClock(), ENTROPY, PATIENCE, pause=0.5)
        self._trust = ImageTrust.parse(json.encode({"ca": where["ca"], "configKeys": where["configKeys"]}))
        server = f"https://127.0.0.1:{where['enrolment']}"
        self._ask = BootRequest(POOL, SecretText(where["ticket"]), server, where["accept"])
        self._where = where
        self._last: tuple[SimAttester, BootedConfig] | None = None

    async def boot(self, count: int) -> int:
        """Boot so many new machines; how many got their config."""
        from fastness.agent.errors import AgentError

        waiting, booted = iter(range(count)), 0

        async def some() -> None:
            nonlocal booted
            for _ in waiting:
                try:
                    await self._one()
                    booted += 1
                except AgentError as error:
                    print(f"refused: {error}", file=sys.stderr)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(some())
        return booted

    async def _one(self) -> None:
        from fastness.agent.boot.boot import boot_once
        from fastness.sim.tee import default_image
        from fastness.sim.tee.attester import SimAttester

        self._made += 1
        attester = SimAttester(self._vendor.chip(TEES[self._made % 3]).boot(default_image()))
        self._last = attester, await boot_once(attester, self._ask, self._trust, self._patience)

    async def tokens(self, count: int) -> list[dict[str, str]]:
        """Live tokens with their keys, each of a new machine."""
        return [await self._token() for _ in range(count)]

    async def _token(self) -> dict[str, str]:
        from fastness.agent.boot.prove import BrokerClient

        await self._one()
        assert self._last is not None
        async with BrokerClient(
            f"https://127.0.0.1:{self._where['broker']}", self._trust.tls, self._last[0], ENTROPY
        ) as broker:
            await broker.attest()
            return {"token": broker.token.reveal(), "key": broker.key.to_pem().reveal().decode()}

    async def refused(self) -> float:
        """Ask gate and broker with a live token until both refuse; when the later did."""
        from fastness.agent.boot.fetch import from_gate
        from fastness.agent.boot.prove import BrokerClient, DoorRefused
        from fastness.protocol.delivered import Question

        await self._one()
        assert self._last is not None
        attester, booted = self._last
        url, gate = (f"https://127.0.0.1:{self._where[name]}" for name in ("broker", "gate"))
        async with BrokerClient(url, self._trust.tls, attester, ENTROPY) as broker:
            await broker.attest()
            say({"machine": booted.machine.name})
            for ask in (
                lambda: broker.resource("default/attestation-status/status"),
                lambda: from_gate(gate, self._trust.tls, broker, POOL, Question("n" * 24), lambda: datetime.now(UTC)),
            ):
                with suppress(DoorRefused):
                    while True:
                        await ask()
        return time.monotonic()


async def machines(orders: IO[bytes]) -> None:
    """The machines, until the input ends."""
    from fastness.runtime.memory import settle_memory

    made = Machines(orjson.loads(await asyncio.to_thread(orders.readline)))
    settle_memory()  # as the product does, which has its virtual machines in one process
    while line := await asyncio.to_thread(orders.readline):
        message = orjson.loads(line)
        if "boot" in message:
            say({"booted": await made.boot(message["boot"])})
        elif "tokens" in message:
            say(await made.tokens(message["tokens"]))
        else:
            say({"refused": await made.refused()})
