"""From a ticket to a configuration: enrol, attest, fetch, check.

    config = await boot_once(attester, ask, trust, patience, unlock)

    enrol  ─ who am I here, and where do I go ─┐ (unlock ─ the volumes of this machine, before any other session)
    attest ─ a token, bound to a key of this boot ─ fetch ─ by gate or broker ─ check ─ signed for this machine and this request
       ▲─────────── 401: attest again ───────────┘  503: wait, with jitter; enrol again where the doors have moved

* What counts as truth comes from the image (`image_trust.py`) and from nowhere else.
* Pool, key and nonce of a configuration are compared with what this machine asked for, never with what a door answered: a door
  that was taken over enrols a machine for another pool, and would have it take that pool's files.
* A refusal is final: it names the code and what an operator does about it. 503, a door that is not there and a body that was cut
  are not refusals: waiting grows and is spread, so that a rack does not come back as one machine.
* 401 means that a fresh attestation may help; after a few of them in a row it does not.
* The clock of a machine that never joined may be wrong. The doors' time is taken from the token; freshness comes from the nonce
  that this machine drew, so nobody gains by lying about the time.

`forwarder.py` does this for Ignition; virtual machines call it in process.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import Doors, Enrolled, EnrolmentFailed, HttpTransport, RetryBudget, enrol
from fastness.agent.boot.fetch import check_delivered, from_broker, from_gate, own_thumbprint
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.agent.errors import AgentError
from fastness.crypto.secret import SecretText
from fastness.protocol.config_proof import BadConfigProof, Served
from fastness.protocol.delivered import Delivered, Question
from fastness.protocol.door import is_origin
from fastness.runtime.retries import retry

ATTEMPTS: Final = 4
LONGEST_PAUSE: Final = 60.0
# 192 bits, drawn here: the answer to this request can have been made by nobody before it was asked.
NONCE_BYTES: Final = 24
# Enrolment tells where to go on: at another door, or, where a Machine that never attested had to give way, as a new one.
MOVED: Final = ("delivered-by-gate", "delivered-by-broker", "not-enrolled")
_AFTER_IMAGE: Final = "Build the image again with the current trust.json: its keys are not those of the cluster."
# What to do about a refusal, by its code. Everything else about evidence is told by `attest explain`.
HINTS: Final = {
    "ticket-required": "The user-data is old or of another cluster; take that of the pool's user-data Secret.",
    "ticket-expired": "On the control plane run: fastness ticket create --pool {pool}, and give the machine new user-data.",
    "ticket-used-up": "On the control plane run: fastness ticket create --pool {pool}, and give the machine new user-data.",
    "wrong-pool": "The user-data names pool {pool}, for which this machine has no ticket.",
    "other-pool": "The cluster has this machine in another pool than {pool}: give it that pool's user-data, or move it back "
    "with fastness machine move. If nobody moved it, look at the enrolment door.",
    "quarantined": "On the control plane run: fastness machine list, and approve the machine if that is right.",
    "revoked": "This machine was distrusted for good. On the control plane run: fastness machine list.",
    "identity-conflict": "On the control plane run: fastness machine list; another machine has this identity.",
    "endorsement-refused": "Add the root of the TPM's maker to attestation.extraRoots of the ConfidentialCluster.",
    "signature-key": _AFTER_IMAGE,
    "server-not-believed": _AFTER_IMAGE,
}
_EXPLAIN: Final = "On the control plane run: fastness attest explain {name}"
_LIST: Final = "On the control plane run: fastness machine list, and see the log of the doors."


MakeVolumes = Callable[[Enrolled], Awaitable[object]]
"""Makes or opens the volumes of an enrolled machine."""


class BootRefused(AgentError):
    """The machine gets no configuration, and waiting does not change that; `reason` is the code of who refused."""

    code = "boot-refused"
    hint = _LIST

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BootRequest:
    """What user-data says: which pool, with which ticket, at which server; and which configs the reader understands."""

    pool: str
    ticket: SecretText
    server: str
    accept: str = ""


@dataclass(frozen=True, slots=True)
class BootedConfig:
    """A configuration that the cluster signed for this machine, and when the cluster wants to see the next proof."""

    body: bytes
    machine: Enrolled
    reattest: timedelta | None = None

    @property
    def node_name(self) -> str:
        """The name that the machine joins with."""
        return self.machine.node_name


async def boot_once(
    attester: Attester, ask: BootRequest, trust: ImageTrust, patience: RetryBudget, unlock: MakeVolumes | None = None
) -> BootedConfig:
    """Come by the configuration of this machine; raises BootRefused, DoorUnreachable at the end of patience, DriverError.

    Volumes are made between enrolment and the first session, so that whatever is released lands on a disk that is encrypted;
    raises what that raises.
    """
    # The host writes user-data: the ticket must not be shown to a server of its choice where the image names one.
    if not trust.believes(ask.server):
        raise BootRefused(
            "server-not-believed", "user-data sends this machine to a server that its image does not allow",
            hint_for("server-not-believed", ask.pool),
        )  # fmt: skip
    end = patience.clock.monotonic() + patience.seconds
    while True:
        enrolled = await _enrolled(attester, ask, trust, patience)
        if unlock is not None:
            await unlock(enrolled)
        try:
            return await _Boot(attester, ask, trust, patience, enrolled, end).run()
        except _DeliveredElsewhere as moved:
            await patience.clock.sleep(moved.pause)


async def _enrolled(attester: Attester, ask: BootRequest, trust: ImageTrust, patience: RetryBudget) -> Enrolled:
    """Who this machine is, and where its doors are now; raises BootRefused, DoorUnreachable, DriverError."""
    try:
        async with HttpTransport(ask.server, trust.tls) as transport:
            enrolled = await enrol(transport, attester, ask.ticket, patience, ask.pool)
    except EnrolmentFailed as error:
        raise BootRefused(error.reason, error.message, hint_for(error.reason, ask.pool)) from error
    if enrolled.pool != ask.pool:
        # Told early, for its hint. What keeps the other pool's files away is that `_Boot` asks and checks with the pool of `ask`.
        text = f"this machine asked for pool {ask.pool}, and was enrolled for another one"
        raise BootRefused("other-pool", text, hint_for("other-pool", ask.pool))
    return replace(enrolled, server=ask.server)


def hint_for(reason: str, pool: str, name: str = "") -> str:
    """What an operator does about a refusal."""
    return HINTS.get(reason, _EXPLAIN if name else _LIST).format(pool=pool, name=name)


def doors_of(enrolled: Enrolled, pool: str) -> Doors:
    """Where an enrolled machine goes next; raises BootRefused."""
    doors = enrolled.doors
    hint = hint_for("no-doors", pool, enrolled.name)
    if doors is None:
        raise BootRefused("no-doors", "the enrolment door does not say where the broker is", hint)
    addresses = doors.broker, *((doors.gate,) if doors.via == "Gate" else ())
    # A path or a user name in such an address would be carried into every request that this machine makes.
    if not all(is_origin(url) for url in addresses):
        raise BootRefused("no-doors", "the enrolment door names doors that are no https addresses", hint)
    return doors


class _DeliveredElsewhere(Exception):
    """The way has changed since this machine enrolled; enrolment says how it goes on."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


class _Boot:
    """An enrolled machine on its way to its configuration, until `end` by the monotonic clock."""

    def __init__(
        self,
        attester: Attester,
        ask: BootRequest,
        trust: ImageTrust,
        patience: RetryBudget,
        enrolled: Enrolled,
        end: float,
    ) -> None:
        self._attester = attester
        self._ask = ask
        self._trust = trust
        self._patience = patience
        self._enrolled = enrolled
        self._doors = self._next_doors()
        self._end = end
        self._ahead = timedelta()
        self._reattest: timedelta | None = None

    async def run(self) -> BootedConfig:
        """Attest and fetch until there is a config or a refusal."""
        waited, unbelieved = 0, 0

        def pause(error: DoorRefused) -> float:
            nonlocal waited, unbelieved
            if error.passing:
                seconds, waited, unbelieved = self._pause(error, waited), waited + 1, 0
            # A bound on how often: each attestation costs a TPM a second, and one that is refused four times is refused for a
            # reason.
            elif (error.status == 401 or error.reason in MOVED) and unbelieved + 1 < ATTEMPTS:
                seconds, unbelieved = self._pause(error, 0), unbelieved + 1
            else:
                raise self._refused(error.reason, error.message) from error
            # The monotonic clock: the other one may be set while the machine waits, by the host if by nobody else.
            if self._patience.clock.monotonic() + seconds >= self._end:
                raise error
            if error.reason in MOVED:
                raise _DeliveredElsewhere(seconds) from error
            self._patience.tell(f"waiting for the configuration ({error.reason}): {error.message}")
            return seconds

        body = await retry(self._once, DoorRefused, pause, self._patience.clock)
        return BootedConfig(body, self._enrolled, self._reattest)

    async def _once(self) -> bytes:
        """One attestation and one request; the body, checked; raises DoorRefused, BootRefused, DriverError."""
        question = Question(_text(self._patience.entropy.token(NONCE_BYTES)), self._ask.accept)
        async with BrokerClient(self._doors.broker, self._trust.tls, self._attester, self._patience.entropy) as broker:
            await broker.attest()
            issued, self._reattest = broker.issued, broker.reattest
            # Only for expiries of proofs and signatures. A door that lies about the time gains a signature that it could not use
            # anyway.
            self._ahead = issued - self._patience.clock.now() if issued else timedelta()
            delivered = await self._fetch(broker, question)
        # Checked after the connection is closed: nothing that a door says after the bytes can change what they are compared with.
        self._check(delivered, question.nonce, await own_thumbprint(self._attester))
        return delivered.config

    async def _fetch(self, broker: BrokerClient, question: Question) -> Delivered:
        pool = self._ask.pool
        if self._doors.via == "Broker":
            return await from_broker(broker, pool, question)
        return await from_gate(self._doors.gate, self._trust.tls, broker, pool, question, self._now)

    def _check(self, delivered: Delivered, nonce: str, key: str) -> None:
        # The pool that was asked for and not the one that a door named: a signature for another pool does not fit.
        served = Served(delivered.config, self._ask.pool, self._enrolled.machine, nonce, key=key)
        try:
            check_delivered(delivered, served, self._trust.keys, self._now())
        except BadConfigProof as error:
            raise self._refused(error.code, error.detail) from error

    def _now(self) -> datetime:
        """The time by the clock of the doors."""
        return self._patience.clock.now() + self._ahead

    def _next_doors(self) -> Doors:
        return doors_of(self._enrolled, self._ask.pool)

    def _refused(self, reason: str, message: str) -> BootRefused:
        return BootRefused(reason, message, hint_for(reason, self._ask.pool, self._enrolled.name))

    def _pause(self, error: DoorRefused, waited: int) -> float:
        """What the door asks for, or a wait that grows; each with jitter, so that machines spread."""
        grown = self._patience.pause * math.pow(2, min(waited, 10))
        # A door that asks for a longer wait gets it; our own growth ends at a minute.
        seconds = min(max(error.retry_after, grown), max(LONGEST_PAUSE, error.retry_after))
        return seconds * (1 + self._patience.entropy.fraction())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
