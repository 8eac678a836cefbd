"""One confidential cluster for all tests of a module, started as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.acceptance.cluster import Acceptance
from tests.e2e.live import Live
from tests.patience import eventually

WORKERS = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptance]:
    """`fastness up` with two workers that have proved themselves."""
    with Live.start(tmp_path_factory.mktemp("acceptance"), "--machines", str(WORKERS)) as live:
        made = Acceptance(live, WORKERS)
        eventually(lambda: len(made.ready()) == WORKERS and made.updated(), "two attested nodes")
        yield made
