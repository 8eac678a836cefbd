"""One broker per test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.release.broker.brokered_cluster import BrokeredCluster, brokered_cluster


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[BrokeredCluster]:
    """A broker with a judge that accepts evidence that is bound as it should be."""
    async with brokered_cluster(tmp_path / "state") as made:
        yield made
