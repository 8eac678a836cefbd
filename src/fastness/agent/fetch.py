"""The two ways in which a configuration reaches a machine that proved itself.

    gate      GET /config/<pool> with the token and a proof of possession; the signature is a header
    broker    the resource pool/<pool>/config, sealed to the key of this boot; the signature lies beside the config

Both give bytes and a statement about them, for a nonce that this machine drew for this one request. What the statement is worth
is checked by `boot.py`, in one place. Bodies are bounded; one that ends too early is no answer, and asking again may help.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import httpx

from fastness.agent.prove import BrokerClient, BrokerRefused, DoorRefused, refusal
from fastness.cluster.https import HttpsLines
from fastness.domain.attestation.configproof import HEADER
from fastness.formats.delivered import Delivered, DeliveredError, Question, parse_envelope

MAX_CONFIG: Final = 32 * 1024 * 1024
MAX_REFUSAL: Final = 4096
SECONDS: Final = 30.0
NONCE: Final = "dpop-nonce"
Now = Callable[[], datetime]


class GateRefused(DoorRefused):
    """The gate said no."""

    code = "gate-refused"


async def from_broker(broker: BrokerClient, pool: str, question: Question) -> Delivered:
    """The configuration as a resource of the broker; raises BrokerRefused."""
    opened = await broker.resource(f"pool/{pool}/config", question.query())
    try:
        return parse_envelope(opened.reveal())
    except DeliveredError as error:
        raise BrokerRefused(502, error.code, f"the broker's answer cannot be understood: {error}") from error


async def from_gate(
    gate: str, tls: ssl.SSLContext, broker: BrokerClient, pool: str, question: Question, now: Now
) -> Delivered:
    """The configuration from the gate; asks for a nonce of the gate first; raises GateRefused."""
    url = f"{gate.rstrip('/')}/config/{pool}"
    shown = {
        "authorization": f"DPoP {broker.token.reveal()}",
        **({"accept": question.accept} if question.accept else {}),
    }
    # No settings from the environment: a password file of a user has no say in how a machine shows itself.
    async with _client(tls) as http:
        answer = await _asked(http, url, shown)
        if answer.status_code == 401 and (nonce := answer.headers.get(NONCE, "")):
            answer = await _asked(http, url, {**shown, "dpop": broker.proof("GET", url, nonce, question.nonce, now())})
    if answer.status_code != 200:
        raise refusal(GateRefused, "gate", answer.status_code, answer.content, answer.headers.get("retry-after", ""))
    return Delivered(answer.content, answer.headers.get(HEADER, ""))


def _client(tls: ssl.SSLContext) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=HttpsLines(tls), timeout=SECONDS, follow_redirects=False, trust_env=False)


async def _asked(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> httpx.Response:
    """One request with a bounded answer; raises GateRefused."""
    try:
        async with _streamed(http, url, headers) as answer:
            most = MAX_CONFIG if answer.status_code == 200 else MAX_REFUSAL
            found = bytearray()
            async for piece in answer.aiter_bytes():
                found += piece
                if len(found) > most:
                    raise GateRefused(502, "answer-too-long", f"the gate answered with more than {most} bytes")
            kept = [(name, value) for name, value in answer.headers.raw if name.lower() != b"content-encoding"]
            return httpx.Response(answer.status_code, headers=kept, content=bytes(found))
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise GateRefused(503, "unreachable", f"the gate cannot be reached: {type(error).__name__}") from error


@asynccontextmanager
async def _streamed(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
    # Compressed answers would let a small one become a large one before anybody counts.
    async with http.stream("GET", url, headers={**headers, "accept-encoding": "identity"}) as answer:
        yield answer
