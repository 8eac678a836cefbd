"""Rendered configs, and the API as their source.

`agent.boot.configs` has the sources that are believed by signatures. What they need for tokens, seals and certificates takes
11 MiB of memory, so they are loaded where they are used: an agent that asks the API does not import them.
"""

from __future__ import annotations

from typing import Protocol

from fastness.agent.apply.report import Persistent
from fastness.agent.errors import BadConfig
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock


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
