"""A page in front of a fresh embedded API, both with a clock that can be moved; after a test nothing has logged an error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from tests.component.page.served_page import ServedPage, served_page
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock


@pytest.fixture
async def web(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[ServedPage]:
    async with _world(tmp_path, virtual=True) as world:
        yield world
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.fixture
async def real_web(tmp_path: Path) -> AsyncIterator[ServedPage]:
    """The same without a simulator."""
    async with _world(tmp_path, virtual=False) as world:
        yield world


@asynccontextmanager
async def _world(tmp_path: Path, *, virtual: bool) -> AsyncIterator[ServedPage]:
    directory, clock = tmp_path / "state", MovedClock()
    async with (
        open_apiserver(ServerOptions(directory), PRODUCT, clock) as server,
        served_page(Embedded(server, directory), clock, virtual=virtual) as world,
    ):
        yield world
