"""Doors and controllers of the simulation, composed as `fastness serve` composes them: each opens what one process runs.

Of the controllers one replica works, the one that has the lease; another takes over when it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fastness.app.controllers import product_loops
from fastness.crypto.aead import KeyRing
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.enrolment.door.server import enrolment_door
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.http.refusals import Refusal
from fastness.kube.controllers import Leadership, LostLease, Runner
from fastness.kube.controllers.leadership import LeaderSettings
from fastness.kube.informers import Informers
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import TileStore
from fastness.release.door.broker.opening import broker_door
from fastness.release.door.gate.server import gate
from fastness.runtime.clock import Entropy
from tests.simulation.configs import Configs
from tests.simulation.loop import OWNER, LoopClock
from tests.simulation.processes import Line, Opened

URLS = DoorUrls("https://broker.test", "https://gate.test")
LEASE = LeaderSettings.lasting(90)
ABSENT = ("operator-", "kata", "kbs-", "trustee-")
"""Loops over kinds of which no story has one: they would only cost time."""


@dataclass
class Plane:
    """What processes share: entropy, the key of sealed things, tiles; `keys` are those that the gate signs with."""

    entropy: Entropy
    cipher: KeyRing
    tiles: TileStore
    busy: list[Refusal] = field(default_factory=list)
    keys: dict[str, Ed25519Verifier] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, Opened]:
        """What each process does."""
        return {"enrol": self._enrol, "broker": self._broker, "gate": self._gate, "controllers": self._controllers}

    @asynccontextmanager
    async def _enrol(self, line: Line, clock: LoopClock) -> AsyncIterator[None]:
        async with (
            Informers(line, clock=clock, entropy=self.entropy) as informers,
            enrolment_door(line, informers, clock, self.entropy, urls=lambda: URLS),
        ):
            yield

    @asynccontextmanager
    async def _broker(self, line: Line, clock: LoopClock) -> AsyncIterator[None]:
        async with Informers(line, clock=clock, entropy=self.entropy) as informers:
            configs = await Configs.of(line, informers, clock, self.entropy, self.busy)
            async with broker_door(line, informers, clock, self.entropy, cipher=self.cipher, configs=configs):
                yield

    @asynccontextmanager
    async def _gate(self, line: Line, clock: LoopClock) -> AsyncIterator[None]:
        record = ClusterRecord(line, clock, self.entropy, "gate")
        async with Informers(line, clock=clock, entropy=self.entropy) as informers:
            configs = await Configs.of(line, informers, clock, self.entropy, self.busy)
            async with gate(line, informers, configs, record, clock, self.entropy):
                jwks = configs.served.signer.jwks()
                self.keys = {key.id: key for key in map(Ed25519Verifier.from_jwk, jwks)}
                yield

    @asynccontextmanager
    async def _controllers(self, line: Line, clock: LoopClock) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._lead(line, clock))
            try:
                yield
            finally:
                running.cancel()

    async def _lead(self, line: Line, clock: LoopClock) -> None:
        """Wait for the lease, work while it is held, begin again when it is lost."""
        leadership = Leadership(line, OWNER.get(), clock, self.entropy, LEASE)
        while True:
            async with leadership.held() as lost, Informers(line, clock=clock, entropy=self.entropy) as informers:
                product = product_loops(
                    line, informers, clock, self.entropy, may_write=leadership.require, tiles=self.tiles
                )
                loops = [loop for loop in product if not loop.name.startswith(ABSENT)]
                runner = Runner(loops, informers, clock, self.entropy)
                work, ended = asyncio.ensure_future(runner.run()), asyncio.ensure_future(lost.wait())
                try:
                    await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    work.cancel()
                    ended.cancel()
                    # Not `await work`: who is killed while its work ends would take that for the end of the work, and live on.
                    await asyncio.wait((work,))
                    _raise_defects(work)


def _raise_defects(work: asyncio.Future[None]) -> None:
    """What ended the work, unless it was meant to end or its lease was lost."""
    if not work.cancelled() and (error := work.exception()) is not None and not isinstance(error, LostLease):
        raise error
