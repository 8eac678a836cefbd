"""Messages to the enrolment door that are huge, endless, malformed or changed: refused, and nothing is made."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from fastness.agent.boot.enrol import first_message
from fastness.formats import json
from fastness.keys.mac_keys import MacKeys
from fastness.protocol.enrolment import MAX_BODY
from fastness.sim.tee.attester import SimAttester
from tests.embedded.fixtures import Embedded
from tests.enrolling import World, code, doors, nothing_was_made


async def message(machine: SimAttester, **changes: Any) -> dict[str, Any]:
    """The first message with members changed; None takes one away."""
    found = json.decode(await first_message(machine))
    return {name: value for name, value in {**found, **changes}.items() if value is not None}


async def raw(world: World, ticket: str, header: str, chunks: int = 0) -> bytes:
    """What the door says to a head and some chunks of spaces; `cut` when it ends the connection."""

    def talk() -> bytes:
        head = f"POST /v1/enrol HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ticket}\r\n"
        head += f"content-type: application/json\r\n{header}\r\n\r\n"
        with (
            socket.create_connection(("127.0.0.1", world.door.port), timeout=10) as plain,
            world.trust.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            tls.sendall(head.encode())
            try:
                for _ in range(chunks):
                    tls.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
            except OSError:
                return b"cut"
            return tls.recv(4096)

    return await asyncio.to_thread(talk)


async def test_16_megabytes_are_refused_before_they_are_sent(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = (await world.ticket()).reveal()
        assert b" 413 " in (await raw(world, ticket, "content-length: 16777216")).splitlines()[0]
        answer = await world.post("/v1/enrol/complete", b" " * (MAX_BODY + 1))
        assert answer.status_code == 413
        await nothing_was_made(world)


async def test_a_body_that_never_ends_is_cut(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        said = await raw(world, (await world.ticket()).reveal(), "transfer-encoding: chunked", chunks=64)
        assert said == b"cut" or b" 413 " in said.splitlines()[0]
        await nothing_was_made(world)


MALFORMED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"extra": 1}, "unknown-member"),
    ({"ak_pubic": "eA=="}, "unknown-member"),
    ({"tee": "sgx"}, "unknown-tee"),
    ({"tee": None}, "unknown-tee"),
    ({"ak_public": "not base64!"}, "bad-base64"),
    ({"ak_public": "eA=="}, "bad-key"),
    ({"ak_public": None}, "bad-member"),
    ({"ek_certificates": "eA=="}, "bad-member"),
    ({"ek_certificates": ["eA=="] * 9}, "bad-member"),
    ({"ek_certificates": [7]}, "bad-member"),
    ({"ek_certificates": ["eA=="]}, "bad-certificate"),
    ({"pool": "../etc"}, "bad-member"),
    ({"pool": 7}, "bad-member"),
)


async def test_malformed_messages_are_400_and_say_what_is_wrong(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket()
        for change, expected in MALFORMED:
            answer = await world.post("/v1/enrol", await message(machine, **change), ticket)
            assert code(answer) == (400, expected), change
        await nothing_was_made(world)


async def test_other_content_and_broken_json_are_refused(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket()
        for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"tee": "tpm", "tee": "snp"}', b"\xff\xfe", b"[" * 5000):
            assert (await world.post("/v1/enrol", body, ticket)).status_code == 400, body[:20]
        assert (await world.post("/v1/enrol", {}, ticket, **{"content-type": "text/plain"})).status_code == 415
        assert (await world.post("/v1/enrol", b"x", ticket, **{"content-encoding": "gzip"})).status_code == 415


async def test_a_guest_key_that_is_no_point_is_refused(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, flat = await world.ticket(), "A" * 43
        for key in (
            {"kty": "EC", "crv": "P-256", "x": flat, "y": flat},
            {"kty": "EC", "crv": "P-384", "x": flat, "y": flat},
            {"kty": "EC", "crv": "P-256", "x": flat, "y": flat, "d": flat},
            {"kty": "RSA", "n": "x", "e": "AQAB"},
        ):
            answer = await world.post("/v1/enrol", {"tee": "snp", "key": key}, ticket)
            assert answer.status_code == 400, key


async def test_an_enrolment_that_was_changed_or_written_for_another_purpose_is_refused(
    embedded_server: Embedded,
) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket()
        begun = await world.begin(machine, ticket)
        proof = await world.proof(machine, begun)
        sealed = str(proof["enrolment"])
        for index in range(0, len(sealed), 61):
            changed = sealed[:index] + ("A" if sealed[index] != "A" else "B") + sealed[index + 1 :]
            answer = await world.post("/v1/enrol/complete", {**proof, "enrolment": changed})
            assert answer.status_code == 401, index
        keys: MacKeys = world.door.enrolments.sealer  # type: ignore[assignment]  # it is what the world gave it
        payload = keys.read("enrol", sealed)
        assert payload is not None
        cookie = keys.write("session", payload)
        assert code(await world.post("/v1/enrol/complete", {**proof, "enrolment": cookie})) == (
            401,
            "enrolment-invalid",
        )
        await nothing_was_made(world)
        assert machine.machine.thumbprint.encode() in payload
        assert b"activated" not in payload
