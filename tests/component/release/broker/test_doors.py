"""Every route with every credential, and what a stranger may send."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.crypto.x509 import CertificateAuthority
from fastness.http.limits import Limits, Rate
from fastness.http.route import Route
from fastness.keys.doors import doors_authority
from fastness.keys.internal import InternalAuthority, internal_authority
from fastness.kube.informers import Informer
from fastness.protocol import dpop, kbs
from fastness.protocol.door import DoorRole
from fastness.runtime.clock import SystemClock
from tests.component.release.broker.brokered_cluster import (
    ENTROPY,
    BrokeredCluster,
    Guest,
    brokered_cluster,
    subject,
    until,
)
from tests.patience import PATIENCE

GATE = DoorRole.GATE.uri
STATUS = "/kbs/v0/resource/default/attestation-status/status"
CREDENTIALS = ("nothing", "garbage", "session", "challenge", "token", "admin", "narrow-admin", "internal", "stranger")
ADMITTED = {
    "nothing": set(CREDENTIALS),
    "the cookie of a challenge, and evidence that answers it": {"challenge"},
    "the cookie of a session, or a token with a proof of possession": {"session"},
    "a credential of an administrator": {"admin"},
    "a client certificate of the internal authority": {"internal"},
}


async def internal(here: BrokeredCluster) -> InternalAuthority:
    return await internal_authority(here.cluster, ENTROPY, here.clock.now())


def _path(route: Route[Any]) -> str:
    return route.path.replace("<repository>/<type>/<tag>", "default/attestation-status/status").replace("<**>", "x")


async def _client(here: BrokeredCluster, credential: str) -> tuple[httpx.AsyncClient, dict[str, str]]:
    now = here.clock.now()
    if credential == "internal":
        return await here.client(credential=(await internal(here)).client(DoorRole.GATE, now)), {}
    http = await here.client()
    if credential in ("session", "challenge", "token"):
        guest = Guest(http, subject())
        await (guest.challenge() if credential == "challenge" else guest.attest())
        if credential == "token":
            http.cookies.clear()
            return http, {"authorization": f"Bearer {guest.token}"}
    headers = {
        "garbage": "Bearer e30.e30.e30",
        "admin": await here.admin(),
        "narrow-admin": await here.admin("GET nowhere"),
    }
    return http, {"authorization": headers[credential]} if credential in headers else {}


async def test_every_route_admits_the_credentials_of_its_column_and_no_others(here: BrokeredCluster) -> None:
    clients = {name: await _client(here, name) for name in CREDENTIALS if name != "stranger"}
    for route in here.door.routes:
        for name, (http, headers) in clients.items():
            answer = await http.request(route.methods[0], _path(route), headers=headers)
            admitted = answer.status_code not in (401, 403)
            assert admitted == (name in ADMITTED[route.auth.shows]), (route, name, answer.status_code, answer.text)


async def test_a_certificate_of_a_stranger_does_not_even_get_a_connection(here: BrokeredCluster) -> None:
    now = here.clock.now()
    made = CertificateAuthority.create("fastness internal", now, ENTROPY, timedelta(days=1))
    stranger = made.issue_client("fastness:gate", ["fastness:internal"], timedelta(hours=1), now, [GATE])
    http = await here.client(credential=stranger)
    with pytest.raises(httpx.TransportError):
        await http.post("/attestation/v1/introspect", json={"token": "x"})


async def test_a_certificate_of_the_doors_authority_may_not_introspect(here: BrokeredCluster) -> None:
    now = here.clock.now()
    authority = (await doors_authority(here.cluster, ENTROPY, now)).lineage.issuing
    issued = authority.issue_client("fastness:gate", ["fastness:internal"], timedelta(hours=1), now, [GATE])
    http = await here.client(credential=issued)
    with pytest.raises(httpx.TransportError):
        await http.post("/attestation/v1/introspect", json={"token": "x"})


async def test_a_certificate_of_ours_that_names_no_part_may_not_introspect(here: BrokeredCluster) -> None:
    issuing, now = (await internal(here)).lineage.issuing, here.clock.now()
    for uris, groups in (
        ([DoorRole.PAGE.uri], ["fastness:internal"]),
        ([], ["fastness:internal"]),
        ([GATE, DoorRole.BROKER.uri], ["fastness:internal"]),
        ([GATE], ["others"]),
        ([GATE], []),
    ):
        http = await here.client(
            credential=issuing.issue_client("fastness:gate", groups, timedelta(hours=1), now, uris)
        )
        answer = await http.post("/attestation/v1/introspect", json={"token": "x.y.z"})
        assert (answer.status_code, answer.json()["code"]) == (403, "other-role")


async def test_introspection_knows_revocation(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    http = await here.client(credential=(await internal(here)).client(DoorRole.GATE, here.clock.now()))
    introspection = {"token": guest.token, "audience": "broker"}
    claims = (await http.post("/attestation/v1/introspect", json=introspection)).json()
    assert (claims["active"], claims["sub"]) == (True, guest.who.thumbprint)
    form = await http.post("/attestation/v1/introspect", data=introspection)
    assert form.json()["active"] is True
    here.revoked.machines.add(guest.who.machine)
    assert (await http.post("/attestation/v1/introspect", json=introspection)).json() == {"active": False}
    assert (await http.post("/attestation/v1/introspect", json={"token": "x.y.z"})).json() == {"active": False}
    for body in (b"", b"[]", b"{}", b'{"token": 1}', b'{"token": "x", "audience": "moon"}', b"\xff"):
        answer = await http.post("/attestation/v1/introspect", content=body)
        assert answer.status_code == 400, body


async def test_introspection_says_nothing_of_tokens_while_the_broker_cannot_know(
    here: BrokeredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = await here.guest()
    await guest.attest()
    http = await here.client(credential=(await internal(here)).client(DoorRole.GATE, here.clock.now()))
    monkeypatch.setattr(Informer, "in_touch", property(lambda _self: False))
    answer = await http.post("/attestation/v1/introspect", json={"token": guest.token, "audience": "broker"})
    assert (answer.status_code, answer.json()["code"]) == (503, "out-of-touch")
    assert int(answer.headers["retry-after"]) > 0


ELSEWHERE = [
    ("GET", "/", 404), ("GET", "/kbs/v0", 404), ("GET", "/kbs/v0/auth", 405), ("PUT", "/kbs/v0/auth", 405),
    ("GET", "/metrics", 404), ("GET", "/kbs/v0/../healthz", 400), ("PATCH", STATUS, 405), ("HEAD", STATUS, 405),
    ("GET", "/kbs/v0/resource/a/b/c/d", 404), ("GET", "/kbs/v1/resource/a/b/c", 404), ("GET", "/healthz", 200),
]  # fmt: skip


async def test_what_is_not_in_the_table_does_not_exist(here: BrokeredCluster) -> None:
    for method, path, status in ELSEWHERE:
        answer = await _raw(here, f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert int(answer.split(b" ", 2)[1]) == status, (method, path)


async def _raw(here: BrokeredCluster, text: str | bytes) -> bytes:
    """Bytes over TLS, as no decent client would send them."""
    context = ssl.create_default_context(cadata=here.door.doors.bundle)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", here.door.port, ssl=context, server_hostname="localhost"
    )
    writer.write(text.encode() if isinstance(text, str) else text)
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read(65536)
    finally:
        writer.close()


BODIES: list[tuple[dict[str, str], bytes, int]] = [
    ({"content-type": "text/plain"}, b"{}", 415),
    ({"content-encoding": "gzip"}, b"{}", 415),
    ({}, b"x" * (kbs.MAX_AUTH_BYTES + 1), 413),
    ({}, b"not json", 400),
    ({}, b'{"version":"0.4.0","tee":"toaster"}', 400),
    ({}, b'{"version":"9.9.9","tee":"tpm"}', 400),
    ({"content-type": "application/json; charset=utf-8"}, kbs.request_message("tpm"), 200),
]


async def test_bodies_are_judged_by_size_type_and_form(here: BrokeredCluster) -> None:
    http = await here.client()
    for headers, body, status in BODIES:
        answer = await http.post("/kbs/v0/auth", content=body, headers=headers)
        assert answer.status_code == status, answer.text
        if status != 200:
            assert set(answer.json()) >= {"type", "code", "detail"}


async def test_evidence_beyond_the_limit_is_refused_before_it_is_read(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.challenge()
    answer = await guest.http.post("/kbs/v0/attest", content=b"x" * (kbs.MAX_ATTEST_BYTES + 1))
    assert answer.status_code == 413
    assert here.judge.attempts == []


async def test_long_headers_are_431(here: BrokeredCluster) -> None:
    answer = await _raw(here, b"GET /healthz HTTP/1.1\r\nhost: x\r\ncookie: " + b"x" * 70_000 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431")


async def test_two_session_cookies_are_refused(here: BrokeredCluster) -> None:
    http = await here.client()
    answer = await http.get(STATUS, headers={"cookie": "kbs-session-id=a; kbs-session-id=b"})
    assert (answer.status_code, answer.json()["code"]) == (400, "two-cookies")


async def test_a_token_counts_only_with_a_proof_of_its_key(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    guest.http.cookies.clear()
    url = f"https://127.0.0.1:{here.door.port}{STATUS}"
    headers = {"authorization": f"DPoP {guest.token}"}
    first = await guest.http.get(STATUS, headers=headers)
    assert (first.status_code, first.json()["code"]) == (401, "no-proof")
    assert first.headers["www-authenticate"].startswith('DPoP error="use_dpop_nonce"')
    nonce = first.headers["dpop-nonce"]
    demand = dpop.Demand("GET", url, guest.token)
    proof = dpop.make_proof(guest.key, guest.jwk, demand, nonce, here.clock.now(), "1")
    good = await guest.http.get(STATUS, headers={**headers, "dpop": proof})
    assert good.status_code == 200, good.text
    other = Guest(guest.http, guest.who)
    forged = dpop.make_proof(other.key, other.jwk, demand, nonce, here.clock.now(), "1")
    assert (await guest.http.get(STATUS, headers={**headers, "dpop": forged})).status_code == 401
    elsewhere = dpop.Demand("GET", url.replace("status/status", "status/other"), guest.token)
    moved = dpop.make_proof(guest.key, guest.jwk, elsewhere, nonce, here.clock.now(), "1")
    assert (await guest.http.get(STATUS, headers={**headers, "dpop": moved})).status_code == 401
    twice = await guest.http.get(STATUS, headers=[*headers.items(), ("dpop", proof), ("dpop", proof)])
    assert twice.status_code == 401


def _unsigned(token: str, **header: Any) -> str:
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    return ".".join([head, *token.split(".")[1:]])


HEADERS: list[dict[str, Any]] = [
    {"alg": "none"}, {"alg": "HS256"}, {"alg": "ES256"}, {"alg": "ES256", "jwk": {}}, {"alg": "ES256", "jku": "https://x"},
    {"alg": "ES256", "x5c": []}, {"alg": "ES384", "typ": "JWT"},
]  # fmt: skip


async def test_keys_and_algorithms_of_a_tokens_header_are_not_followed(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    guest.http.cookies.clear()
    for header in HEADERS:
        bearer = {"authorization": f"Bearer {_unsigned(guest.token, **header)}"}
        answer = await guest.http.get(STATUS, headers=bearer)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-token")


async def test_overload_is_503_with_retry_after_and_passes(tmp_path: Path) -> None:
    limits = Limits(appraisals=1, address_in_flight=3)
    async with brokered_cluster(tmp_path / "state", limits=limits) as here:
        here.judge.gate = asyncio.Event()
        slow, quick = await here.guest(subject("a")), await here.guest(subject("b"))
        first, second = await slow.challenge(), await quick.challenge()
        running = asyncio.create_task(slow.send(slow.evidence(first)))
        await until(here.judged)
        refused = await quick.send(quick.evidence(second))
        assert (refused.status_code, refused.json()["code"]) == (503, "overload")
        assert refused.headers["retry-after"]
        here.judge.gate.set()
        assert (await running).status_code == 200
        assert (await quick.send(quick.evidence(second))).status_code == 200


async def test_a_caller_has_a_rate(tmp_path: Path) -> None:
    async with brokered_cluster(tmp_path / "state", limits=Limits(address=Rate(5, 0.001))) as here:
        http = await here.client()
        codes = [(await http.get("/healthz")).status_code for _ in range(8)]
        assert codes == [200] * 5 + [503] * 3


async def test_half_a_request_harms_nobody(here: BrokeredCluster) -> None:
    raw = socket.create_connection(("127.0.0.1", here.door.port))
    raw.sendall(b"POST /kbs/v0/auth HTTP/1.1\r\n")
    raw.close()
    http = await here.client()
    assert (await http.get("/healthz")).status_code == 200
    assert isinstance(here.clock, SystemClock)
