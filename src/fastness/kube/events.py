"""Events: what a controller or a door tells the user about an object.

An event that repeats is counted, not repeated: the same reason and message for the same object patches `count` and
`lastTimestamp` of the event that is there. How many distinct events are remembered is bounded. An event that cannot be written is
lost on purpose: telling must never hold up doing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import EVENT
from fastness.kinds.objects import object_name, rfc3339
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

EVENTS = EVENT.resource
MAX_REMEMBERED = 4096
MAX_MESSAGE = 1024


class Recorder:
    """Writes events in the name of one controller."""

    def __init__(self, cluster: Cluster, component: str, clock: Clock) -> None:
        self._cluster = cluster
        self._component = component
        self._clock = clock
        self._counts = BoundedCache[str, int](MAX_REMEMBERED)
        self._written = BoundedCache[str, JsonObject](MAX_REMEMBERED)
        self._options = WriteOptions(manager=component)

    async def normal(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Something happened as it should."""
        await self._record(about, "Normal", reason, message)

    async def warning(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Something happened that the user should look at."""
        await self._record(about, "Warning", reason, message)

    async def add_repeats(
        self, about: Mapping[str, Any], kind: str, reason: str, message: str, times: int, key: str
    ) -> None:
        """Something that happened so many times since it was last told; events of one `key` are one; raises ApiError.

        Several processes may tell the same: the count that was last seen is added to, and written only if nobody wrote since.
        Otherwise this raises AlreadyExists or Conflict, and may be told again a little later.
        """
        namespace, name = object_name(about).namespace or "default", self._name(about, kind, reason, key)
        event = self._written.pop(name)
        if event is None:
            try:
                self._see(name, await self._create(about, name, kind, reason, message, times))
                return
            except AlreadyExists as error:
                event = await self._there(name, namespace, error)
        patch: JsonObject = {
            "metadata": {"resourceVersion": event["metadata"]["resourceVersion"]},
            "count": int(event.get("count") or 1) + times, "lastTimestamp": rfc3339(self._clock.now()),
            "message": message[:MAX_MESSAGE],
        }  # fmt: skip
        try:
            self._see(name, await self._cluster.patch(EVENTS, name, patch, PatchType.MERGE, namespace, self._options))
        except NotFound:
            self._see(name, await self._create(about, name, kind, reason, message, times))

    async def _there(self, name: str, namespace: str, error: AlreadyExists) -> JsonObject:
        """The event that somebody else made; it may be on its way to the disk, or gone again, and then the error stands."""
        try:
            return await self._cluster.get(EVENTS, name, namespace)
        except NotFound:
            raise error from None

    def _see(self, name: str, event: JsonObject) -> None:
        """Remember an event as it was written, so that adding to it needs no look at it."""
        meta = {"resourceVersion": event["metadata"]["resourceVersion"]}
        self._written.put(name, {"metadata": meta, "count": event.get("count")})

    async def _record(self, about: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        place = object_name(about)
        namespace = place.namespace or "default"
        name = self._name(about, kind, reason, message)
        try:
            if name in self._counts:
                await self._again(namespace, name)
            else:
                await self._first(about, namespace, name, kind, reason, message)
        except ApiError:
            self._counts.pop(name)

    def _name(self, about: Mapping[str, Any], kind: str, reason: str, key: str) -> str:
        meta = about["metadata"]
        identity = "\0".join((self._component, str(meta.get("uid")), kind, reason, key))
        return f"{meta['name'][:200]}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}"

    async def _create(
        self, about: Mapping[str, Any], name: str, kind: str, reason: str, message: str, times: int = 1
    ) -> JsonObject:
        meta, now = about["metadata"], rfc3339(self._clock.now())
        involved = {"apiVersion": about.get("apiVersion"), "kind": about.get("kind"), "name": meta["name"]}
        for field in ("namespace", "uid", "resourceVersion"):
            if meta.get(field):
                involved[field] = meta[field]
        place = {"name": name, "namespace": meta.get("namespace") or "default"}
        event: JsonObject = {
            "apiVersion": "v1", "kind": "Event", "metadata": place,
            "involvedObject": involved, "reason": reason, "message": message[:MAX_MESSAGE], "type": kind,
            "source": {"component": self._component}, "reportingComponent": self._component, "reportingInstance": "",
            "firstTimestamp": now, "lastTimestamp": now, "count": times,
        }  # fmt: skip
        return await self._cluster.create(EVENTS, event, self._options)

    async def _first(
        self, about: Mapping[str, Any], namespace: str, name: str, kind: str, reason: str, message: str
    ) -> None:
        try:
            await self._create(about, name, kind, reason, message)
        except ApiError:
            event = await self._cluster.get(EVENTS, name, namespace)
            self._counts.put(name, int(event.get("count") or 1))
            await self._again(namespace, name)
            return
        self._counts.put(name, 1)

    async def _again(self, namespace: str, name: str) -> None:
        count = (self._counts.get(name) or 1) + 1
        patch = {"count": count, "lastTimestamp": rfc3339(self._clock.now())}
        try:
            await self._cluster.patch(EVENTS, name, patch, PatchType.MERGE, namespace, self._options)
        except NotFound:
            self._counts.pop(name)
            return
        self._counts.put(name, count)
