"""A page in front of a fresh embedded API; after whatever a test does, it logged no error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from tests.component.web.world import WebWorld, web_world
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def web(embedded_server: Embedded, caplog: pytest.LogCaptureFixture) -> AsyncIterator[WebWorld]:
    async with web_world(embedded_server) as world:
        yield world
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
