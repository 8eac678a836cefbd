"""A machine that keeps its token: whoever is revoked uses what it still holds, at once and until it has expired.

A machine of ours would stop asking. Somebody who took one over would not: the token and the key of this boot are in its memory,
and the doors must know that they count no more. What a door gives all the same is seen by whoever watches the wire.
"""

from __future__ import annotations

import asyncio
import base64

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.fetch import from_broker, from_gate
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.protocol.delivered import Question
from fastness.runtime.clock import Entropy
from fastness.sim.first_boot import ACCEPT
from tests.simulation.loop import LoopClock
from tests.simulation.network import CALLER

BROKER, GATE = "https://broker.test", "https://gate.test"
PROVE_SECONDS = 20.0


class HeldToken:
    """A token of one boot, with the key that it is bound to."""

    def __init__(self, machine: int, broker: BrokerClient, trust: ImageTrust, entropy: Entropy) -> None:
        self._machine, self._broker, self._trust, self._entropy = machine, broker, trust, entropy
        self.answers: list[str] = []

    @classmethod
    async def take(cls, machine: int, attester: Attester, trust: ImageTrust, entropy: Entropy) -> HeldToken | None:
        """Prove the machine once more and keep what comes; None when the doors do not give anything."""
        CALLER.set(str(machine))
        broker = BrokerClient(BROKER, trust.tls, attester, entropy)
        try:
            async with asyncio.timeout(PROVE_SECONDS):
                await broker.attest()
        except (DoorRefused, TimeoutError):
            return None
        return cls(machine, broker, trust, entropy)

    async def use(self) -> None:
        """Ask both doors for the configuration."""
        CALLER.set(str(self._machine))
        for door in (self._at_gate, self._at_broker):
            try:
                await door()
                self.answers.append("given")
            except DoorRefused as error:
                self.answers.append(f"{error.status} {error.reason}")

    async def _at_gate(self) -> None:
        await from_gate(GATE, self._trust.tls, self._broker, "worker", self._question(), LoopClock().now)

    async def _at_broker(self) -> None:
        await from_broker(self._broker, "worker", self._question())

    def _question(self) -> Question:
        return Question(base64.urlsafe_b64encode(self._entropy.token(16)).decode().rstrip("="), ACCEPT)
