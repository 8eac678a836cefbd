"""Leader election by Lease: one process writes, the others wait.

The holder renews its Lease; a candidate takes it over when it has not changed for its whole duration. Rules that make it
safe:

* Nobody compares clocks of two machines: a candidate measures, on its own monotonic clock, how long the Lease has looked
  the same.
* The holder gives up `renew_deadline` after its last renewal, well before `duration` lets another start. `FencedCluster`
  refuses writes from that moment on, whatever is still running.
* Every take-over is a conditional write: of two candidates one gets a conflict.
* On a clean end the Lease is released, so that the next leader need not wait.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import LEASE
from fastness.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs, metrics
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.errors import FastnessError

LEASES = LEASE.resource
RELEASE_SECONDS = 5.0
_log = logs.logger("leader")


class LostLease(FastnessError):
    """This process is not the leader any more; nothing may be written."""

    code = "LostLease"
    hint = "Another replica leads now; this one waits for its turn."


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Name and times; `duration` > `renew_deadline` > `retry`."""

    name: str = "fastness-controllers"
    namespace: str = "fastness-system"
    # The times of kube-controller-manager (--leader-elect-lease-duration, -renew-deadline, -retry-period).
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    @classmethod
    def lasting(cls, seconds: float) -> LeaderSettings:
        """The usual times in proportion to another duration; a Lease counts whole seconds."""
        whole = float(math.ceil(seconds))
        return cls(duration=whole, renew_deadline=whole * 2 / 3, retry=whole * 2 / 15)


class Leadership:
    """One process's part in the election."""

    def __init__(
        self, cluster: Cluster, identity: str, clock: Clock, entropy: Entropy, settings: LeaderSettings | None = None
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._clock = clock
        self._entropy = entropy
        self.settings = settings or LeaderSettings()
        self._until = 0.0
        self._seen: tuple[str, float] = ("", 0.0)

    @property
    def leading(self) -> bool:
        """Whether writes are allowed now."""
        return self._clock.monotonic() < self._until

    def require(self) -> None:
        """Raise LostLease unless this process leads now."""
        if not self.leading:
            raise LostLease(f"{self._identity} does not hold the lease {self.settings.name}")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[asyncio.Event]:
        """Wait until this process leads; the event is set when it does no more. Leaving releases the Lease."""
        while not await self._try():
            await self._clock.sleep(self.settings.retry * (0.5 + self._entropy.fraction()))
        _log.info("leader.acquired", lease=self.settings.name, identity=self._identity)
        metrics.LEADER.labels(self.settings.name).set(1)
        lost = asyncio.Event()
        keeper = asyncio.create_task(self._keep(lost), name="leader:keep")
        try:
            yield lost
        finally:
            # First no more renewals, then the release: the other way round a renewal under way would take the Lease back.
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
            await self._release()
            metrics.LEADER.labels(self.settings.name).set(0)

    async def _keep(self, lost: asyncio.Event) -> None:
        """Renew until renewal fails for too long."""
        while self.leading:
            await self._clock.sleep(self.settings.retry)
            await self._try()
        _log.warning("leader.lost", lease=self.settings.name, identity=self._identity)
        lost.set()

    async def _try(self) -> bool:
        """Renew or take the Lease if it is ours to take; whether this process leads now."""
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self.settings.renew_deadline):
                held = await self._attempt()
        except (ApiError, OSError, TimeoutError):
            # An API that does not answer takes nothing away yet: the term that was granted runs on, and ends by the clock.
            return self.leading
        if held:
            # Counted from before the request: an answer that took long must not lengthen the term.
            self._until = started + self.settings.renew_deadline
        else:
            self._until = 0.0
        return held

    async def _attempt(self) -> bool:
        try:
            lease = await self._cluster.get(LEASES, self.settings.name, self.settings.namespace)
        except NotFound:
            return await self._create()
        holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        if holder and holder != self._identity and not self._expired(lease):
            return False
        return await self._write(lease, taking=holder != self._identity)

    def _expired(self, lease: JsonObject) -> bool:
        """Whether the Lease has looked the same for its whole duration, by our own clock."""
        # `renewTime` is the holder's clock; one that is wrong by more than the duration would give the Lease away, or never.
        version, now = str(lease["metadata"]["resourceVersion"]), self._clock.monotonic()
        if version != self._seen[0]:
            self._seen = (version, now)
            return False
        duration = float((lease.get("spec") or {}).get("leaseDurationSeconds") or self.settings.duration)
        return now - self._seen[1] >= duration

    async def _create(self) -> bool:
        now = _micro(self._clock.now())
        spec = {**self._spec(), "acquireTime": now, "renewTime": now, "leaseTransitions": 0}
        lease = {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.settings.name, "namespace": self.settings.namespace}, "spec": spec,
        }  # fmt: skip
        try:
            await self._cluster.create(LEASES, lease, _AS_LEADER)
        except AlreadyExists:
            return False
        return True

    async def _write(self, lease: JsonObject, *, taking: bool) -> bool:
        now = _micro(self._clock.now())
        spec: JsonObject = {**self._spec(), "renewTime": now}
        if taking:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int((lease.get("spec") or {}).get("leaseTransitions") or 0) + 1
        # Conditional on what was read: of two candidates that saw it expire the API lets one through.
        patch = {"metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]}, "spec": spec}
        try:
            await self._patch(patch)
        except (Conflict, NotFound):
            return False
        return True

    async def _release(self) -> None:
        """Let others take the Lease at once; if that fails, or takes long, they wait for its duration."""
        # No write of ours may follow the release, so the fence goes up before it.
        was_leading, self._until = self.leading, 0.0
        if not was_leading:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._cluster.get(LEASES, self.settings.name, self.settings.namespace)
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    version = lease["metadata"]["resourceVersion"]
                    await self._patch({"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": ""}})
        except (ApiError, OSError) as error:  # a timeout is an OSError
            _log.warning("leader.lost", lease=self.settings.name, reason=f"not released: {error}")

    async def _patch(self, patch: JsonObject) -> None:
        await self._cluster.patch(
            LEASES, self.settings.name, patch, PatchType.MERGE, self.settings.namespace, _AS_LEADER
        )

    def _spec(self) -> JsonObject:
        return {"holderIdentity": self._identity, "leaseDurationSeconds": int(self.settings.duration)}


_AS_LEADER = WriteOptions(manager="fastness-leader")


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
