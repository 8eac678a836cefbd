"""A server that must stay calm: after whatever a test does, it is ready, counted no defect and logged no error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.http.bounds import Bounds
from tests.component.apiserver.door.raw import defects
from tests.embedded.fixtures import Embedded

SHORT = Bounds(
    connections=40, reserve=4, known_reserve=4,
    head_seconds=0.4, body_seconds=0.4, discard_seconds=0.4, linger_seconds=0.1, keep_alive_seconds=0.6,
    stalled_seconds=0.4, shutdown_seconds=1.0,
)  # fmt: skip


@asynccontextmanager
async def _calm(options: ServerOptions, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    before = defects()
    async with open_apiserver(options, PRODUCT) as server:
        embedded = Embedded(server, options.state)
        yield embedded
        async with embedded.client() as client:
            assert (await client.get("/readyz")).text == "ok"
    assert defects() == before
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.fixture
async def calm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    """A server with its usual bounds."""
    async with _calm(ServerOptions(tmp_path / "state"), caplog) as embedded:
        yield embedded


@pytest.fixture
async def impatient(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Embedded]:
    """A server whose waits are short and whose connections are few."""
    async with _calm(ServerOptions(tmp_path / "state", bounds=SHORT), caplog) as embedded:
        yield embedded
