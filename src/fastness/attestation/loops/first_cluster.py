"""Makes the ConfidentialCluster that an installation asked for, once, when its guard can see it.

What is asked for is `attestation.status.first_cluster`. Installing is one command that waits for nothing, so the object cannot be
part of it: its kind would not be served yet, and the API server refuses it while a webhook is registered that does not answer.
Here that is a retry like any other.

* One that is there is never touched, whoever made it, and neither is one that was deleted made again.
* With a webhook in the release it is made when that stands in front of the API: its rules are asked, and the act is on the
  record.
* A refusal is an Event and a note on the ConfigMap, and is tried again now and then: what stood against it may go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fastness.attestation.status.first_cluster import CONFIG_MAP as ASKED
from fastness.attestation.status.first_cluster import (
    MADE,
    NOTE,
    REFUSED,
    WAS_THERE,
    BadFirstCluster,
    FirstCluster,
    is_done,
)
from fastness.keys.authorities import HERE
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import ObjectName, annotations_of
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

KEY: Final = ObjectName(NAMESPACE, ASKED)
WEBHOOK_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 30.0
_AS: Final = WriteOptions(manager="first-cluster")


def _asked(config_map: Any) -> Iterable[ObjectName]:
    return (KEY,) if config_map["metadata"]["name"] == ASKED else ()


class FirstClusters:
    """Makes the ConfidentialCluster that the ConfigMap `first-cluster` asks for, once."""

    name = "first-cluster"
    writes: Sequence[Resource] = (CONFIDENTIAL_CLUSTER.resource, CONFIG_MAP.resource, EVENTS)
    sources: Sequence[Source] = (Source(CONFIG_MAP.resource, _asked, scope=HERE),)

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, watched: Callable[[], bool] = lambda: True
    ) -> None:
        self._cluster = cluster
        self._maps = informers.of(CONFIG_MAP.resource, HERE)
        self._watched = watched
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, _: ObjectName) -> Done:
        """Make it if it was asked for, never was there and can be guarded. Raises ApiError while nobody answers."""
        cached = self._maps.get(NAMESPACE, ASKED)
        if cached is None:
            return GONE
        if is_done(cached):
            return Done()
        config_map = await self._cluster.get(CONFIG_MAP.resource, ASKED, NAMESPACE)  # its note may be newer
        if is_done(config_map):
            return Done()
        try:
            asked = FirstCluster.of(config_map)
        except BadFirstCluster as error:
            await self._refused(config_map, f"{error.message}. {error.hint}")
            return Done()
        if await self._is_there():
            await self._note(config_map, WAS_THERE)
            return Done()
        if asked.await_webhook and not self._watched():
            return Done(again_after=WEBHOOK_SECONDS)
        return await self._make(config_map, asked)

    async def _make(self, config_map: JsonObject, asked: FirstCluster) -> Done:
        try:
            await self._cluster.create(CONFIDENTIAL_CLUSTER.resource, asked.body(), _AS)
        except AlreadyExists:
            await self._note(config_map, WAS_THERE)
        except (BadRequest, Forbidden, Invalid) as error:
            await self._refused(config_map, error.message)
            return Done(again_after=REFUSED_SECONDS)
        else:
            await self._note(config_map, MADE)
        return Done()

    async def _is_there(self) -> bool:
        try:
            await self._cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        except NotFound:
            return False
        return True

    async def _refused(self, config_map: JsonObject, message: str) -> None:
        await self._recorder.warning(config_map, "FirstClusterRefused", f"no ConfidentialCluster was made: {message}")
        await self._note(config_map, f"{REFUSED}: {message[:512]}")

    async def _note(self, config_map: JsonObject, note: str) -> None:
        if annotations_of(config_map).get(NOTE) != note:
            patch = {"metadata": {"annotations": {NOTE: note}}}
            await self._cluster.patch(CONFIG_MAP.resource, ASKED, patch, PatchType.MERGE, NAMESPACE, _AS)
