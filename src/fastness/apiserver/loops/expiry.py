"""Events end after an hour, as on an API server with its usual settings.

What is told of a cluster is for the eyes of now, and a store that keeps it for ever fills up. An event that repeats lives on:
the hour counts from the last time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS
from fastness.kube.port import Cluster, DeleteOptions
from fastness.runtime.clock import Clock

# kube-apiserver's --event-ttl.
LIFETIME = timedelta(hours=1)


class EventExpiry:
    """Deletes events that are an hour old."""

    name = "event-expiry"
    sources: Sequence[Source] = (Source(EVENTS, delay=60.0),)
    writes: Sequence[Resource] = (EVENTS,)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete one that is old enough, or come back when it may be."""
        try:
            event = await self._cluster.get(EVENTS, key.name, key.namespace)
        except NotFound:
            return GONE
        left = (_last(event) + LIFETIME - self._clock.now()).total_seconds()
        if left > 0:
            return Done(again_after=left)
        meta = event["metadata"]
        # At the version that was judged: an event that was counted up at this moment lives on.
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        try:
            await self._cluster.delete(EVENTS, key.name, key.namespace, options)
        except NotFound:
            return GONE
        except Conflict:
            return Done(again_after=1.0)
        return GONE


def _last(event: Object) -> datetime:
    """When it last happened; whatever of it cannot be read counts as the moment it was written."""
    series = event.get("series") or {}
    for timestamp in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        try:
            return datetime.fromisoformat(str(timestamp))
        except ValueError:
            continue
    return datetime.fromisoformat(event["metadata"]["creationTimestamp"])
