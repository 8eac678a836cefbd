"""The two ways in which a configuration reaches a machine that proved itself.

    gate      GET /config/<pool> with the token and a proof of possession; the signature is a header
    broker    the resource pool/<pool>/config, sealed to the key of this boot; the signature lies beside the config

Both give bytes and a statement about them, for a nonce that this machine drew for this one request. What the statement is worth
is checked by `boot.py`, on day two by `configs.py`. Bodies are bounded; one that ends too early is no answer, and asking again
may help.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

import httpx

from fastness.agent.prove import BrokerClient, BrokerRefused, DoorRefused, refusal
from fastness.cluster.https import Answered, HttpsClient, TooLong, unreachable
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
    path, query = f"/config/{pool}", f"?{urlencode({'rendered': question.rendered})}" if question.rendered else ""
    shown = {
        "authorization": f"DPoP {broker.token.reveal()}",
        **({"accept": question.accept} if question.accept else {}),
    }
    async with HttpsClient(gate, tls, SECONDS) as http:
        answer = await _asked(http, path + query, shown)
        if answer.status == 401 and (nonce := answer.headers.get(NONCE, "")):
            proof = broker.proof("GET", http.origin + path, nonce, question.nonce, now())
            answer = await _asked(http, path + query, {**shown, "dpop": proof})
    if answer.status != 200:
        raise refusal(GateRefused, "gate", answer.status, answer.body, answer.headers.get("retry-after", ""))
    return Delivered(answer.body, answer.headers.get(HEADER, ""))


async def _asked(http: HttpsClient, path: str, headers: dict[str, str]) -> Answered:
    """One request with a bounded answer; raises GateRefused."""
    try:
        return await http.ask("GET", path, headers, b"", _most)
    except TooLong as error:
        raise GateRefused(502, "answer-too-long", f"the gate's answer is too long: {error}") from error
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise GateRefused(503, "unreachable", f"the gate {unreachable(error)}") from error


def _most(status: int) -> int:
    return MAX_CONFIG if status == 200 else MAX_REFUSAL
