"""The status of RolloutPolicies, kept by the rollout as it goes from pool to pool.

A policy holds several pools and the rollout looks at one at a time, so what it saw last of each is remembered here. A write only
follows when something changed; a policy that is gone is no reason to stop.
"""

from __future__ import annotations

from fastness.kinds.fastness_dev.rollout import ROLLOUT_POLICY
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.rollout.wave_status import PoolProgress, policy_status
from fastness.runtime.clock import Clock

POLICIES = ROLLOUT_POLICY.resource
_STATUS = WriteOptions(manager="machine-config-rollout", subresource="status")


class PolicyReports:
    """What the pools of each policy were last seen to do, and the writing of it."""

    def __init__(self, cluster: Cluster, policies: Informer, clock: Clock) -> None:
        self._cluster = cluster
        self._policies = policies
        self._clock = clock
        self._progress: dict[str, tuple[str, PoolProgress]] = {}

    async def tell(self, pool: str, policy: str, progress: PoolProgress | None) -> None:
        """A pool was looked at: it follows this policy (empty for none) and is so far; None when nothing moves it."""
        before = self._progress.pop(pool, ("", None))[0]
        if policy and progress is not None:
            self._progress[pool] = (policy, progress)
        for name in sorted({before, policy} - {""}):
            await self._write(name)

    async def _write(self, name: str) -> None:
        policy = self._policies.get("", name)
        if policy is None:
            return
        pools = {pool: progress for pool, (of, progress) in self._progress.items() if of == name}
        status = policy_status(policy, pools, self._clock.now())
        before: JsonObject = policy.get("status") or {}
        if all(before.get(part) == value for part, value in status.items()):
            return
        try:
            await self._cluster.patch(
                POLICIES, object_name(policy).name, {"status": status}, PatchType.MERGE, "", _STATUS
            )
        except NotFound:
            return
