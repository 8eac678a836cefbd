"""Spent challenges are swept when they cannot be replayed any more, and launches that nobody is in.

A SpentChallenge makes a nonce good for one use. After its expiry the challenge itself is refused, so the object is of no
use; it is kept a little longer, because the clocks of doors may differ.

Launches that were seen (`attestation.live.launches`) are forgotten when their time is over and no Machine shows them any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from fastness.attestation.live.launches import LAUNCHES, launches_of
from fastness.kinds.fastness_dev.evidence import SEEN_LAUNCH, SPENT_CHALLENGE
from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions
from fastness.runtime.clock import Clock

# Swept while one door's clock still takes the challenge, it could be answered a second time.
SKEW = timedelta(minutes=10)
LOOK = timedelta(days=1)


class ChallengeSweeper:
    """Deletes spent challenges that have expired."""

    name = "challenge-sweeper"
    sources: Sequence[Source] = (Source(SPENT_CHALLENGE.resource),)
    writes: Sequence[Resource] = (SPENT_CHALLENGE.resource,)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete one that is old enough, or come back when it is."""
        try:
            spent = await self._cluster.get(SPENT_CHALLENGE.resource, key.name)
        except NotFound:
            return GONE
        end = datetime.fromisoformat(spent["spec"]["expires"]) + SKEW
        left = (end - self._clock.now()).total_seconds()
        if left > 0:
            return Done(again_after=left)
        try:
            await self._cluster.delete(
                SPENT_CHALLENGE.resource, key.name, "", DeleteOptions(uid=spent["metadata"]["uid"])
            )
        except (NotFound, Conflict):
            return GONE
        return GONE


class LaunchSweeper:
    """Deletes launches that were seen long ago."""

    name = "launch-sweeper"
    sources: Sequence[Source] = (Source(SEEN_LAUNCH.resource),)
    writes: Sequence[Resource] = (SEEN_LAUNCH.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._machines = informers.of(MACHINE.resource, indexers={LAUNCHES: launches_of})

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete one that is old enough and shown by nobody, or come back when it may be."""
        try:
            launch = await self._cluster.get(SEEN_LAUNCH.resource, key.name)
        except NotFound:
            return GONE
        left = (datetime.fromisoformat(launch["spec"]["expires"]) - self._clock.now()).total_seconds()
        if left > 0:
            return Done(again_after=min(left, LOOK.total_seconds()))
        # A machine that has run for longer than that is still in this launch: forgotten, its disk would open a second time.
        await self._machines.synced()
        if self._machines.by_index(LAUNCHES, key.name):
            return Done(again_after=LOOK.total_seconds())
        try:
            options = DeleteOptions(uid=launch["metadata"]["uid"])
            await self._cluster.delete(SEEN_LAUNCH.resource, key.name, "", options)
        except (NotFound, Conflict):
            return GONE
        return GONE
