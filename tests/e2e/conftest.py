"""What the tests with real processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.realkube import RealKube


@pytest.fixture(scope="module")
def bare_kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A real cluster for the tests of one module, with nothing of ours in it: controllers that run there touch no other test."""
    with RealKube.start(tmp_path_factory.mktemp("bare"), real_kube_binaries, unsafe_no_fsync=True) as kube:
        yield kube
