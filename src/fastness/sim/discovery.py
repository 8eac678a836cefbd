"""Feature discovery on virtual hosts of confidential containers: what the discovery operator's pods do on real ones.

    NodeFeatureDiscovery is there   every host is looked at, and a NodeFeature for its node is written beside it
    the last one goes               those NodeFeatures go too

What is found is what was recorded on a real host of that kind (`agent/host/recorded`), so that users' rules see what they will
see there. It is a hint like any other: nothing here makes a host trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Final, Protocol

from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import recorded
from fastness.agent.kata.features import node_feature, report
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers.placed import scopes_of
from fastness.kube.places import EMBEDDED
from fastness.kube.port import Cluster
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock
from fastness.sim.fleet import RunningMachines
from fastness.sim.hardware import Tee
from fastness.sim.inventory import Spec
from fastness.workloads.features.discovered import Features

LOOK_SECONDS: Final = 0.5
AGAIN_EVERY: Final = 20
HOSTS: Final[Mapping[Tee, str]] = {"tdx": "tdx-host", "snp": "snp-host", "tpm": "plain-vm"}
_log = logger("machines")


@lru_cache(maxsize=len(HOSTS))
def features_of(tee: Tee) -> Features:
    """What is found on a host of that kind."""
    return discover(recorded(HOSTS[tee]))


class Host(Protocol):
    """A machine that can be looked at."""

    @property
    def node(self) -> str:
        """The name of its node."""

    @property
    def spec(self) -> Spec:
        """What it is."""


class Discovery:
    """Keeps a NodeFeature for each host while somebody wants discovery."""

    def __init__(self, cluster: Cluster, hosts: Iterable[Host], clock: Clock) -> None:
        self._cluster = cluster
        self._hosts = hosts
        self._clock = clock
        self._told: dict[str, str] = {}
        self._looks = 0

    async def run(self) -> None:
        """Look for ever; what goes wrong is tried again."""
        while True:
            try:
                await self.look()
            except ApiError as error:
                _log.debug("machine.waiting", error=error)
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Bring the NodeFeatures in step with hosts and with whether they are wanted; raises ApiError."""
        instances = [
            one
            for scope in scopes_of(EMBEDDED, NODE_FEATURE_DISCOVERY.resource)
            for one in (await self._cluster.list(NODE_FEATURE_DISCOVERY.resource, scope)).items
            if not is_being_deleted(one)
        ]
        namespace = object_name(min(instances, key=object_name)).namespace if instances else ""
        hosts = {machine.node: machine.spec.tee for machine in self._hosts} if instances else {}
        for node in [node for node, where in self._told.items() if node not in hosts or where != namespace]:
            with suppress(NotFound):
                await self._cluster.delete(NODE_FEATURE.resource, node, self._told[node])
            del self._told[node]
        self._looks += 1
        # What somebody else changed or deleted is put right at a slower pace: a look at every host costs a read each.
        everybody = self._looks % AGAIN_EVERY == 0
        for node, tee in hosts.items():
            if everybody or node not in self._told:
                await report(self._cluster, node_feature(node, features_of(tee), namespace))
                self._told[node] = namespace


@asynccontextmanager
async def discovering(machines: RunningMachines, *, wanted: bool) -> AsyncIterator[None]:
    """Discovery on the hosts of a machines, for the time of the block."""
    if not wanted:
        yield
        return
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            Discovery(machines.fleet.cluster, machines, machines.fleet.clock).run(), name="simulator:features"
        )
        try:
            yield
        finally:
            task.cancel()
