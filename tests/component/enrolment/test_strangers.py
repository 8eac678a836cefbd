"""What strangers and holders of tickets try at the enrolment door, over TLS; each refusal leaves nothing behind."""

from __future__ import annotations

import ast
import inspect

import httpx

from fastness.agent.boot.enrol import first_message
from fastness.enrolment import clevis_pin
from fastness.enrolment import enrolment as protocol
from fastness.enrolment.door.app import STATUS, EnrolDoor
from fastness.enrolment.door.pace import Pace
from fastness.enrolment.live import enrolments as enrolment
from fastness.enrolment.live import pin_registration
from fastness.formats import json
from fastness.http.limits import Rate
from fastness.kinds.trusted_execution.membership import Membership
from fastness.record.entry import RecordEntry
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, NOBODY, code, doors, nothing_was_made


async def test_every_route_is_refused_to_strangers(embedded_server: Embedded) -> None:
    expected = {
        "nothing": 200,
        "ticket": 401,
        "enrolment": 401,
        "nobody": 403,
        "pin-ticket": 403,
        "invitation": 401,
    }
    async with doors(embedded_server.cluster) as world:
        body = json.encode({"enrolment": "x" * 60, "activated": "eA=="})
        for route in world.door.routes:
            for method in route.methods:
                sent = {"content": body, "headers": {"content-type": "application/json"}} if method != "GET" else {}
                answer = await world.http.request(method, route.path, **sent)  # type: ignore[arg-type]  # by method
                assert answer.status_code == expected[route.auth.shows], (method, route.path)
        assert {route.auth.shows for route in world.door.routes} == set(expected)
        await nothing_was_made(world)


async def test_only_post_enrols(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        headers = {"authorization": f"Bearer {(await world.ticket()).reveal()}"}
        for path in ("/v1/enrol", "/v1/enrol/complete"):
            for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
                answer = await world.http.request(method, path, headers=headers)
                assert answer.status_code == 405, (method, path)
        for path in ("/", "/v1", "//v1/enrol", "/v1/enrol/x", "/v1/%2e%2e/v1/enrol", "/v1/%2565nrol", "/V1/enrol"):
            assert (await world.post(path, {})).status_code == 404, path
        await nothing_was_made(world)


async def test_the_registration_of_trusted_execution_clusters_is_refused_with_a_hint(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        body = json.encode({"public_key": "MIIB", "uuid": "316809b1-ea29-448c-accb-78c5c6bf5206"})
        answer = await world.http.put("/register-ak", content=body, headers={"content-type": "application/json"})
        assert code(answer) == (403, "ticket-enrolment-only")
        assert "/v1/enrol" in answer.json()["detail"]
        assert code(await world.http.get("/ignition-clevis-pin-trustee")) == (403, "ticket-enrolment-only")
        await nothing_was_made(world)


async def test_a_stranger_with_a_wrong_ticket_is_refused_before_the_body_is_read(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        for credential in ("", NOBODY, "garbage", "fst_" + "é"):
            header = {b"authorization": f"Bearer {credential}".encode()} if credential else {}
            answer = await world.http.post("/v1/enrol", content=b"{not json", headers=header)
            assert code(answer) == (401, "ticket-required")
        assert world.record.entries == []


async def test_a_flood_is_slowed_down_and_wrong_tickets_cost_more(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        door = EnrolDoor(world.door.enrolments, world.clock, ENTROPY, pace=Pace(Rate(25, 1), Rate(5, 1))).app
        transport = httpx.ASGITransport(app=door, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="https://door") as http:
            answers = [await http.post("/v1/enrol") for _ in range(6)]
            assert [answer.status_code for answer in answers] == [401, 401, 401, 503, 503, 503]
            assert code(answers[-1]) == (503, "slow-down")
            assert int(answers[-1].headers["retry-after"]) >= 1
        ticket = await world.ticket()
        other = httpx.ASGITransport(app=door, client=("192.0.2.2", 1))
        async with httpx.AsyncClient(transport=other, base_url="https://door") as http:
            headers = {"authorization": f"Bearer {ticket.reveal()}", "content-type": "application/json"}
            body = await first_message(world.machine("snp"))
            statuses = [(await http.post("/v1/enrol", content=body, headers=headers)).status_code for _ in range(7)]
            assert statuses == [200, 200, 200, 200, 200, 503, 503]


async def test_no_refusal_holds_a_ticket_or_the_secret_of_a_credential(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine = await world.ticket(uses=1), world.machine()
        begun = await world.begin(machine, ticket)
        proof = await world.proof(machine, begun)
        await world.post("/v1/enrol/complete", proof)
        late = world.machine()
        answers = [await world.begin(late, ticket), await world.post("/v1/enrol/complete", {"enrolment": "x"})]
        stored = repr(world.record.entries) + "".join(answer.text for answer in answers)
        stored += str(await world.machines()) + str(await world.keys()) + str(await world.ticket_object(ticket))
        for secret in (ticket.reveal(), str(proof["activated"])):
            assert secret not in stored
        assert all(isinstance(entry, RecordEntry) for entry in world.record.entries)


def test_every_code_of_the_protocol_has_its_place_in_the_table() -> None:
    codes = {entry[0] for entry in enrolment._TICKET_REFUSALS.values()}
    codes |= {str(standing).lower() for standing in (Membership.QUARANTINED, Membership.REVOKED)}
    for module in (protocol, enrolment, clevis_pin, pin_registration):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "EnrolmentRefused":
                first = node.args[0]
                codes |= {str(first.value)} if isinstance(first, ast.Constant) else set()
    assert codes == set(STATUS)
    assert set(STATUS.values()) <= {400, 401, 403, 503}
