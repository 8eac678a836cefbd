"""The two ways in which a configuration reaches a machine that proved itself, and the one for nodes that never do.

    gate      GET /config/<pool> with the token and a proof of possession; the signature is a header
    broker    the resource pool/<pool>/config, sealed to the key of this boot; the signature lies beside the config
    config server    GET /config/<pool>?rendered=<name> with the certificate of the node; day two only

What a running machine has beside its config (`protocol.node_trust`) comes the same ways, as `trust` instead of `config`.

Each gives bytes and a statement about them, for a nonce that this machine drew for this one request. What the statement
is worth is checked by `boot.py`, on day two by `configs.py`. Bodies are bounded; one that ends too early is no answer, and asking
again may help.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

import httpx

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.prove import BrokerClient, BrokerRefused, DoorRefused, refusal
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.kube.client.pool import Answered, HttpsClient, TooLong, unreachable
from fastness.protocol.config_proof import HEADER, BadConfigProof, Copied, Served, check
from fastness.protocol.delivered import Delivered, DeliveredError, Question, parse_envelope
from fastness.protocol.door import DoorRole
from fastness.protocol.machine_names import identity_thumbprint

MAX_CONFIG: Final = 32 * 1024 * 1024
MAX_REFUSAL: Final = 4096
SECONDS: Final = 30.0
NONCE: Final = "dpop-nonce"
NODE_NONCE: Final = "fastness-nonce"
# What is asked for: the configuration, or what is beside it.
CONFIG: Final = "config"
Now = Callable[[], datetime]


class GateRefused(DoorRefused):
    """The gate said no."""

    code = "gate-refused"


class ConfigServerRefused(DoorRefused):
    """The config server said no."""

    code = "config-server-refused"


async def from_broker(broker: BrokerClient, pool: str, question: Question, tag: str = CONFIG) -> Delivered:
    """The configuration, or what is beside it, as a resource of the broker; raises BrokerRefused."""
    opened = await broker.resource(f"pool/{pool}/{tag}", question.query())
    try:
        return parse_envelope(opened.reveal())
    except DeliveredError as error:
        raise BrokerRefused(502, error.code, f"the broker's answer cannot be understood: {error}") from error


async def own_thumbprint(attester: Attester) -> str:
    """The thumbprint of this machine's identity, which statements about its configuration name; raises DriverError."""
    return identity_thumbprint(attester.tee, await attester.identity_public())


def check_delivered(delivered: Delivered, served: Served, keys: Mapping[str, Ed25519Verifier], now: datetime) -> None:
    """The statement about a configuration is the one that this machine asked for; raises BadConfigProof.

    A copy of the broker is signed for a pool and a rendered config; that it is for this machine and this request is the broker's
    word, in the seal that only this boot opens.
    """
    copy = delivered.sealed
    # Without a copy the signature itself names machine, key and nonce, so that an answer to another request is of no use here.
    if copy is None:
        check(delivered.signature, served, keys, now)
        return
    # There are none of what nodes have beside their configs: a broker that comes with one offers an authority that was taken out.
    if served.trust:
        raise BadConfigProof("signature-invalid", "whom to believe is never delivered as a copy")
    # The nonce is one that this machine drew for this request: an answer that was kept from before, however genuine, is
    # another's.
    if (copy.machine, copy.nonce) != (served.machine, served.nonce) or served.rendered not in ("", copy.rendered):
        raise BadConfigProof("signature-invalid", "the broker sealed this configuration for another machine or request")
    check(delivered.signature, Copied(delivered.config, served.pool, copy.rendered), keys, now)


async def from_gate(
    gate: str,
    tls: ssl.SSLContext,
    broker: BrokerClient,
    pool: str,
    question: Question,
    now: Now,
    tag: str = CONFIG,
) -> Delivered:
    """The configuration, or what is beside it, from the gate; asks for a nonce of the gate first; raises GateRefused."""
    path = f"/{tag}/{pool}"
    query = f"?{urlencode({'rendered': question.rendered})}" if question.rendered else ""
    credentials = {
        "authorization": f"DPoP {broker.token.reveal()}",
        **({"accept": question.accept} if question.accept else {}),
    }
    async with HttpsClient(gate, tls, SECONDS, DoorRole.GATE) as http:
        answer = await _get(http, path + query, credentials)
        # RFC 9449 §9 and §4.2: a resource server gives its nonce with a 401, and the proof names the URL without its query.
        if answer.status == 401 and (nonce := answer.headers.get(NONCE, "")):
            proof = broker.proof("GET", http.origin + path, nonce, question.nonce, now())
            answer = await _get(http, path + query, {**credentials, "dpop": proof})
    if answer.status != 200:
        raise refusal(GateRefused, "gate", answer.status, answer.body, answer.headers.get("retry-after", ""))
    return Delivered(answer.body, answer.headers.get(HEADER, ""))


async def from_config_server(
    url: str, tls: ssl.SSLContext, pool: str, question: Question, tag: str = CONFIG
) -> Delivered:
    """A rendered config, or what is beside it, for the node whose certificate `tls` shows; raises ConfigServerRefused."""
    async with HttpsClient(url, tls, SECONDS, DoorRole.CONFIG_SERVER) as http:
        query = f"?{urlencode({'rendered': question.rendered})}" if question.rendered else ""
        path = f"/{tag}/{quote(pool, safe='')}{query}"
        answer = await _get(http, path, {NODE_NONCE: question.nonce}, ConfigServerRefused, "config server")
    if answer.status != 200:
        later = answer.headers.get("retry-after", "")
        raise refusal(ConfigServerRefused, "config server", answer.status, answer.body, later)
    return Delivered(answer.body, answer.headers.get(HEADER, ""))


async def _get(
    http: HttpsClient, path: str, headers: dict[str, str], kind: type[DoorRefused] = GateRefused, door: str = "gate"
) -> Answered:
    """One request with a bounded answer; raises a kind of DoorRefused."""
    try:
        return await http.ask("GET", path, headers, b"", _most)
    except TooLong as error:
        raise kind(502, "answer-too-long", f"the {door}'s answer is too long: {error}") from error
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise kind(503, "unreachable", f"the {door} {unreachable(error)}") from error


def _most(status: int) -> int:
    # A refusal of megabytes is no refusal: whoever answers so wants the memory of the machine.
    return MAX_CONFIG if status == 200 else MAX_REFUSAL
