"""One broker per test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.release.broker.world import World, world


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    """A broker with a judge that accepts evidence that is bound as it should be."""
    async with world(tmp_path / "state") as made:
        yield made
