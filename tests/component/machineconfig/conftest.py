"""The world of machine configuration as a fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.component.machineconfig.world import World, held
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    """A running world without doors."""
    async with held(embedded_server) as found:
        yield found
