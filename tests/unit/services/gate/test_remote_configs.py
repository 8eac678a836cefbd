"""A gate apart from its config server asks about every request and is sent bytes only when they changed."""

from __future__ import annotations

import ssl

import httpx
import pytest

from fastness.services.gate import configs
from fastness.services.gate.configs import MOST_KEPT, RemoteConfigs
from fastness.services.refusals import Refusal

CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Server:
    """A config server that knows one body for every pool, and remembers what it was asked."""

    def __init__(self) -> None:
        self.body, self.etag = b"one", '"1"'
        self.code = 200
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.code != 200:
            return httpx.Response(self.code, json={"code": "no-grant"})
        same = request.headers.get("if-none-match") == self.etag
        return httpx.Response(304 if same else 200, content=b"" if same else self.body, headers={"etag": self.etag})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server in place of the network."""
    found = Server()
    monkeypatch.setattr(configs, "HttpsLines", lambda _: httpx.MockTransport(found))
    return found


@pytest.fixture
def remote() -> RemoteConfigs:
    """A gate that was asked nothing yet."""
    return RemoteConfigs("https://config.example", lambda: CONTEXT)


async def test_bytes_that_did_not_change_are_not_sent_again(server: Server, remote: RemoteConfigs) -> None:
    first = await remote.fetch("worker", "*/*", "a")
    again = await remote.fetch("worker", "*/*", "b")
    assert again is first
    assert [one.headers.get("if-none-match") for one in server.asked] == [None, '"1"']
    assert [one.headers["authorization"] for one in server.asked] == ["DPoP a", "DPoP b"]


async def test_a_new_config_is_sent_at_the_next_request(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch("worker", "*/*", "a")
    server.body, server.etag = b"two", '"2"'
    assert (await remote.fetch("worker", "*/*", "a")).body == b"two"
    assert (await remote.fetch("worker", "*/*", "a")).body == b"two"


async def test_what_was_kept_is_not_given_to_whom_the_server_refuses(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch("worker", "*/*", "a")
    server.code = 403
    with pytest.raises(Refusal):
        await remote.fetch("worker", "*/*", "stolen")


async def test_pools_and_versions_are_kept_apart(server: Server, remote: RemoteConfigs) -> None:
    await remote.fetch("worker", "*/*", "a")
    await remote.fetch("infra", "*/*", "a")
    await remote.fetch("worker", "application/json", "a")
    assert [one.headers.get("if-none-match") for one in server.asked] == [None, None, None]


async def test_only_so_many_answers_are_kept(server: Server, remote: RemoteConfigs) -> None:
    for number in range(MOST_KEPT + 1):
        await remote.fetch(f"pool-{number}", "*/*", "a")
    await remote.fetch("pool-0", "*/*", "a")
    await remote.fetch(f"pool-{MOST_KEPT}", "*/*", "a")
    assert [one.headers.get("if-none-match") for one in server.asked[-2:]] == [None, '"1"']


async def test_an_unasked_304_is_no_configuration(
    server: Server, remote: RemoteConfigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configs, "HttpsLines", lambda _: httpx.MockTransport(lambda _: httpx.Response(304)))
    with pytest.raises(Refusal):
        await remote.fetch("worker", "*/*", "a")
