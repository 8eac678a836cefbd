"""The internal port by itself: what TLS should have kept away is kept away once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.formats import json
from fastness.services.configs import Config, ConfigRequest
from fastness.services.configserver.internal import InternalConfigServer
from fastness.trust.touch import Touch
from tests.virtual import VirtualClock


class Shelf:
    """A configuration for everybody who gets this far."""

    async def fetch(self, wanted: ConfigRequest) -> Config:
        return Config(b"secret", b'"etag"', "rendered-worker-1", signature="signed")

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        return Config(b"secret", b'"etag"', "rendered-worker-1", signature="signed")


async def test_a_request_that_came_without_a_certificate_is_asked_for_one() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    server = InternalConfigServer(Shelf(), tuple, Touch("config-server", ()), VirtualClock())
    scope = {
        "type": "http", "method": "GET", "path": "/config/worker", "raw_path": b"/config/worker", "query_string": b"",
        "headers": [(b"authorization", b"DPoP token")], "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await server(scope, None, send)
    assert sent[0]["status"] == 401
    assert json.decode(sent[1]["body"])["code"] == "certificate-required"
