"""The internal port by itself: what TLS should have kept away is kept away once more."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from fastness.crypto.errors import BadCertificate
from fastness.crypto.x509 import CertificateAuthority
from fastness.formats import json
from fastness.http.freshness import Touch
from fastness.keys.certificates import Generations, RoleCertificates
from fastness.release.configs import Config, ConfigRequest
from fastness.release.door.config_server.internal import InternalConfigServer
from fastness.release.door.config_server.server import _to_our_parts
from tests.virtual import SeededEntropy, VirtualClock


class Shelf:
    """A configuration for everybody who gets this far."""

    async def fetch(self, request: ConfigRequest) -> Config:
        return Config(b"secret", b'"etag"', "rendered-worker-1", signature="signed")

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        return Config(b"secret", b'"etag"', "rendered-worker-1", signature="signed")

    async def stub(self, pool: str, accept: str, server_name: str) -> Config:
        return Config(b"secret", b'"etag"', "rendered-worker-1")


async def test_a_request_that_came_without_a_certificate_is_asked_for_one() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    server = InternalConfigServer(Shelf(), tuple, Touch("config-server", ()), VirtualClock(), SeededEntropy(1)).app
    scope = {
        "type": "http", "method": "GET", "path": "/config/worker", "raw_path": b"/config/worker", "query_string": b"",
        "headers": [(b"authorization", b"DPoP token")], "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await server(scope, None, send)
    assert sent[0]["status"] == 401
    assert json.decode(sent[1]["body"])["code"] == "certificate-required"


def test_without_its_own_certificate_the_port_shows_no_other_one() -> None:
    """The Secret of the role may lack it; what machines see is not shown to gate and broker in its place."""
    now = VirtualClock().now()
    authority = CertificateAuthority.create("doors", now, SeededEntropy(1))
    serving = authority.issue_server(["127.0.0.1"], timedelta(days=1), now)
    with pytest.raises(BadCertificate, match="internal port"):
        _to_our_parts(RoleCertificates(serving, Generations((authority.certificate,))))
