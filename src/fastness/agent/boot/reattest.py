"""Staying attested: the machine proves itself again, every interval, for as long as it runs.

    prove ─ good ─▶ wait an interval, a little less by chance ─▶ prove …
          ─ 503, unreachable ─▶ wait, longer each time, never longer than the interval
          ─ refused ─▶ say it once, and try again at the interval: an operator may have put it right

The interval is the cluster's: each token says it. One good round costs the cluster one write, which the verifier makes; there is
no heartbeat beside it. When certificates of the node are due, the proof names their new keys (`node_certificates.py`). `Rounds`
decides when, without I/O; `Staying` carries it out, on real machines and on virtual ones alike.

* A machine that has just joined proves itself once more: that proof names the key that its kubelet serves with.
* After a reboot the first round comes at once: what was booted now is what counts.
* `proved` is told of each good round who the machine is and at which address the broker was: it goes into the note that the next
  boot reads before its disks are open. That it cannot be written is worth a word and no reason to stop.
* Waits are spread, so that a rack does not come as one machine, and never beyond the interval: a proof counts for two of them.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.node_certificates import NodeCertificates
from fastness.agent.boot.prove import UNREACHABLE, BrokerClient, DoorRefused
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.observe.logs import logger
from fastness.protocol.node_keys import NamedKeys
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import Backoff

DEFAULT_INTERVAL: Final = timedelta(minutes=15)
# The interval comes in a token: a broker that says zero must not make the machine prove itself without a pause.
SHORTEST: Final = 5.0
SPREAD: Final = 0.2
BACKOFF: Final = Backoff(first=2.0, most=120.0)
_log = logger("reattest")
Proved = Callable[[str, str], object]
"""Told after a good round: the uid of this machine, and the address of the broker. Raises AgentError."""


class Rounds:
    """When to prove oneself next, and whether a failure is worth saying."""

    def __init__(self, entropy: Entropy, interval: timedelta = DEFAULT_INTERVAL, backoff: Backoff = BACKOFF) -> None:
        self._entropy = entropy
        self._backoff = backoff
        self._failures = 0
        self._last_reason = ""
        self.interval = max(SHORTEST, interval.total_seconds())

    @property
    def regular(self) -> float:
        """Seconds until a round that follows a good one."""
        return self.interval * (1 - SPREAD * self._entropy.fraction())

    def proved(self, interval: timedelta | None = None) -> float:
        """A round went well; seconds until the next, at the interval that the cluster asked for."""
        self._failures, self._last_reason = 0, ""
        if interval is not None:
            self.interval = max(SHORTEST, interval.total_seconds())
        return self.regular

    def missed(self, retry_after: float = 0.0) -> float:
        """Nobody could judge; seconds until it is tried again."""
        wait = self._backoff.delay(self._failures, self._entropy.fraction())
        self._failures += 1
        # Never beyond the interval: a proof counts for two, and a door that asks for hours would let the node lose its standing.
        return min(max(wait, retry_after * (1 + SPREAD * self._entropy.fraction())), self.interval)

    def refused(self, reason: str) -> tuple[float, bool]:
        """The machine was refused; seconds until the next round, and whether the reason is news."""
        news, self._last_reason, self._failures = reason != self._last_reason, reason, 0
        return self.regular, news


class Staying:
    """One machine that goes on proving itself."""

    def __init__(
        self,
        attester: Attester,
        broker: Callable[[], str],
        trust: Callable[[], ssl.SSLContext],
        clock: Clock,
        entropy: Entropy,
        *,
        name: str = "",
        certificates: NodeCertificates | None = None,
        proved: Proved | None = None,
        lost: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`lost` looks for the broker where it may have gone, when nobody answers at its address."""
        self._attester = attester
        self._broker = broker
        self._trust = trust
        self._clock = clock
        self._entropy = entropy
        self._name = name
        self._certificates = certificates
        self._proved = proved
        self._lost = lost
        self._unremembered = ""
        self.rounds = Rounds(entropy)

    async def run(self, first: float = 0.0) -> None:
        """Prove oneself until cancelled; the first round comes after so many seconds."""
        wait = first
        while True:
            await (self._clock.sleep(wait) if self._certificates is None else self._certificates.wait(wait))
            wait = await self.round()

    async def round(self) -> float:
        """One round; seconds until the next."""
        try:
            address = self._broker()
            async with BrokerClient(address, self._trust(), self._attester, self._entropy) as broker:
                await broker.attest(keys=await self._new_keys())
                wait = self.rounds.proved(broker.reattest)
                machine = broker.machine
            self._remember(machine, address)
            return await self._renewed(wait)
        except DoorRefused as error:
            if error.reason == UNREACHABLE and self._lost is not None:
                await self._lost()
            if error.passing or error.status == 401:
                # 401 is a challenge that grew old on the way: a new one helps.
                return self.rounds.missed(error.retry_after)
            wait, news = self.rounds.refused(error.reason)
            if news:
                _log.warning("agent.refused", node=self._name, reason=error.reason, error=error, hint=error.hint)
            return wait
        except DriverError as error:
            _log.warning("agent.unproved", node=self._name, code=error.code, error=error)
            return self.rounds.missed()

    def _remember(self, machine: str, address: str) -> None:
        if self._proved is None:
            return
        try:
            self._proved(machine, address)
        except AgentError as error:
            news, self._unremembered = str(error) != self._unremembered, str(error)
            if news:
                _log.warning("agent.unnoted", node=self._name, error=error, hint=error.hint)

    async def _new_keys(self) -> NamedKeys | None:
        return await self._certificates.new_keys() if self._certificates is not None else None

    async def _renewed(self, wait: float) -> float:
        """Renew what the proof named; seconds until the next."""
        if self._certificates is None:
            return wait
        await self._certificates.renew()
        return self._certificates.seconds(wait)
