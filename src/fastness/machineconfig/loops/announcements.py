"""Remarks about objects, told once: an event when a remark is new, none while it stays the same.

A loop looks at everything again and again; an event that counts how often it looked would tell nobody anything, and would be a
write of a loop that is at rest.
"""

from __future__ import annotations

from fastness.kube.controllers.controller import Object
from fastness.kube.events import Recorder
from fastness.kube.port import Cluster
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

MAX_REMEMBERED = 1024


class Announcements:
    """Warnings of one controller."""

    def __init__(self, cluster: Cluster, component: str, clock: Clock) -> None:
        self._recorder = Recorder(cluster, component, clock)
        self._texts = BoundedCache[tuple[str, str], str](MAX_REMEMBERED)

    async def warning(self, about: Object, reason: str, text: str) -> None:
        """Tell a remark about an object unless it was the last one; an empty text takes it back in silence."""
        key = (str(about["metadata"].get("uid")), reason)
        if (self._texts.get(key) or "") == text:
            return
        self._texts.put(key, text)
        if text:
            await self._recorder.warning(about, reason, text)
