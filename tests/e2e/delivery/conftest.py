"""An API for clusters that are not simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def real_server(tmp_path: Path) -> AsyncIterator[Embedded]:
    """An embedded API whose store is not one of a simulated cluster."""
    directory = tmp_path / "api"
    async with open_apiserver(ServerOptions(directory, simulated=False), PRODUCT) as server:
        yield Embedded(server, directory)
