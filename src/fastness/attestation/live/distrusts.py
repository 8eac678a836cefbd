"""The Distrusts that stand, kept ready for the doors.

Each door and the verifier ask on every release and every appraisal, so the objects are read once per change. What one of them
names counts from the moment the cache hears of it; no controller has to run in between.
"""

from __future__ import annotations

from datetime import datetime

from fastness.attestation.verdict.distrust import About, Distrusted, against, read_distrust
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Informer, Informers


class Distrusts:
    """What is no longer trusted."""

    def __init__(self, informers: Informers) -> None:
        self._objects: Informer = informers.of(DISTRUST.resource)
        self._read: tuple[Distrusted, ...] | None = None
        self._objects.subscribe(self._changed)

    def _changed(self, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._read = None

    async def synced(self) -> None:
        """Wait until all of them are known."""
        await self._objects.synced()

    @property
    def all(self) -> tuple[Distrusted, ...]:
        """All that are not being deleted, expired ones too."""
        if self._read is None:
            found = (read_distrust(obj) for obj in self._objects.list())
            self._read = tuple(one for one in found if one is not None)
        return self._read

    def against(self, about: About, now: datetime) -> list[Distrusted]:
        """Those that hit a machine now."""
        return against(self.all, about, now) if self.all else []

    def images(self, now: datetime) -> frozenset[str]:
        """The images that are distrusted now."""
        return frozenset(str(one.target) for one in self.all if one.kind == "image" and one.live(now))
