"""A door tells the cluster what documents of vendors it has: one ConfigMap, `collateral`, one entry per door.

Written when something changed and every ten minutes, so that silence means something. Entries of doors that are gone are taken
out by those that are there. The status of the ConfidentialCluster is made of it (`attestation.status.collateral`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.status.collateral import SILENT_AFTER, CollateralState, told_at
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.runtime.clock import Clock

NAME: Final = "collateral"
LOOK_SECONDS: Final = 15.0
SAY_AGAIN: Final = timedelta(minutes=10)
_AS: Final = WriteOptions(manager="collateral")
_log = logs.logger("collateral")


class CollateralNews:
    """Tells what one door knows."""

    def __init__(self, cluster: Cluster, clock: Clock, door: str, state: Callable[[], CollateralState]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._door = door
        self._state = state
        self._reported: CollateralState | None = None
        self._at: datetime | None = None

    async def run(self) -> None:
        """Tell what changes, until cancelled."""
        while True:
            try:
                await self.tell()
            except ApiError as error:
                _log.warning("collateral.untold", error=error, hint="It is tried again shortly.")
            await self._clock.sleep(LOOK_SECONDS)

    async def tell(self) -> None:
        """Write this door's entry if there is something to say; raises ApiError."""
        state, now = self._state(), self._clock.now()
        if state == self._reported and self._at is not None and now - self._at < SAY_AGAIN:
            return
        entry = {self._door: state.to_text(now)}
        try:
            published: Any = (await self._cluster.get(CONFIG_MAP.resource, NAME, NAMESPACE)).get("data") or {}
            gone = {door: None for door, text in published.items() if _gone(text, now)}
            await self._cluster.patch(
                CONFIG_MAP.resource, NAME, {"data": {**gone, **entry}}, PatchType.MERGE, NAMESPACE, _AS
            )
        except NotFound:
            await self._create(entry)
        self._reported, self._at = state, now

    async def _create(self, entry: dict[str, str]) -> None:
        meta = {"name": NAME, "namespace": NAMESPACE}
        body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": entry}
        try:
            await self._cluster.create(CONFIG_MAP.resource, body, _AS)
        except AlreadyExists:
            await self._cluster.patch(CONFIG_MAP.resource, NAME, {"data": entry}, PatchType.MERGE, NAMESPACE, _AS)


def _gone(text: str, now: datetime) -> bool:
    at = told_at(text)
    return at is None or at.tzinfo is None or now - at > SILENT_AFTER
