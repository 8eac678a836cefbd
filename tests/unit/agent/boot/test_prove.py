"""What a machine says to other doors about its token, and what it reads from it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from fastness.agent.boot.fetch import GateRefused
from fastness.agent.boot.prove import UNREACHABLE, BrokerClient, BrokerRefused, refusal
from fastness.crypto.mac import MacKey, MacRing
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.formats import json
from fastness.protocol.dpop import BadProof, Demand, check_proof, new_nonce
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.virtual import SeededEntropy

ENTROPY = SeededEntropy(7)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def client(token: str = "", port: int = 9, seconds: float = 30.0) -> BrokerClient:
    machine = SimAttester(SimVendor(ENTROPY, NOW).chip("tpm").boot())
    made = BrokerClient(f"https://127.0.0.1:{port}", ssl.create_default_context(), machine, ENTROPY, seconds)
    made.token = SecretText(token)
    return made


def token(payload: bytes) -> str:
    return f"e30.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.c2ln"


def test_the_time_of_the_doors_is_read_from_the_token() -> None:
    assert client(token(json.encode({"iat": int(NOW.timestamp())}))).issued == NOW


@pytest.mark.parametrize(
    "text",
    ["", "a.b", "a.!.c", token(b"[]"), token(b"{}"), token(b'{"iat":"x"}'), token(b'{"iat":1e300}'), token(b"no")],
)
def test_a_token_that_says_no_time_is_no_reason_to_stop(text: str) -> None:
    assert client(text).issued is None


def test_a_proof_is_for_one_request_and_one_key() -> None:
    mine, other = client("token"), client("token")
    macs = MacRing([MacKey(SecretBytes(b"m" * 32))])
    nonce = new_nonce(macs, NOW, ENTROPY)
    proof = mine.proof("GET", "https://gate/config/worker", nonce, "n" * 32, NOW)
    demand = Demand("GET", "https://gate/config/worker", "token")
    assert check_proof(proof, demand, mine.recipient, macs, NOW) == "n" * 32
    with pytest.raises(BadProof):
        check_proof(proof, demand, other.recipient, macs, NOW)
    with pytest.raises(BadProof):
        check_proof(proof, Demand("GET", "https://gate/config/master", "token"), mine.recipient, macs, NOW)
    with pytest.raises(BadProof):
        check_proof(proof, demand, mine.recipient, macs, NOW + timedelta(minutes=3))


@pytest.mark.parametrize(
    ("body", "later", "expected"),
    [
        (b'{"code":"revoked","detail":"no"}', "", ("revoked", 0.0)),
        (b"<html>", "7", ("403", 7.0)),
        (b"[]", "soon", ("403", 0.0)),
        (b'{"detail":"x"}', "999999", ("403", 0.0)),
    ],
)
def test_a_refusal_is_understood_as_far_as_it_can_be(body: bytes, later: str, expected: tuple[str, float]) -> None:
    refused = refusal(GateRefused, "gate", 403, body, later)
    assert (refused.reason, refused.retry_after, refused.passing) == (*expected, False)


async def test_a_broker_that_takes_the_connection_and_says_nothing_is_asked_again_later() -> None:
    never = asyncio.Event()

    async def listen(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        async with client(port=silent.sockets[0].getsockname()[1], seconds=0.1) as mine:
            with pytest.raises(BrokerRefused) as refused:
                await mine.attest()
        never.set()
    assert (refused.value.reason, refused.value.passing) == (UNREACHABLE, True)
