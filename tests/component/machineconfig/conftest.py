"""A pool of workers under all loops, as a fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.component.machineconfig.user_data_story import Story, open_story
from tests.component.machineconfig.worker_pool import WorkerPool, open_worker_pool
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def workers(embedded_server: Embedded) -> AsyncIterator[WorkerPool]:
    """Workers of a cluster without doors."""
    async with open_worker_pool(embedded_server) as opened:
        yield opened


@pytest.fixture
async def story(embedded_server: Embedded) -> AsyncIterator[Story]:
    """The pools of a cluster whose doors a test moves."""
    async with open_story(embedded_server) as opened:
        yield opened
