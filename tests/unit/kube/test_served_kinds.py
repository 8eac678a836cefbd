"""A kind that nobody defined reads as empty, its caches are in touch, and when it comes it is read like any other."""

from __future__ import annotations

import asyncio

import pytest

from fastness.kinds.kind import Resource
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import EVERYWHERE, Page, Scope
from fastness.kube.served_kinds import ServedKinds
from tests.unit.kube.informers.scripted_cluster import THING, ScriptedCluster
from tests.unit.kube.virtual import FixedEntropy, VirtualClock

OTHER = Resource("example.com", "v1", "others", "Other", namespaced=False)


class Defining(ScriptedCluster):
    """A cluster that serves the kind once it is defined."""

    defined = pause = False

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        del resource, scope, limit, token, version
        if self.pause:
            await asyncio.sleep(0)
        if not self.defined:
            raise NotFound("the server could not find the requested resource")
        return Page([], "1")


class SlowClock(VirtualClock):
    """Sleeps of a look pass when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds >= 1:
            await self.turn.wait()
            self.turn.clear()
        await super().sleep(0)


def served(cluster: Defining, clock: VirtualClock) -> ServedKinds:
    return ServedKinds(cluster, clock, [THING])  # type: ignore[arg-type]  # what is asked of it, it has


async def test_an_absent_kind_has_no_objects_and_says_so_by_name() -> None:
    kinds = served(Defining(), VirtualClock())
    assert (await kinds.list(THING)).items == []
    with pytest.raises(NotFound, match="is not served here"):
        await kinds.get(THING, "a", "n")
    assert kinds.absent_groups == {THING.group}


async def test_a_cache_of_an_absent_kind_is_in_touch_and_follows_it_when_it_comes() -> None:
    cluster, clock = Defining(), SlowClock()
    cluster.put("a", 1)
    kinds = served(cluster, clock)
    informer = Informer(kinds, THING, clock=clock, entropy=FixedEntropy())
    running = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(5):
            await informer.synced()
            assert (informer.list(), informer.in_touch, kinds.came.is_set()) == ([], True, False)
            cluster.defined = True
            clock.turn.set()
            await kinds.came.wait()
            while informer.get("n", "a") is None:  # noqa: ASYNC110  # the cache hears of it by itself
                await asyncio.sleep(0)
            cluster.put("b", 2)
            while informer.get("n", "b") is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert kinds.absent_groups == set()


async def test_two_who_ask_at_once_both_hear_that_it_came() -> None:
    cluster = Defining()
    cluster.defined, cluster.pause = True, True
    kinds = served(cluster, VirtualClock())
    await asyncio.gather(kinds.look(), kinds.look())
    assert kinds.absent_groups == set()
    assert kinds.came.is_set()


async def test_a_look_that_is_refused_does_not_make_a_kind_present() -> None:
    kinds = served(Defining(), VirtualClock())
    await kinds.look()
    assert kinds.absent_groups == {THING.group}
    assert not kinds.came.is_set()
