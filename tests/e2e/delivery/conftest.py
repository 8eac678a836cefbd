"""An API for clusters that are not simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.apiserver.door.server import EmbeddedServer, ServerOptions
from fastness.app.product import PRODUCT
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def real_server(tmp_path: Path) -> AsyncIterator[Embedded]:
    """An embedded API whose store is not one of a simulated cluster."""
    directory = tmp_path / "api"
    server = await EmbeddedServer.open(ServerOptions(directory, simulated=False), PRODUCT)
    try:
        yield Embedded(server, directory)
    finally:
        await server.close()
