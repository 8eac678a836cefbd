"""Rendered configs, and the API as their source.

`configs.py` has the sources that are believed by signatures. What they need for tokens, seals and certificates takes 11 MiB of
memory, so they are loaded where they are used: an agent that asks the API does not import them.
"""

from __future__ import annotations

from typing import Protocol

from fastness.agent.errors import BadConfig
from fastness.agent.report import Persistent
from fastness.cluster.clock import Clock
from fastness.cluster.errors import NotFound
from fastness.cluster.port import Cluster
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration.config import MACHINE_CONFIG


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
