"""What the tests with real processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node_facts import post_node_facts
from tests.realkube import RealKube

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before tests.processes counts who is marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this ring runs whole programs, but for those that compare the pages with the tree."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.parent.name != "docs":
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="module")
def bare_kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A real cluster for the tests of one module, with nothing of ours in it: controllers that run there touch no other test.

    It says where its DNS and its API are, as every cluster with nodes does.
    """
    with RealKube.start(tmp_path_factory.mktemp("bare"), real_kube_binaries, unsafe_no_fsync=True) as kube:
        with kube.client() as admin:
            post_node_facts(admin, kube.url)
        yield kube
