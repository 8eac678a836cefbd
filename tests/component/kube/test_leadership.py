"""Leader election: one writer at a time, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from fastness.kinds.registry import find
from fastness.kube.controllers import Leadership, LostLease
from fastness.kube.controllers.fenced import FencedCluster, UndeclaredWrite
from fastness.kube.controllers.leadership import LEASES
from fastness.kube.errors import Unavailable
from fastness.kube.port import Cluster, Scope
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock, settle

CONFIG_MAP = find("", "v1", "configmaps").resource


class Cut:
    """A cluster whose network can be cut."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.down = False

    def __getattr__(self, name: str) -> Any:
        if self.down:

            async def refuse(*_args: Any, **_kwargs: Any) -> Any:
                raise Unavailable("the network is cut")

            return refuse
        return getattr(self._cluster, name)


async def tick(clock: VirtualClock, seconds: float) -> None:
    """Let virtual time pass in small steps, with real I/O of the store in between."""
    for _ in range(int(seconds * 2)):
        await clock.advance(0.5)
        await asyncio.sleep(0.01)


async def lead(
    stack: AsyncExitStack, leadership: Leadership, clock: VirtualClock, patience: float = 60
) -> asyncio.Event:
    waiting = asyncio.ensure_future(stack.enter_async_context(leadership.held()))
    for _ in range(int(patience * 2)):
        if waiting.done():
            break
        await tick(clock, 0.5)
    return await waiting


@pytest.fixture
async def stacks() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def test_only_one_of_two_leads_and_the_other_follows_after_a_release(
    embedded_server: Embedded, stacks: AsyncExitStack
) -> None:
    clock = VirtualClock()
    first = Leadership(embedded_server.cluster, "first", clock, SeededEntropy(1))
    second = Leadership(embedded_server.cluster, "second", clock, SeededEntropy(2))
    inner = AsyncExitStack()
    await lead(inner, first, clock)
    waiting = asyncio.ensure_future(stacks.enter_async_context(second.held()))
    await tick(clock, 30)
    assert (first.leading, second.leading) == (True, False)
    await inner.aclose()
    assert (first.leading, second.leading) == (False, False)
    await tick(clock, 5)
    assert waiting.done(), "a released lease is taken without waiting for its duration"
    assert second.leading
    lease = await embedded_server.cluster.get(LEASES, "fastness-controllers", "fastness-system")
    assert lease["spec"]["holderIdentity"] == "second"
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_cut_off_leader_stops_writing_before_another_starts(
    embedded_server: Embedded, stacks: AsyncExitStack
) -> None:
    clock = VirtualClock()
    network = Cut(embedded_server.cluster)
    first = Leadership(network, "first", clock, SeededEntropy(1))
    second = Leadership(embedded_server.cluster, "second", clock, SeededEntropy(2))
    lost = await lead(stacks, first, clock)
    waiting = asyncio.ensure_future(stacks.enter_async_context(second.held()))
    await tick(clock, 3)
    network.down = True
    for _ in range(80):
        await tick(clock, 0.5)
        assert not (first.leading and second.leading), "two leaders at once"
        if second.leading:
            break
    assert lost.is_set()
    assert second.leading
    await waiting
    with pytest.raises(LostLease):
        first.require()
    network.down = False


async def test_a_fenced_cluster_refuses_writes_without_the_lease(embedded_server: Embedded) -> None:
    clock = VirtualClock()
    never = Leadership(embedded_server.cluster, "never", clock, SeededEntropy())
    fenced = FencedCluster(embedded_server.cluster, "test", [CONFIG_MAP], never.require)
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(LostLease):
        await fenced.create(CONFIG_MAP, obj)
    assert (await fenced.list(CONFIG_MAP, Scope("default"))).items == []
    await settle()


async def test_a_write_that_was_not_declared_is_a_defect(embedded_server: Embedded) -> None:
    fenced = FencedCluster(embedded_server.cluster, "test", [])
    with pytest.raises(UndeclaredWrite):
        await fenced.delete(CONFIG_MAP, "a", "default")
