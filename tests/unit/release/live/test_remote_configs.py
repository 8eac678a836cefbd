"""A gate apart from its config server asks about every request and is sent bytes only when they changed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import httpx
import pytest

from fastness.http.refusals import Refusal
from fastness.release.configs import ConfigRequest
from fastness.release.live import configs
from fastness.release.live.configs import MOST_KEPT, RemoteConfigs

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Server:
    """A config server that knows one body for every pool, and remembers what it was asked."""

    def __init__(self) -> None:
        self.body, self.etag = b"one", '"1"'
        self.code = 200
        self.said = {"fastness-signature": "signed"}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.code != 200:
            return httpx.Response(self.code, json={"code": "no-grant"})
        same = request.headers.get("if-none-match") == self.etag
        return httpx.Response(
            304 if same else 200, content=b"" if same else self.body, headers={"etag": self.etag, **self.said}
        )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server in place of the network."""
    stand_in = Server()
    monkeypatch.setattr(configs, "ConnectionPool", lambda *_, **__: httpx.MockTransport(stand_in))
    return stand_in


@pytest.fixture
def remote() -> RemoteConfigs:
    """A gate that was asked nothing yet."""
    return RemoteConfigs("https://config.example", lambda: CONTEXT)


async def test_bytes_that_did_not_change_are_not_sent_again(server: Server, remote: RemoteConfigs) -> None:
    first = await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    again = await remote.fetch(ConfigRequest("worker", "*/*", "DPoP b", "n"))
    assert again == first
    assert [request.headers.get("if-none-match") for request in server.asked] == [None, '"1"']
    assert [request.headers["authorization"] for request in server.asked] == ["DPoP a", "DPoP b"]


async def test_a_new_config_is_sent_at_the_next_request(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    server.body, server.etag = b"two", '"2"'
    assert (await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))).body == b"two"
    assert (await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))).body == b"two"


async def test_what_was_kept_is_not_given_to_whom_the_server_refuses(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    server.code = 403
    with pytest.raises(Refusal):
        await remote.fetch(ConfigRequest("worker", "*/*", "DPoP stolen", "n"))


@pytest.mark.parametrize(("status", "passed_on"), [(400, 400), (404, 404), (401, 503), (403, 503), (500, 503)])
async def test_what_the_machine_did_wrong_is_final_and_trouble_between_our_own_parts_passes(
    server: Server, remote: RemoteConfigs, status: int, passed_on: int
) -> None:
    """A boot ends at the first 4xx: the machine reads one only where its own request was wrong, in the words for that."""
    server.code = status
    with pytest.raises(Refusal) as refused:
        await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    assert (refused.value.status, refused.value.code) == (passed_on, "no-grant")


async def test_pools_and_versions_are_kept_apart(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    await remote.fetch(ConfigRequest("infra", "*/*", "DPoP a", "n"))
    await remote.fetch(ConfigRequest("worker", "application/json", "DPoP a", "n"))
    assert [request.headers.get("if-none-match") for request in server.asked] == [None, None, None]


async def test_only_so_many_answers_are_kept(server: Server, remote: RemoteConfigs) -> None:
    for number in range(MOST_KEPT + 1):
        await remote.fetch(ConfigRequest(f"pool-{number}", "*/*", "DPoP a", "n"))
    await remote.fetch(ConfigRequest("pool-0", "*/*", "DPoP a", "n"))
    await remote.fetch(ConfigRequest(f"pool-{MOST_KEPT}", "*/*", "DPoP a", "n"))
    assert [request.headers.get("if-none-match") for request in server.asked[-2:]] == [None, '"1"']


async def test_an_unasked_304_is_no_configuration(
    server: Server, remote: RemoteConfigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configs, "ConnectionPool", lambda *_, **__: httpx.MockTransport(lambda _: httpx.Response(304)))
    with pytest.raises(Refusal):
        await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))


async def test_what_is_not_signed_is_no_configuration(server: Server, remote: RemoteConfigs) -> None:
    server.said = {}
    with pytest.raises(Refusal) as refused:
        await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    assert (refused.value.status, refused.value.code) == (503, "config-unsigned")


async def test_each_answer_has_the_signature_of_its_own_request(server: Server, remote: RemoteConfigs) -> None:
    for nonce in ("one", "two"):
        server.said = {"fastness-signature": f"for {nonce}"}
        config = await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", nonce))
        assert (config.body, config.signature) == (b"one", f"for {nonce}")
    assert [request.headers["fastness-nonce"] for request in server.asked] == ["one", "two"]


async def test_a_config_with_overlays_is_not_kept_for_others(server: Server, remote: RemoteConfigs) -> None:
    server.said |= {"fastness-overlays": "rack.1 zone.2"}
    config = await remote.fetch(ConfigRequest("worker", "*/*", "DPoP a", "n"))
    assert config.overlays == ("rack.1", "zone.2")
    await remote.fetch(ConfigRequest("worker", "*/*", "DPoP b", "n"))
    assert [request.headers.get("if-none-match") for request in server.asked] == [None, None]


async def test_a_copy_is_asked_for_without_a_credential_and_says_until_when_it_counts(
    server: Server, remote: RemoteConfigs
) -> None:
    server.said |= {"fastness-until": "2026-11-16T12:00:00Z"}
    config = await remote.copy("worker", "*/*")
    assert config.until == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert "authorization" not in server.asked[0].headers
