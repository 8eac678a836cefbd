"""Fixtures of the contract: one cluster per way to it, and names that belong to one test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from fastness.cluster.port import Cluster
from tests.contract.kinds import NAMESPACE
from tests.contract.worlds import NAMES, World, https_embedded, https_real, in_process, install_definitions
from tests.realkube import RealKube


@pytest.fixture(scope="session")
def real_kube_with_definitions(real_kube: RealKube) -> RealKube:
    """The real cluster with the definitions that the contract uses."""
    install_definitions(real_kube)
    return real_kube


@pytest.fixture(params=NAMES)
def world(request: pytest.FixtureRequest) -> World:
    """Each way to a cluster in turn."""
    match request.param:
        case "in-process":
            return in_process(request.getfixturevalue("embedded_server"))
        case "https-embedded":
            return https_embedded(request.getfixturevalue("embedded_server"))
        case _:
            return https_real(request.getfixturevalue("real_kube_with_definitions"))


@pytest.fixture
async def cluster(world: World) -> AsyncIterator[Cluster]:
    """The adapter under test."""
    async with world.open() as opened:
        yield opened


@pytest.fixture
def unique() -> str:
    """A word for names and labels of this test alone: the real cluster is shared."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
async def namespace(cluster: Cluster, unique: str) -> AsyncIterator[str]:
    """A namespace of this test alone."""
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    yield unique
    await cluster.delete(NAMESPACE, unique)
