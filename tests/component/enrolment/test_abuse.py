"""What strangers and holders of tickets try at the enrolment door, over TLS; each refusal leaves nothing behind."""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.agent.boot.enrol import first_message
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.machines import find_machine
from fastness.enrolment import enrolment as protocol
from fastness.enrolment.door.app import STATUS, EnrolDoor, Pace
from fastness.enrolment.live import enrolments as enrolment
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.formats import json
from fastness.formats.evidence.tpm.public import Attributes
from fastness.http.limits import Rate
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.membership import Membership
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.enrolment import MAX_BODY
from fastness.record.entry import RecordEntry
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from fastness.sim.tee.writers import tpm2
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, World, change_cluster, code, doors, until

NOBODY = "fst_" + "x" * 43


async def nothing_was_made(world: World) -> None:
    """No Machine, no key, no use."""
    assert await world.machines() == []
    assert await world.keys() == []
    assert not world.record.of("enrol")


async def message(machine: SimAttester, **changes: Any) -> dict[str, Any]:
    """The first message with members changed; None takes one away."""
    found = json.decode(await first_message(machine))
    return {name: value for name, value in {**found, **changes}.items() if value is not None}


async def test_every_route_is_refused_to_strangers(embedded_server: Embedded) -> None:
    expected = {
        "nothing": 200,
        "ticket": 401,
        "enrolment": 401,
        "nobody": 403,
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
        for shown in ("", NOBODY, "garbage", "fst_" + "é"):
            header = {b"authorization": f"Bearer {shown}".encode()} if shown else {}
            answer = await world.http.post("/v1/enrol", content=b"{not json", headers=header)
            assert code(answer) == (401, "ticket-required")
        assert world.record.entries == []


async def test_a_door_that_cannot_know_a_ticket_asks_its_machine_to_come_again(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the cache of tickets is cut off from the API, a ticket may be newer than it."""
    async with doors(embedded_server.cluster) as world:
        monkeypatch.setattr(world.door.enrolments.sources.tickets, "_watching", False)
        shown = {b"authorization": f"Bearer {NOBODY}".encode()}
        unknown = await world.http.post("/v1/enrol", content=b"{}", headers=shown)
        assert code(unknown) == (503, "cluster-unavailable")
        assert int(unknown.headers["retry-after"]) > 0
        assert code(await world.http.post("/v1/enrol", content=b"{}")) == (401, "ticket-required")


async def test_a_ticket_counts_from_the_instant_that_it_is_made(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The door's cache hears of nothing here: a ticket that it does not know is looked up before it is refused for good."""
    async with doors(embedded_server.cluster) as world:
        monkeypatch.setattr(world.door.enrolments.sources.tickets, "_take", lambda _event: None)
        made = mint(ENTROPY)
        ticket = join_ticket("new", made, "worker", world.clock.now() + timedelta(hours=1), uses=1)
        await world.cluster.create(JOIN_TICKET.resource, ticket)
        assert (await world.enrol(world.machine(), made)).pool == "worker"


async def test_a_ticket_that_expired_or_was_deleted_is_refused(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(lifetime=timedelta(minutes=1))
        begun = await world.begin(machine, ticket)
        world.clock.ahead += timedelta(seconds=61)
        assert code(await world.begin(machine, ticket)) == (401, "ticket-expired")
        assert code(await world.complete(machine, begun)) == (401, "ticket-expired")
        other = await world.ticket()
        begun = await world.begin(machine, other)
        await world.cluster.delete(JOIN_TICKET.resource, f"t-{ticket_hash(other)[-12:]}")
        assert code(await world.complete(machine, begun)) == (401, "ticket-required")
        await nothing_was_made(world)


async def test_a_ticket_made_anew_under_the_same_name_is_another_one(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        stored = await world.ticket_object(ticket)
        await world.cluster.delete(JOIN_TICKET.resource, stored["metadata"]["name"])
        again = {**stored, "metadata": {"name": stored["metadata"]["name"]}}
        await world.cluster.create(JOIN_TICKET.resource, again)
        assert code(await world.complete(machine, begun)) == (401, "ticket-required")
        await nothing_was_made(world)


async def test_a_ticket_is_good_for_its_pool_alone(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "pools": [{"name": "plain", "trustModel": "None"}]}
    async with doors(embedded_server.cluster, spec) as world:
        machine = world.machine()
        assert code(await world.begin(machine, await world.ticket("infra"), pool="worker")) == (403, "wrong-pool")
        assert code(await world.begin(machine, await world.ticket("plain"))) == (403, "pool-not-attested")
        await nothing_was_made(world)
        enrolled = await world.enrol(machine, await world.ticket("infra"))
        assert enrolled.pool == "infra"
        begun = await world.begin(machine, await world.ticket("worker"))
        assert code(await world.complete(machine, begun)) == (403, "identity-conflict")


async def test_evidence_that_the_cluster_does_not_take_is_refused_at_once(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "attestation": {"evidence": ["snp"]}}
    async with doors(embedded_server.cluster, spec) as world:
        ticket = await world.ticket()
        assert code(await world.begin(world.machine("tpm"), ticket)) == (403, "evidence-not-accepted")
        assert (await world.enrol(world.machine("snp"), ticket)).approved


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


async def test_an_endorsement_of_another_maker_is_refused_and_recorded(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        foreign = SimAttester(SimVendor(ENTROPY).chip("tpm").boot())
        answer = await world.begin(foreign, await world.ticket())
        assert code(answer) == (403, "endorsement-refused")
        (entry,) = world.record.of("enrol-refused")
        assert entry.who == foreign.machine.thumbprint
        assert entry.detail["code"] == "endorsement-refused"
        assert entry.detail["checks"]
        await nothing_was_made(world)


async def test_a_simulated_tpm_is_refused_by_a_cluster_that_is_not_simulated(tmp_path: Path) -> None:
    async with (
        open_apiserver(ServerOptions(tmp_path / "state", simulated=False), PRODUCT) as server,
        doors(server.cluster, {"mode": "Enforce", "simulated": False}) as world,
    ):
        assert code(await world.begin(world.machine(), await world.ticket())) == (403, "endorsement-refused")
        await nothing_was_made(world)


async def test_a_key_that_could_sign_foreign_bytes_or_leave_its_tpm_is_no_identity(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"trustOnFirstUse": True}}
    needed = (
        Attributes.RESTRICTED, Attributes.FIXED_TPM, Attributes.FIXED_PARENT, Attributes.SENSITIVE_DATA_ORIGIN, Attributes.SIGN,
    )  # fmt: skip
    async with doors(embedded_server.cluster, spec) as world:
        ticket = await world.ticket()
        for missing in needed:
            for certified in (True, False):
                weak = tpm2.AK_ATTRIBUTES & ~int(missing)
                answer = await world.begin(world.machine("tpm", certified=certified, ak_attributes=weak), ticket)
                assert code(answer) == (403, "endorsement-refused"), missing
                assert "attestation-key-attributes" in answer.json()["detail"]
        await nothing_was_made(world)


async def test_a_credential_opens_only_in_the_tpm_that_it_was_made_for(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket(uses=1)
        machine, thief = world.machine(), world.machine()
        begun = await world.begin(machine, ticket)
        for guess in (b"\0" * 32, b"", b"x"):
            body = {"enrolment": begun.json()["enrolment"], "activated": base64.b64encode(guess or b"y" * 32).decode()}
            assert code(await world.post("/v1/enrol/complete", body)) == (403, "activation-failed")
        other = await world.begin(thief, ticket)
        stolen = {**await world.proof(thief, other), "enrolment": begun.json()["enrolment"]}
        assert code(await world.post("/v1/enrol/complete", stolen)) == (403, "activation-failed")
        wrong_kind = {"enrolment": begun.json()["enrolment"], "signature": base64.b64encode(b"s" * 64).decode()}
        assert code(await world.post("/v1/enrol/complete", wrong_kind)) == (403, "activation-failed")
        await nothing_was_made(world)
        assert "status" not in await world.ticket_object(ticket)
        assert len(world.record.of("enrol-refused")) == 5


async def test_a_guest_key_must_sign_its_own_challenge(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine, other = await world.ticket(), world.machine("snp"), world.machine("snp")
        begun, foreign = await world.begin(machine, ticket), await world.begin(other, ticket)
        swapped = {**await world.proof(other, foreign), "enrolment": begun.json()["enrolment"]}
        assert code(await world.post("/v1/enrol/complete", swapped)) == (403, "signature-invalid")
        plain = await machine.sign(base64.b64decode(begun.json()["challenge"]))
        bare = {"enrolment": begun.json()["enrolment"], "signature": base64.b64encode(plain).decode()}
        assert code(await world.post("/v1/enrol/complete", bare)) == (403, "signature-invalid")
        await nothing_was_made(world)


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
        keys: MacKeys = world.door.enrolments._sealer  # type: ignore[assignment]  # it is what the world gave it
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


async def test_switching_trust_on_first_use_off_stops_an_enrolment_that_began(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"trustOnFirstUse": True}}
    async with doors(embedded_server.cluster, spec) as world:
        machine = world.machine("tpm", certified=False)
        begun = await world.begin(machine, await world.ticket())
        await change_cluster(world, join={"trustOnFirstUse": False})
        assert code(await world.complete(machine, begun)) == (403, "first-use-not-allowed")
        await nothing_was_made(world)


async def test_nothing_is_made_when_the_record_cannot_be_written(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        world.record.broken = True
        answer = await world.complete(machine, begun)
        assert code(answer) == (503, "record-failed")
        assert int(answer.headers["retry-after"]) > 0
        assert await world.machines() == []
        world.record.broken = False
        assert (await world.complete(machine, begun)).status_code == 201
        assert (await world.ticket_object(ticket))["status"]["used"] == 1


async def test_a_cluster_that_does_not_answer_asks_machines_to_come_back(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket()
        begun = await world.begin(machine, ticket)

        async def away(*_: Any, **__: Any) -> Any:
            raise Unavailable("etcd has no leader")

        with monkeypatch.context() as patch:
            patch.setattr(type(world.cluster), "create", away)
            answer = await world.complete(machine, begun)
        assert code(answer) == (503, "cluster-unavailable")
        assert "etcd" not in answer.text
        assert (await world.complete(machine, begun)).status_code == 201


async def test_a_defect_is_an_answer_with_a_correlation_and_nothing_else(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(embedded_server.cluster) as world:

        def broken(_: Any) -> Any:
            raise ZeroDivisionError("canary")

        monkeypatch.setattr(world.door.enrolments, "admit", broken)
        answer = await world.begin(world.machine("snp"), NOBODY)
        assert code(answer) == (500, "internal")
        assert answer.headers["audit-id"] in answer.json()["detail"]
        assert "canary" not in answer.text


async def test_a_machine_that_died_half_made_is_completed_by_the_next_try(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        half = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {
                "name": f"machine-{machine.machine.thumbprint[7:27]}", "namespace": "fastness-system",
                "labels": {"fastness.dev/pool": "worker"},
            },
            "spec": {"id": ENTROPY.uid(), "approval": "Approved"},
        }  # fmt: skip
        await world.cluster.create(MACHINE.resource, half)
        assert (await world.complete(machine, begun)).status_code == 200
        (found,) = await world.machines()
        assert found["status"]["keyThumbprint"] == machine.machine.thumbprint
        assert len(await world.keys()) == 1


async def test_a_machine_under_the_name_of_this_key_that_has_another_key_is_never_taken_over(
    embedded_server: Embedded,
) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        name = f"machine-{machine.machine.thumbprint[7:27]}"
        body = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {"name": name, "namespace": "fastness-system"}, "spec": {"id": ENTROPY.uid()},
        }  # fmt: skip
        await world.cluster.create(MACHINE.resource, body)
        foreign = {"status": {"keyThumbprint": f"{machine.machine.thumbprint[:27]}{'0' * 44}", "pool": "worker"}}
        options = WriteOptions(subresource="status")
        await world.cluster.patch(MACHINE.resource, name, foreign, PatchType.MERGE, "fastness-system", options)
        assert await find_machine(world.cluster, KeyKind.AK, machine.machine.thumbprint) is None
        answer = await world.complete(machine, await world.begin(machine, ticket))
        assert code(answer) == (403, "identity-conflict")
        assert "status" not in await world.ticket_object(ticket)


async def test_a_machine_that_is_being_deleted_is_waited_for(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        enrolled = await world.enrol(machine, ticket)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await world.cluster.patch(MACHINE.resource, enrolled.name, held, PatchType.MERGE, "fastness-system")
        await world.cluster.delete(MACHINE.resource, enrolled.name, "fastness-system")
        assert await find_machine(world.cluster, KeyKind.AK, machine.machine.thumbprint) is None
        answer = await world.complete(machine, await world.begin(machine, ticket))
        assert code(answer) == (503, "cluster-unavailable")


async def heard_of_all(world: World) -> None:
    """Wait until the door has heard of every Machine as it is."""
    versions = {found["metadata"]["resourceVersion"] for found in await world.machines()}
    machines = world.door.enrolments.sources.machines
    await until(lambda: versions == {found["metadata"]["resourceVersion"] for found in machines.list()})


async def test_at_the_bound_the_oldest_machine_that_proved_nothing_gives_way(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        world.door.enrolments._most_waiting = 3
        ticket = await world.ticket()
        kept = await world.enrol(world.machine("tpm"), ticket)
        made_up = [await world.enrol(world.machine("snp"), ticket) for _ in range(2)]
        # Authentic evidence of the older one was refused: it gives way after those without any.
        await world.cluster.patch(
            MACHINE.resource, made_up[0].name, {"status": {"lastVerdict": "v"}}, PatchType.MERGE, NAMESPACE,
            WriteOptions(subresource="status"),
        )  # fmt: skip
        await heard_of_all(world)
        machine = await world.enrol(world.machine("snp"), ticket)
        names = {found["metadata"]["name"] for found in await world.machines()}
        assert names == {kept.name, made_up[0].name, machine.name}
        (entry,) = world.record.of("machine-gave-way")
        assert entry.resource == f"machine/{made_up[1].name}"
        assert (await world.enrol(world.machine("snp"), await world.ticket("infra"))).approved


async def test_tpms_do_not_give_way_and_close_the_pool_for_a_while(embedded_server: Embedded) -> None:
    """Each costs a certified endorsement key and a use of its ticket: there is nobody who could make thousands."""
    async with doors(embedded_server.cluster) as world:
        world.door.enrolments._most_waiting = 2
        ticket = await world.ticket()
        for _ in range(2):
            await world.enrol(world.machine("tpm"), ticket)
        await heard_of_all(world)
        machine = world.machine("snp")
        assert code(await world.complete(machine, await world.begin(machine, ticket))) == (503, "too-many-waiting")
        assert len(await world.machines()) == 2


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
        said = [await world.begin(late, ticket), await world.post("/v1/enrol/complete", {"enrolment": "x"})]
        kept = repr(world.record.entries) + "".join(answer.text for answer in said)
        kept += str(await world.machines()) + str(await world.keys()) + str(await world.ticket_object(ticket))
        for secret in (ticket.reveal(), str(proof["activated"])):
            assert secret not in kept
        assert all(isinstance(entry, RecordEntry) for entry in world.record.entries)


async def test_the_count_stands_against_a_status_that_somebody_wrote_by_hand(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine = await world.ticket(uses=1), world.machine("tpm")
        await world.enrol(machine, ticket)
        name = (await world.ticket_object(ticket))["metadata"]["name"]
        options = WriteOptions(subresource="status")
        await world.cluster.patch(JOIN_TICKET.resource, name, {"status": {"used": 0}}, PatchType.MERGE, "", options)
        late = world.machine("snp")
        begun = await world.begin(late, ticket)
        if begun.status_code == 200:
            begun = await world.complete(late, begun)
        assert code(begun) == (401, "ticket-used-up")


def test_every_code_of_the_protocol_has_its_place_in_the_table() -> None:
    said = {entry[0] for entry in enrolment._TICKET_REFUSALS.values()}
    said |= {str(standing).lower() for standing in (Membership.QUARANTINED, Membership.REVOKED)}
    for module in (protocol, enrolment):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "EnrolmentRefused":
                first = node.args[0]
                said |= {str(first.value)} if isinstance(first, ast.Constant) else set()
    assert said == set(STATUS)
    assert set(STATUS.values()) <= {400, 401, 403, 503}
