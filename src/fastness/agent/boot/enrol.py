"""The machine's half of enrolment: show the ticket, prove the key, learn one's name.

    async with HttpTransport(url, trust) as transport:
        enrolled = await enrol(transport, attester, ticket, Patience(clock, entropy))

What is said and understood is without I/O (`first_message`, `read_offer`, `second_message`, `read_enrolled`); `enrol` carries it
over a transport, which is HTTPS on a machine and a function call in the simulator.

* 503 means come back: the wait is the door's Retry-After with jitter, so that a rack does not return as one.
* An enrolment that took too long is begun again; every other 4xx is final and carries the door's code.
* Repeating costs nothing: the door knows the key and gives the same answer.
* Answers are bounded and strict: the door is trusted with its certificate, not with our memory.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

import httpx

from fastness.agent.boot.attester import Attester
from fastness.agent.errors import AgentError
from fastness.crypto.secret import SecretText
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kube.client.pool import HttpsClient, TooLong, unreachable
from fastness.protocol.door import DoorRole
from fastness.protocol.enrolment import MAX_PUBLIC, TPM, EnrolmentFormatError, decoded, jwk_of, signed_message, text
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import retry, retry_after

BEGIN: Final = "/v1/enrol"
COMPLETE: Final = "/v1/enrol/complete"
MAX_ANSWER: Final = 64 * 1024
# A door that was taken over, or a proxy in front of it, must not send a machine to sleep for a year.
MAX_WAIT_SECONDS: Final = 300.0
_AGAIN: Final = frozenset({"enrolment-expired", "enrolment-invalid"})
_P256_SPKI_BYTES: Final = 91
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_ANSWER, max_depth=8)


class EnrolmentFailed(AgentError):
    """The door said no for good; `reason` is its code."""

    code = "enrolment-failed"
    hint = "See `fastness machine list` and the JoinTicket that the machine was given."

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


class DoorUnreachable(AgentError):
    """The door does not answer, or not in time."""

    code = "door-unreachable"
    hint = "Check the network, the address of the door, and that the machine knows the authority of the doors."


@dataclass(frozen=True, slots=True)
class Reply:
    """What a door answered."""

    status: int
    body: bytes
    retry_after: float = 0.0


class Transport(Protocol):
    """A way to the door."""

    async def post(self, path: str, body: bytes, ticket: SecretText | None = None) -> Reply:
        """Send JSON, with a ticket where one is asked for; raises DoorUnreachable."""


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How long to go on; jitter comes from the entropy. Before every wait `tell` hears what the machine waits for."""

    clock: Clock
    entropy: Entropy
    seconds: float = 3600.0
    pause: float = 5.0
    tell: Callable[[str], None] = lambda _: None


def once_each(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Says each news once: a wait of a night must not scroll away why."""
    last = ""

    def news(words: str) -> None:
        nonlocal last
        if words != last:
            tell(words)
        last = words

    return news


@dataclass(frozen=True, slots=True)
class Offer:
    """What the door wants to see: a credential opened, or a challenge signed."""

    enrolment: str
    credential: bytes = b""
    secret: bytes = b""
    challenge: bytes = b""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where the machine goes next: the broker to attest; `via` says whether it or the gate delivers."""

    broker: str
    gate: str = ""
    via: str = "Gate"


@dataclass(frozen=True, slots=True)
class Enrolled:
    """Who the machine is from now on, and where it goes next if the door said so."""

    machine: str
    name: str
    node_name: str
    pool: str
    state: str
    doors: Doors | None = None
    server: str = ""
    """The door that it enrolled at."""

    @property
    def approved(self) -> bool:
        """Whether it may attest; otherwise somebody has to approve it first."""
        return self.state == "Approved"


async def first_message(attester: Attester, pool: str = "") -> bytes:
    """What a machine says about itself; raises DriverError."""
    public = await attester.identity_public()
    message: dict[str, Any] = {"tee": attester.tee, **({"pool": pool} if pool else {})}
    if attester.tee != TPM:
        if len(public) != _P256_SPKI_BYTES:
            raise EnrolmentFailed(
                "bad-key", "the guest key is not a P-256 key", "Remove the sealed key and start again."
            )
        return json.encode({**message, "key": jwk_of(public[-64:])})
    certificates = await attester.ek_certificates()
    message |= {"ak_public": text(public), "ek_certificates": [text(entry) for entry in certificates]}
    # The bare key goes along only where no maker vouches for it: such a machine is trusted on first use, and marked for good.
    if not certificates:
        message["ek_public"] = text(await attester.ek_public())
    return json.encode(message)


def read_offer(body: bytes) -> Offer:
    """Understand the first answer; raises EnrolmentFailed."""
    value = _object(body)
    try:
        if "credential" in value:
            inner = value["credential"]
            if not isinstance(inner, dict):
                raise EnrolmentFailed("bad-answer", "the credential is not an object")
            return Offer(
                str(value["enrolment"]),
                credential=decoded(inner.get("credential"), "credential", MAX_PUBLIC),
                secret=decoded(inner.get("secret"), "secret", MAX_PUBLIC),
            )
        return Offer(str(value["enrolment"]), challenge=decoded(value.get("challenge"), "challenge", MAX_PUBLIC))
    except (KeyError, EnrolmentFormatError) as error:
        raise EnrolmentFailed("bad-answer", f"the door's offer cannot be understood: {error}") from error


async def second_message(attester: Attester, offer: Offer) -> bytes:
    """The proof that the door asked for; raises DriverError."""
    if offer.credential:
        opened = await attester.activate(offer.credential, offer.secret)
        return json.encode({"enrolment": offer.enrolment, "activated": text(opened.reveal())})
    # A prefix of ours goes before the challenge: a door must not be able to have any text signed with this key.
    signature = await attester.sign(signed_message(offer.challenge))
    return json.encode({"enrolment": offer.enrolment, "signature": text(signature)})


def read_enrolled(body: bytes) -> Enrolled:
    """Understand the last answer; raises EnrolmentFailed."""
    value = _object(body)
    names = ("machine", "name", "nodeName", "pool", "state")
    if not all(isinstance(value.get(name), str) for name in names):
        raise EnrolmentFailed("bad-answer", f"the door's answer lacks one of {', '.join(names)}")
    machine, name, node_name, pool, state = (str(value[member]) for member in names)
    return Enrolled(machine, name, node_name, pool, state, _doors(value.get("doors")))


def _doors(value: Any) -> Doors | None:
    if value is None:
        return None
    # Whether these are addresses that may be dialled is asked later, and the image's trust decides whom they lead to.
    complete = isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("broker", "gate", "via"))
    if not complete or not value["broker"] or value["via"] not in ("Gate", "Broker"):
        raise EnrolmentFailed("bad-answer", "the door does not say understandably where to go next")
    return Doors(value["broker"], value["gate"], value["via"])


async def enrol(
    transport: Transport, attester: Attester, ticket: SecretText, patience: RetryBudget, pool: str = ""
) -> Enrolled:
    """Enrol, however long the door needs; raises EnrolmentFailed, DoorUnreachable when patience ends, DriverError."""
    end = patience.clock.monotonic() + patience.seconds
    opening = await first_message(attester, pool)

    async def both_messages() -> Enrolled:
        offer = read_offer(_good(await transport.post(BEGIN, opening, ticket)))
        # The ticket went with the first message; the second is bound to the enrolment that it opened, so it is not shown again.
        return read_enrolled(_good(await transport.post(COMPLETE, await second_message(attester, offer))))

    def pause(error: Exception) -> float:
        if isinstance(error, EnrolmentFailed) and error.reason not in _AGAIN:
            raise error
        wait = 0.0 if isinstance(error, EnrolmentFailed) else patience.pause
        if isinstance(error, _ComeBack):
            wait = error.seconds or patience.pause
        # With jitter: a rack that is switched on as one must not come back as one.
        wait = min(wait, MAX_WAIT_SECONDS) * (1 + patience.entropy.fraction())
        if patience.clock.monotonic() + wait >= end:
            raise DoorUnreachable(f"the machine could not enrol in {patience.seconds:.0f} seconds: {error}")
        patience.tell(f"waiting to enrol: {error}")
        return max(wait, 1.0)

    return await retry(both_messages, (_ComeBack, DoorUnreachable, EnrolmentFailed), pause, patience.clock)


class HttpTransport:
    """HTTPS to the door; believes only the given context."""

    def __init__(self, url: str, trust: ssl.SSLContext, seconds: float = 30.0) -> None:
        self._http = HttpsClient(url, trust, seconds, DoorRole.ENROLMENT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def post(self, path: str, body: bytes, ticket: SecretText | None = None) -> Reply:
        """Send JSON; raises DoorUnreachable."""
        headers = {"content-type": "application/json"}
        if ticket is not None:
            headers["authorization"] = f"Bearer {ticket.reveal()}"
        try:
            answer = await self._http.ask("POST", path, headers, body, lambda _: MAX_ANSWER)
        except TooLong as error:
            raise EnrolmentFailed("bad-answer", f"the door answered with more than {MAX_ANSWER} bytes") from error
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise DoorUnreachable(f"the door {unreachable(error)}") from error
        return Reply(answer.status, answer.body, retry_after(answer.headers.get("retry-after")) or 0.0)


class _ComeBack(Exception):
    """The door asks for patience."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


def _good(reply: Reply) -> bytes:
    """The body of a good answer; raises _ComeBack, EnrolmentFailed."""
    if reply.status in (200, 201):
        return reply.body
    try:
        problem = _object(reply.body)
    except EnrolmentFailed:
        problem = {}
    code, detail = str(problem.get("code", "")), str(problem.get("detail", ""))
    # Only a decision is a 4xx. A door that starts, is full or lacks its API decides nothing: no machine is turned away for it.
    if reply.status >= 500:
        raise _ComeBack(f"{code or reply.status}: {detail}", reply.retry_after)
    raise EnrolmentFailed(code or str(reply.status), f"the door refused ({code or reply.status}): {detail}")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.decode(body, _LIMITS)
    except JsonError as error:
        raise EnrolmentFailed("bad-answer", "the door's answer is not JSON") from error
    if not isinstance(value, dict):
        raise EnrolmentFailed("bad-answer", "the door's answer is not an object")
    return value
