"""Spent challenges are swept when they cannot be replayed any more.

A SpentChallenge makes a nonce good for one use. After its expiry the challenge itself is refused, so the object is of no
use; it is kept a little longer, because the clocks of doors may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from fastness.kinds.fastness_dev.evidence import SPENT_CHALLENGE
from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Cluster, DeleteOptions
from fastness.runtime.clock import Clock

# Swept while one door's clock still takes the challenge, it could be answered a second time.
SKEW = timedelta(minutes=10)


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
