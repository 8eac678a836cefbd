"""A fresh store for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.apiserver.store import Store
from tests.component.apiserver.store.store_parts import Faults, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock, faults: Faults) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "state", clock=clock, failpoints=faults)
    yield store
    await store.close()
