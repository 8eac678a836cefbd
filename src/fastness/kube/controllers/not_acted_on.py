"""Objects that ask for what nothing acts on: they say so themselves, for those who did not see the warning of the write.

An object that sets an entry of `kinds.not_acted_on` gets one condition, `ActedOn` = False, with the fields and what to do
instead; it is taken off when nothing of that is set any more. A kind without conditions gets an event. Nothing else is written,
and to the object itself alone.

Two loops share this: one for what holds in every cluster, one for what holds where Fastness itself is the API server. The second
would write to kinds of other operators, which has no place in a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from fastness.kinds.kind import JsonObject, Kind, Resource
from fastness.kinds.not_acted_on import EMBEDDED, EVERYWHERE, NotActedOn, conditions_of, set_fields
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, metadata, object_name, with_condition
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.informers.placed import to_tell_owners
from fastness.kube.places import EMBEDDED as EMBEDDED_PLACES
from fastness.kube.places import Places
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

ACTED_ON: Final = "ActedOn"
REASON: Final = "NotActedOn"
GATHER_SECONDS: Final = 1.0
MAX_MESSAGE: Final = 1000  # an event has room for 1024 bytes, and somebody must read it


class ObjectPlace(NamedTuple):
    """An object of one of the kinds."""

    group: str
    plural: str
    name: ObjectName


def _kinds(entries: Iterable[NotActedOn]) -> tuple[Kind, ...]:
    return tuple({(entry.kind.group, entry.kind.plural): entry.kind for entry in entries}.values())


class _Telling:
    """What both loops do, each for its own entries."""

    name: ClassVar[str]
    entries: ClassVar[tuple[NotActedOn, ...]]

    def __init__(self, cluster: Cluster, places: Places, clock: Clock) -> None:
        self._cluster = cluster
        self._places = places
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._kinds = {(kind.group, kind.plural): kind for kind in _kinds(self.entries)}
        self._status = WriteOptions(manager=self.name, subresource="status")
        self.sources: Sequence[Source] = tuple(self._source(kind) for kind in self._kinds.values())

    def _source(self, kind: Kind) -> Source:
        scope, keys = to_tell_owners(kind.resource), partial(self._keys, kind)
        return Source(kind.resource, keys, scope, delay=GATHER_SECONDS, optional=True)

    def _keys(self, kind: Kind, obj: Object) -> Iterable[ObjectPlace]:
        """The object, if there is something to say or to take back: most objects never come here."""
        place = object_name(obj)
        counts = self._places.counts(kind.resource, place.namespace)
        if condition(obj, ACTED_ON) is not None or (counts and set_fields(obj, self._of(kind))):
            yield ObjectPlace(kind.group, kind.plural, place)

    def _of(self, kind: Kind) -> list[NotActedOn]:
        return [entry for entry in self.entries if (entry.kind.group, entry.kind.plural) == (kind.group, kind.plural)]

    async def reconcile(self, key: ObjectPlace) -> Done:
        """Say on one object what is not acted on, or take that back."""
        kind = self._kinds[key.group, key.plural]
        try:
            obj = await self._cluster.get(kind.resource, key.name.name, key.name.namespace)
            if is_being_deleted(obj):
                return GONE
            message = self._message(kind, obj)
            if conditions_of(kind):
                await self._condition(kind, obj, message)
            elif message:
                await self._recorder.warning(obj, REASON, message)
        except NotFound:
            return GONE
        except Invalid as error:
            # Whoever wrote the rest of the status wrote what the schema refuses together with ours: that is theirs to mend.
            await self._recorder.warning(obj, REASON, f"{message}; its status cannot be written: {error}")
        # An event counts its repetitions: looking again without a change would count what nobody did.
        return GONE

    def _message(self, kind: Kind, obj: Object) -> str:
        if not self._places.counts(kind.resource, object_name(obj).namespace):
            return ""
        texts = [field.entry.warning for field in set_fields(obj, self._of(kind))]
        text = "; ".join(texts)
        return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"

    async def _condition(self, kind: Kind, obj: JsonObject, message: str) -> None:
        status: Mapping[str, Any] = obj.get("status") or {}
        before: list[JsonObject] = list(status.get("conditions") or ())
        if message:
            after = with_condition(
                before, kind=ACTED_ON, status="False", reason=REASON, message=message, now=self._clock.now(),
                # Conditions of Kubernetes' own workloads have no generation.
                generation=None if kind.native else metadata(obj).get("generation"),
            )  # fmt: skip
        else:
            after = [entry for entry in before if entry.get("type") != ACTED_ON]
        if after != before:
            place = object_name(obj)
            # With the version: a list is replaced as a whole, and what another controller wrote since must not be lost.
            patch = {
                "metadata": {"resourceVersion": metadata(obj).get("resourceVersion")},
                "status": {"conditions": after},
            }
            await self._cluster.patch(kind.resource, place.name, patch, PatchType.MERGE, place.namespace, self._status)


class NotActedOnLoop(_Telling):
    """Says on objects which of their fields nothing acts on."""

    name: ClassVar[str] = "not-acted-on"
    entries: ClassVar[tuple[NotActedOn, ...]] = EVERYWHERE
    writes: ClassVar[Sequence[Resource]] = (*(kind.resource for kind in _kinds(EVERYWHERE)), EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        super().__init__(cluster, informers.places, clock)


class EmbeddedNotActedOnLoop(_Telling):
    """Says on objects of Kubernetes and of neighbours that nothing in this API acts on them."""

    name: ClassVar[str] = "not-acted-on-embedded"
    entries: ClassVar[tuple[NotActedOn, ...]] = EMBEDDED
    writes: ClassVar[Sequence[Resource]] = (*(kind.resource for kind in _kinds(EMBEDDED)), EVENTS)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        super().__init__(cluster, EMBEDDED_PLACES, clock)
