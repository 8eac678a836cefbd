"""What the agent reads from the cluster: its own Node, watched and asked, and rendered configs.

`OwnNode` has the Node from a watch, which costs nothing and may be behind: one that reconnects replays what was desired before.
Where that matters (`live`, `until(..., confirm=True)`) the API itself is asked. What the agent writes is `report.py`.

Rendered configs come from the API or, in pools that enforce attestation, from doors that are believed by signatures
(`agent.boot.configs`). What those need for tokens, seals and certificates takes 11 MiB of memory, so they are loaded where they
are used: an agent that asks the API does not import them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from fastness.agent.apply.report import Persistent
from fastness.agent.errors import BadConfig, Superseded
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, Scope
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import news_or_time


class RenderedConfigs(Protocol):
    """Somebody who has rendered configs."""

    async def fetch(self, name: str) -> JsonObject:
        """The rendered config of this name; raises AgentError, ApiError, DriverError."""


class ApiConfigs:
    """The API itself, for nodes of pools that do not enforce attestation."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._persistent = Persistent(clock)

    async def fetch(self, name: str) -> JsonObject:
        """The rendered config of this name; raises BadConfig, ApiError."""
        try:
            return await self._persistent.ask(lambda: self._cluster.get(MACHINE_CONFIG.resource, name))
        except NotFound as error:
            raise BadConfig(
                f"machineconfig {name} not found", "The render controller makes it; see the pool."
            ) from error


class OwnNode:
    """The Node of this machine; `changed` is set whenever the agent should look again, by this or by others."""

    def __init__(
        self, cluster: Cluster, name: str, clock: Clock, entropy: Entropy, annotations: Collection[str]
    ) -> None:
        """`annotations` are those that the control plane writes: the agent's own writes wake nobody."""
        self.name = name
        self.changed = asyncio.Event()
        self._cluster = cluster
        self._clock = clock
        self._persistent = Persistent(clock)
        self._informer = Informer(cluster, NODES, Scope(fields=f"metadata.name={name}"), clock=clock, entropy=entropy)
        self._informer.subscribe(self._noticed)
        self._annotations = tuple(annotations)
        self._values: tuple[str | None, ...] = ()

    def subscribe(self, noticed: Callable[[JsonObject | None], None]) -> None:
        """Call with the node whenever it changed, whatever changed about it."""
        self._informer.subscribe(lambda _old, new: noticed(new))

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._informer.run()

    async def synced(self) -> None:
        """Until the watch has the node, or knows that there is none."""
        await self._informer.synced()

    def cached(self) -> JsonObject | None:
        """The node as the watch has it."""
        return self._informer.get("", self.name)

    async def live(self) -> JsonObject:
        """The node as the API has it now; raises ApiError."""
        return await self._persistent.ask(lambda: self._cluster.get(NODES, self.name))

    @property
    def desired(self) -> str:
        """The config that the node should have, as the watch has it; empty for none."""
        return annotations_of(self.cached() or {}).get(names.DESIRED_CONFIG, "")

    async def wait(self, seconds: float) -> bool:
        """Until something changed, at most so long; whether something did."""
        return await news_or_time(self.changed, self._clock, seconds)

    async def until(
        self, holds: Callable[[JsonObject], bool], seconds: float, config: str, *, confirm: bool = False
    ) -> bool:
        """Until something holds for the node, at most so long; raises Superseded when another config becomes desired.

        With `confirm` the API is asked once the watch says that it holds.
        """
        end = self._clock.monotonic() + seconds
        while True:
            self.changed.clear()
            node = self.cached() or {}
            # A watch that reconnects replays older states: one of them may show an earlier request as carried out.
            if confirm and holds(node):
                node = await self.live()
            if not desires(node, config):
                raise Superseded(f"{annotations_of(node).get(names.DESIRED_CONFIG)} is desired now, not {config}")
            if holds(node):
                return True
            left = end - self._clock.monotonic()
            if left <= 0:
                return False
            await self.wait(left)

    def _noticed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        values = tuple(annotations_of(new or {}).get(key) for key in self._annotations)
        if values != self._values or (old is None) != (new is None):
            self._values = values
            self.changed.set()


def desires(node: JsonObject, config: str) -> bool:
    """Whether a node should go to a config; one that nobody gave a config may be forced to the one it has."""
    return bool(node) and annotations_of(node).get(names.DESIRED_CONFIG, "") in ("", config)
