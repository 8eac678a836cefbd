"""What the agent reads from the cluster: its own Node, watched and asked, and rendered configs.

`OwnNode` has the Node from a watch, which costs nothing and may be behind: one that reconnects replays what was desired before.
Where that matters (`live`, `until(..., confirm=True)`) the API itself is asked. What the agent writes is `report.py`.

Rendered configs come from the API or, in pools that enforce attestation, from doors that are believed by signatures
(`agent.boot.configs`). What those need for tokens, seals and certificates takes 11 MiB of memory, so they are loaded where they
are used: an agent that asks the API does not import them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from fastness.agent.apply.report import Persistent
from fastness.agent.errors import BadConfig, Superseded
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import CONFIG_MAPS, NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, Scope
from fastness.protocol.node_trust import NodeTrust
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import news_or_time


class RenderedConfigs(Protocol):
    """Somebody who has rendered configs, and what is beside them."""

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        """The rendered config of this name, with the overlays of this digest on top; raises AgentError, ApiError, DriverError."""

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        """What nodes of a pool have beside their config now; raises AgentError, ApiError, DriverError.

        `named` is what the controllers said that it is: they have read every certificate in it.
        """


class ApiConfigs:
    """The API itself, for nodes of pools that do not enforce attestation."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._persistent = Persistent(clock)

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        """The rendered config of this name; raises BadConfig, ApiError."""
        if overlay:
            raise BadConfig(
                f"{name} with overlays {overlay}: the API has no overlays",
                "Start the agent with --identity: doors merge them.",
            )
        try:
            return await self._persistent.ask(lambda: self._cluster.get(MACHINE_CONFIG.resource, name))
        except NotFound as error:
            raise BadConfig(
                f"machineconfig {name} not found", "The render controller makes it; see the pool."
            ) from error

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        """What nodes have beside their config, made of the ControllerConfig as it is now; raises BadConfig, ApiError."""
        # The schema of a ControllerConfig is large, and no agent without news needs it.
        from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
        from fastness.machineconfig.trust.bundles import whole
        from fastness.machineconfig.trust.node_trust import API_AUTHORITY, node_trust

        namespace, name = API_AUTHORITY
        try:
            controller = await self._persistent.ask(lambda: self._cluster.get(CONTROLLER_CONFIG.resource, SINGLETON))
        except NotFound as error:
            raise BadConfig("there is no ControllerConfig", "The controllers make it.") from error
        try:
            authority = await self._persistent.ask(lambda: self._cluster.get(CONFIG_MAPS, name, namespace))
        except NotFound:
            authority = {}
        trust, problems = node_trust(controller, authority, whole)
        if trust.name != named:
            trust, problems = node_trust(controller, authority)
        if problems or not trust.kubelet_ca:
            raise BadConfig(
                "; ".join(problems) or "no authority of kubelets' clients is known", "See the ControllerConfig."
            )
        return trust


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
    def in_touch(self) -> bool:
        """Whether the watch hears from the API."""
        return self._informer.in_touch

    @property
    def desired(self) -> str:
        """The config that the node should have, as the watch has it; empty for none."""
        return annotations_of(self.cached() or {}).get(names.DESIRED_CONFIG, "")

    async def wait(self, seconds: float) -> bool:
        """Until something changed, at most so long; whether something did."""
        return await news_or_time(self.changed, self._clock, seconds)

    async def until(
        self, holds: Callable[[JsonObject], bool], seconds: float, target: str, *, confirm: bool = False
    ) -> bool:
        """Until something holds for the node, at most so long; raises Superseded when another target becomes desired.

        With `confirm` the API is asked once the watch says that it holds.
        """
        end = self._clock.monotonic() + seconds
        while True:
            self.changed.clear()
            node = self.cached() or {}
            # A watch that reconnects replays older states: one of them may show an earlier request as carried out.
            if confirm and holds(node):
                node = await self.live()
            if not desires(node, target):
                raise Superseded(f"{annotations_of(node).get(names.DESIRED_CONFIG)} is desired now, not {target}")
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


def desires(node: JsonObject, target: str) -> bool:
    """Whether a node should go to a config with some overlays and image; one that nobody told may be forced to what it has."""
    notes, (config, overlay) = annotations_of(node), names.split_target(target)
    return (
        bool(node)
        and notes.get(names.DESIRED_CONFIG, "") in ("", config)
        and desired_overlay(notes, overlay) == overlay
        # A node that nobody told anything may be forced to what it has, image included.
        and (names.DESIRED_CONFIG not in notes or notes.get(names.DESIRED_IMAGE, "") == names.image_in_target(target))
    )


def desired_overlay(notes: Mapping[str, str], present: str) -> str:
    """The overlays that a node should have by its annotations; those that it has while nobody said anything."""
    # No annotation is not "none": a machine that was installed with overlays has them until somebody takes them away.
    return notes.get(names.DESIRED_OVERLAY, present)
