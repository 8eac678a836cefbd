"""Objects that do not count where they are: their owners are told, and nothing else comes of them.

Kinds that speak for the whole cluster are read from the namespaces of `kube.places` alone. Whoever writes such an object into
another namespace would wait for ever. It gets one condition, `Counts` = False, and where the kind has it `isReady` = false; the
condition is taken off when the namespace comes to count.

This is the one loop that looks at those objects. It writes to the object itself and to nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG, TRUSTEE_CONFIG
from fastness.kinds.kind import JsonObject, Kind, Resource
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.objects import ObjectName, condition, metadata, object_name, with_condition
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE, ATTESTATION_KEY
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.informers.placed import elsewhere
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

KINDS: Final[tuple[Kind, ...]] = (
    MACHINE, ATTESTATION_KEY, APPROVED_IMAGE, TRUSTED_EXECUTION_CLUSTER, KBS_CONFIG, TRUSTEE_CONFIG, NODE_FEATURE_DISCOVERY,
)  # fmt: skip
"""The kinds that count in some namespaces, and have a status in which that can be said."""
COUNTS: Final = "Counts"
REASON: Final = "NotLookedAtHere"
GATHER_SECONDS: Final = 1.0
_STATUS: Final = WriteOptions(manager="elsewhere", subresource="status")


class ObjectPlace(NamedTuple):
    """An object of one of the kinds."""

    plural: str
    name: ObjectName


def _place(plural: str, obj: Object) -> Iterable[ObjectPlace]:
    return (ObjectPlace(plural, object_name(obj)),)


def _if_told(plural: str, obj: Object) -> Iterable[ObjectPlace]:
    return _place(plural, obj) if condition(obj, COUNTS) is not None else ()


class Elsewhere:
    """Tells owners of objects that do not count."""

    name = "elsewhere"
    writes: Sequence[Resource] = (*(kind.resource for kind in KINDS), EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._places = informers.places
        self._kinds = {kind.plural: kind for kind in KINDS}
        self._recorder = Recorder(cluster, self.name, clock)
        self.sources: Sequence[Source] = tuple(source for kind in KINDS for source in self._sources(kind))

    def _sources(self, kind: Kind) -> Iterable[Source]:
        away = elsewhere(self._places, kind.resource)
        yield Source(kind.resource, keys=partial(_place, kind.plural), scope=away, delay=GATHER_SECONDS)
        yield Source(kind.resource, keys=partial(_if_told, kind.plural), delay=GATHER_SECONDS)

    async def reconcile(self, key: ObjectPlace) -> Done:
        """Say on one object that it does not count here, or take that back."""
        kind = self._kinds[key.plural]
        try:
            obj = await self._cluster.get(kind.resource, key.name.name, key.name.namespace)
            await self._tell(kind, obj)
        except NotFound:
            return GONE
        except Invalid as error:
            # Whoever wrote the rest of the status wrote what the schema refuses together with ours: that is theirs to mend.
            await self._recorder.warning(obj, REASON, f"{self._message(kind)}; its status cannot be written: {error}")
        return Done()

    def _message(self, kind: Kind) -> str:
        where = ", ".join(self._places.of(kind.resource))
        return f"not looked at here: a {kind.kind} counts in {where} only"

    async def _tell(self, kind: Kind, obj: JsonObject) -> None:
        status = obj.get("status") or {}
        if self._places.counts(kind.resource, object_name(obj).namespace):
            patch = self._taken_back(status)
        else:
            patch = self._told(kind, obj, status)
        if patch:
            place = object_name(obj)
            await self._cluster.patch(
                kind.resource, place.name, {"status": patch}, PatchType.MERGE, place.namespace, _STATUS
            )

    def _told(self, kind: Kind, obj: JsonObject, status: Mapping[str, Any]) -> JsonObject:
        fields = kind.schema["properties"]["status"]["properties"]
        patch: JsonObject = {}
        if "isReady" in fields and status.get("isReady") is not False:
            patch["isReady"] = False
        if "conditions" in fields:
            conditions = with_condition(
                status.get("conditions") or (), kind=COUNTS, status="False", reason=REASON,
                message=self._message(kind), now=self._clock.now(), generation=metadata(obj).get("generation"),
            )  # fmt: skip
            patch |= {"conditions": conditions} if conditions != status.get("conditions") else {}
        return patch

    def _taken_back(self, status: Mapping[str, Any]) -> JsonObject:
        conditions = status.get("conditions") or []
        left = [entry for entry in conditions if entry.get("type") != COUNTS]
        return {"conditions": left} if left != conditions else {}
