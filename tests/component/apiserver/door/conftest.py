"""A server that must stay calm: after whatever a test does, it is ready, counted no defect and logged no error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.apiserver.door.server import EmbeddedServer, ServerOptions
from fastness.app.product import PRODUCT
from fastness.http.bounds import Bounds
from tests.component.apiserver.door.raw import defects
from tests.embedded.fixtures import Embedded

SHORT = Bounds(
    connections=40, reserve=4, known_reserve=4,
    head_seconds=0.4, body_seconds=0.4, discard_seconds=0.4, linger_seconds=0.1, keep_alive_seconds=0.6,
    stalled_seconds=0.4, shutdown_seconds=1.0,
)  # fmt: skip


async def _calm(server: EmbeddedServer, directory: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    before = defects()
    embedded = Embedded(server, directory)
    try:
        yield embedded
        async with embedded.client() as client:
            assert (await client.get("/readyz")).text == "ok"
    finally:
        await server.close()
    assert defects() == before
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.fixture
async def calm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    """A server with its usual bounds."""
    directory = tmp_path / "state"
    server = await EmbeddedServer.open(ServerOptions(directory), PRODUCT)
    async for embedded in _calm(server, directory, caplog):
        yield embedded


@pytest.fixture
async def impatient(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    """A server whose waits are short and whose connections are few."""
    directory = tmp_path / "state"
    server = await EmbeddedServer.open(ServerOptions(directory, bounds=SHORT), PRODUCT)
    async for embedded in _calm(server, directory, caplog):
        yield embedded
