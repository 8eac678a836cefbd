"""The objects of one resource that are set aside: by name, with the reason, logged once and counted.

The metric has the resource as its label and never a name, which strangers choose; names are in the log and in `reasons`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from fastness.kinds.kind import Resource
from fastness.kube.informers.cache import Key
from fastness.observe.logs import logger
from fastness.observe.metrics import SET_ASIDE

MAX_REASON: Final = 200
_log = logger("informers")


class AsideObjects:
    """What one informer cannot use."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._reasons: dict[Key, str] = {}
        SET_ASIDE.labels(
            resource.plural
        )  # a series at 0 says that the resource is followed, and lets an alert see its rise

    @property
    def reasons(self) -> Mapping[Key, str]:
        """Each object with its reason."""
        return self._reasons

    def reason(self, key: Key) -> str | None:
        """Why an object is set aside; None when it is not."""
        return self._reasons.get(key)

    def add(self, key: Key, reason: str) -> None:
        """Set an object aside; said once for each reason."""
        reason = reason[:MAX_REASON]
        before = self._reasons.get(key)
        if before == reason:
            return
        if before is None:
            SET_ASIDE.labels(self._resource.plural).inc()
        self._reasons[key] = reason
        where = {"resource": self._resource.plural, "namespace": key.namespace, "name": key.name}
        _log.error("object.set-aside", **where, reason=reason)

    def drop(self, key: Key) -> None:
        """An object can be used again, or is gone."""
        reason = self._reasons.pop(key, None)
        if reason is not None:
            SET_ASIDE.labels(self._resource.plural).dec()
            _log.info("object.usable", resource=self._resource.plural, namespace=key.namespace, name=key.name)

    def keep_only(self, keys: Collection[Key]) -> None:
        """A new state was taken: what is not among these is set aside no more."""
        for key in [*self._reasons]:
            if key not in keys:
                self.drop(key)

    def clear(self) -> None:
        """The informer ends."""
        SET_ASIDE.labels(self._resource.plural).dec(len(self._reasons))
        self._reasons.clear()
