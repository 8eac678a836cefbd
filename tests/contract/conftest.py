"""Fixtures of the contract: one cluster per way to it, and names that belong to one test.

All tests of the contract share a loop, an embedded server and a real one: a server per test would cost more than the tests.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kube.port import Cluster
from tests.contract.kinds import NAMESPACE
from tests.contract.worlds import (
    IN_THIS_PROCESS,
    REAL,
    World,
    https_embedded,
    https_real,
    in_process,
    install_definitions,
)
from tests.embedded.fixtures import Embedded
from tests.realkube import RealKube


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the contract in one loop, since its servers live in it."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def real_kube_with_definitions(real_kube: RealKube) -> RealKube:
    """The real cluster with the definitions that the contract uses."""
    install_definitions(real_kube)
    return real_kube


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Embedded]:
    """One embedded API for all tests of the contract."""
    directory = tmp_path_factory.mktemp("contract") / "state"
    async with open_apiserver(ServerOptions(directory), PRODUCT) as server:
        yield Embedded(server, directory)


@pytest.fixture(params=[*IN_THIS_PROCESS, pytest.param(REAL, marks=pytest.mark.processes)])
def world(request: pytest.FixtureRequest) -> World:
    """Each way to a cluster in turn."""
    match request.param:
        case "in-process":
            return in_process(request.getfixturevalue("shared_embedded"))
        case "https-embedded":
            return https_embedded(request.getfixturevalue("shared_embedded"))
        case _:
            return https_real(request.getfixturevalue("real_kube_with_definitions"))


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(world: World) -> AsyncIterator[Cluster]:
    """The adapter under test."""
    async with world.open() as opened:
        yield opened


@pytest.fixture
def unique() -> str:
    """A word for names and labels of this test alone: the servers are shared."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(cluster: Cluster, unique: str) -> AsyncIterator[str]:
    """A namespace of this test alone."""
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    yield unique
    await cluster.delete(NAMESPACE, unique)
