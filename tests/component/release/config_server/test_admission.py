"""Who gets which config: every credential, at every pool, on both ports and with both listeners."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from fastness.crypto.x509 import CertificateAuthority, Credential
from fastness.keys.internal import GROUP
from fastness.kube.informers import Informer
from fastness.protocol.door import DoorRole
from fastness.runtime.clock import SystemEntropy
from tests.component.release.config_server.doors import POOLS, Doors, open_doors
from tests.embedded.fixtures import Embedded

DAY = timedelta(days=1)
GATE = [DoorRole.GATE.uri]
SERVED, NO_TICKET, OTHER_POOL = (200, ""), (401, "ticket-required"), (403, "wrong-pool")
ATTESTED_ONLY = (403, "attestation-required")
TICKET_MATRIX = {
    # What is shown: what comes of it at plain, host and secret.
    "nothing": (NO_TICKET, NO_TICKET, NO_TICKET),
    "garbage": (NO_TICKET, NO_TICKET, NO_TICKET),
    "expired ticket of the pool": (NO_TICKET, NO_TICKET, NO_TICKET),
    "ticket of another pool": (OTHER_POOL, OTHER_POOL, OTHER_POOL),
    "ticket of the pool": (SERVED, SERVED, ATTESTED_ONLY),
}


async def headers_with(doors: Doors, what: str, pool: str) -> dict[str, str]:
    tickets: dict[str, Callable[[], Awaitable[str]]] = {
        "expired ticket of the pool": lambda: doors.ticket(pool, days=-1),
        "ticket of another pool": lambda: doors.ticket("another"),
        "ticket of the pool": lambda: doors.ticket(pool),
    }
    if what == "nothing":
        return {}
    text = await tickets[what]() if what in tickets else "fst_" + "x" * 43
    return {"authorization": f"Bearer {text}"}


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, "" if answer.is_success else answer.json()["code"]


@pytest.mark.parametrize("rust", [False, True], ids=["loop", "rust"])
@pytest.mark.row("000-60")
async def test_the_ticket_port_serves_tickets_and_never_a_confidential_pool(
    embedded_server: Embedded, rust: bool
) -> None:
    async with open_doors(embedded_server, rust=rust) as doors, doors.outer() as machine:
        outcomes: dict[str, tuple[tuple[int, str], ...]] = {}
        for what in TICKET_MATRIX:
            row = [
                await machine.get(f"/config/{pool}", headers=await headers_with(doors, what, pool)) for pool in POOLS
            ]
            outcomes[what] = tuple(outcome(answer) for answer in row)
            for pool, answer in zip(POOLS, row, strict=True):
                assert (f"config%20of%20{pool}" in answer.text) == answer.is_success
                assert answer.headers["content-length"] == str(len(answer.content))
    assert outcomes == TICKET_MATRIX


@pytest.mark.parametrize("rust", [False, True], ids=["loop", "rust"])
async def test_methods_paths_heads_and_etags_are_the_same_with_both_listeners(
    embedded_server: Embedded, rust: bool
) -> None:
    async with open_doors(embedded_server, rust=rust) as doors, doors.outer() as machine:
        ticket = {"authorization": f"Bearer {await doors.ticket('plain')}"}
        full = await machine.get("/config/plain", headers=ticket)
        head = await machine.head("/config/plain", headers=ticket)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(full.content))
        again = await machine.get("/config/plain", headers={**ticket, "if-none-match": full.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await machine.get("/healthz")).status_code == 200
        assert outcome(await machine.post("/config/plain", headers=ticket)) == (405, "method-not-allowed")
        assert outcome(await machine.get("/config/plain/x", headers=ticket)) == (404, "not-found")
        assert outcome(await machine.get("/config/%2e%2e", headers=ticket))[0] in (401, 404)


async def strangers(doors: Doors) -> dict[str, Credential | None]:
    """Everybody whom TLS must not let in."""
    now = datetime.now(UTC)
    internal, outer = await doors.internal(), await doors.authority()
    fake = CertificateAuthority.create("fastness internal", now, SystemEntropy())
    return {
        "nobody": None,
        "gate of an authority of the same name": fake.issue_client("fastness:gate", [GROUP], DAY, now, GATE),
        "gate of the doors' authority": outer.issuing.issue_client("fastness:gate", [GROUP], DAY, now, GATE),
        "gate of yesterday": internal.client(DoorRole.GATE, now - 2 * DAY),
        "the config server itself": internal.serving(["127.0.0.1"], now),
    }


@pytest.mark.row("000-59")
@pytest.mark.row("000-75")
async def test_the_internal_port_has_no_connection_for_strangers(embedded_server: Embedded) -> None:
    async with open_doors(embedded_server) as doors:
        ticket = {"authorization": f"Bearer {await doors.ticket('plain')}"}
        for who, credential in (await strangers(doors)).items():
            async with doors.inner(credential) as client:
                with pytest.raises((httpx.TransportError, ssl.SSLError)):
                    await client.get("/config/plain", headers=ticket)
                    raise AssertionError(f"{who} was let in")


async def test_the_internal_port_gives_copies_to_the_broker_and_nothing_to_any_role_without_a_token(
    embedded_server: Embedded,
) -> None:
    async with open_doors(embedded_server) as doors:
        now, internal = datetime.now(UTC), await doors.internal()
        issuing = internal.lineage.issuing
        async with doors.inner(internal.client(DoorRole.BROKER, now)) as client:
            for pool in POOLS:
                answer = await client.get(f"/config/{pool}")
                assert outcome(answer) == SERVED
                assert f"config%20of%20{pool}" in answer.text
            assert outcome(await client.get("/config/missing")) == (404, "unknown-pool")
        async with doors.inner(internal.client(DoorRole.GATE, now)) as client:
            for pool in (*POOLS, "missing"):
                assert outcome(await client.get(f"/config/{pool}")) == (403, "wrong-role")
        others = (
            internal.client(DoorRole.ENROLMENT, now),
            internal.client(DoorRole.CONFIG_SERVER, now),
            issuing.issue_client("fastness:gate", [], DAY, now, GATE),
            issuing.issue_client("fastness:broker", [GROUP], DAY, now),
            issuing.issue_client("fastness:broker", [GROUP], DAY, now, ["fastness://role/broker/"]),
            issuing.issue_client("fastness:gate", [GROUP], DAY, now, [*GATE, DoorRole.BROKER.uri]),
            issuing.issue_client("fastness:gate", [GROUP, "system:masters"], DAY, now, GATE),
        )
        for credential in others:
            async with doors.inner(credential) as client:
                assert outcome(await client.get("/config/secret")) == (403, "wrong-role")


async def test_a_config_server_that_knows_no_nodes_gives_no_rendered_config_to_anybody(
    embedded_server: Embedded,
) -> None:
    async with open_doors(embedded_server) as doors, doors.outer() as client:
        answer = await client.get(f"/config/plain?rendered=rendered-plain-{'a' * 32}")
        assert outcome(answer) == (401, "certificate-required")


@pytest.mark.parametrize("rust", [False, True], ids=["loop", "rust"])
async def test_a_ticket_counts_from_the_instant_that_it_is_made(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch, rust: bool
) -> None:
    """The cache hears of nothing here: a ticket that it does not know is looked up before it is refused for good."""
    async with open_doors(embedded_server, rust=rust) as doors, doors.outer() as machine:
        monkeypatch.setattr(Informer, "_take", lambda _self, _event: None)
        fresh = await headers_with(doors, "ticket of the pool", "plain")
        assert outcome(await machine.get("/config/plain", headers=fresh)) == SERVED
        assert outcome(await machine.get("/config/secret", headers=fresh)) == OTHER_POOL
        assert (
            outcome(await machine.get("/config/plain", headers=await headers_with(doors, "garbage", ""))) == NO_TICKET
        )


async def test_a_config_server_that_cannot_know_a_ticket_asks_its_machine_to_come_again(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_doors(embedded_server) as doors, doors.outer() as machine:
        fresh = await headers_with(doors, "ticket of the pool", "plain")
        monkeypatch.setattr(Informer, "in_touch", property(lambda _self: False))
        unknown = await machine.get("/config/plain", headers=await headers_with(doors, "garbage", "plain"))
        assert outcome(unknown) == (503, "cluster-unavailable")
        assert int(unknown.headers["retry-after"]) > 0
        # Whether its pool needs a proof by now nobody can tell either.
        assert outcome(await machine.get("/config/plain", headers=fresh)) == (503, "out-of-touch")
        assert outcome(await machine.get("/config/plain")) == NO_TICKET
