"""What machines of a story are configured with, and the config server that hands it out."""

from __future__ import annotations

from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.release.configs import Config, ConfigRequest
from fastness.release.live.replies import RenderedConfigs, Replies
from fastness.release.live.signed_configs import ServedConfigs
from fastness.runtime.clock import Clock, Entropy
from tests.simulation.invariants import CANARY

STORY_FILE = "/etc/story"
CANNOT_BE = "/etc/passwd/below-a-file"
"""A path that no machine can have, which only a machine finds out."""


class Configs:
    """The config server behind a door, which is busy at times."""

    def __init__(self, served: ServedConfigs, busy: list[Refusal]) -> None:
        self._busy = busy
        self.served = served

    @classmethod
    async def of(
        cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy, busy: list[Refusal]
    ) -> Configs:
        """One that knows what is there."""
        for resource in (MACHINE_CONFIG_POOL.resource, MACHINE_CONFIG.resource):
            await informers.of(resource).synced()
        rendered = RenderedConfigs(
            Replies(informers.of(MACHINE_CONFIG_POOL.resource), informers.of(MACHINE_CONFIG.resource))
        )
        return cls(await ServedConfigs.open(cluster, informers, clock, entropy, rendered), busy)

    async def fetch(self, request: ConfigRequest) -> Config:
        """The configuration of a machine; raises Refusal."""
        if self._busy:
            raise self._busy.pop(0)
        return await self.served.fetch(request)

    async def stub(self, pool: str, accept: str, server_name: str) -> Config:
        """The configuration for a legacy stub; raises Refusal."""
        return await self.served.stub(pool, accept, server_name)

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool; raises Refusal."""
        if self._busy:
            raise self._busy.pop(0)
        return await self.served.copy(pool, accept, rendered)


def machine_config(number: int, bad: str = "") -> JsonObject:
    """A configuration with something in it that nobody else may see."""
    files = [{"path": STORY_FILE, "mode": 0o600, "contents": {"source": f"data:,{CANARY}-{number}"}}]
    if bad:
        files.append({"path": bad, "mode": 0o600, "contents": {"source": "data:,x"}})
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    meta = {"name": "99-story", "labels": {names.ROLE_LABEL: names.WORKER}}
    return {
        "apiVersion": MACHINE_CONFIG.api_version, "kind": MACHINE_CONFIG.kind, "metadata": meta, "spec": {"config": config},
    }  # fmt: skip
