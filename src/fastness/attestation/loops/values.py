"""ReferenceValueSets: whether they count, how many values they have, and the end of those that were withdrawn.

The status is for people; verifiers read the spec themselves (`ReferenceValues`), so a late status never lets anything in.
A set is looked at again at the moment when its validity begins or ends. One that was withdrawn is kept for ninety days, so
that refusals can name it, and is deleted then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fastness.attestation.loops.images import IMAGES, SETS, keys_of_image
from fastness.attestation.values.values import (
    Validity,
    approved_images,
    next_change,
    set_state,
    set_version,
    standing_of,
    unclear_names,
)
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, with_condition
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, WriteOptions
from fastness.runtime.clock import Clock

PUBLISHED = "Published"
KEPT = timedelta(days=90)
_STATUS = WriteOptions(manager="reference-values", subresource="status")
_TOLD: Mapping[Validity, str] = {
    Validity.COUNTS: "appraisals compare with these values",
    Validity.NOT_YET: "the validity of the set has not begun",
    Validity.EXPIRED: "the validity of the set has ended",
    Validity.WITHDRAWN: "the set was withdrawn; it is kept to explain refusals",
    Validity.UNAPPROVED: "no ApprovedImage stands for the image",
    Validity.DISTRUSTED: "a Distrust names the image",
    Validity.UNREADABLE: "the validity of the set cannot be read",
}
_UNCLEAR = (
    "several values each for {}, and nothing says which belong together: name their variants, or write one set for each image. "
    "No machine is compared with them"
)


class Values:
    """Writes on each ReferenceValueSet whether it counts, and how many values it has."""

    name = "reference-values"
    writes: Sequence[Resource] = (SETS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (Source(SETS), Source(IMAGES, keys=self._sets_of))
        self._cluster = cluster
        self._clock = clock
        self._images = informers.of(IMAGES)
        self._sets = informers.of(SETS)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the status of one set in step, or delete it when its time as a memory is over."""
        try:
            values = await self._cluster.get(SETS, key.name)
        except NotFound:
            return GONE
        now = self._clock.now()
        end = _forgotten_at(values["spec"])
        if end is not None and now >= end:
            return await self._forget(values)
        status = published_status(values, now, approved_images(self._images.list()))
        if status != values.get("status"):
            await self._cluster.patch(SETS, key.name, {"status": status}, PatchType.MERGE, options=_STATUS)
        change = end or next_change(values["spec"], now)
        return Done(again_after=max((change - now).total_seconds(), 1.0)) if change is not None else Done()

    async def _forget(self, values: JsonObject) -> Done:
        meta = values["metadata"]
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        try:
            await self._cluster.delete(SETS, meta["name"], "", options)
        except (NotFound, Conflict):
            return Done()
        return GONE

    def _sets_of(self, approval: Object) -> Iterable[ObjectName]:
        """The sets that claim an approved image: the one of its name, and any that was written by hand."""
        image = approval["spec"].get("image")
        by_hand = [
            ObjectName("", values["metadata"]["name"])
            for values in self._sets.list()
            if values["spec"].get("image") == image
        ]
        return {*keys_of_image(approval), *by_hand}


def published_status(values: Mapping[str, Any], now: datetime, approved: frozenset[str]) -> JsonObject:
    """The status of a set at a time."""
    spec, old = values["spec"], values.get("status") or {}
    standing = standing_of(spec, now, approved)
    counts = standing is Validity.COUNTS and bool(spec["values"])
    reason, detail = (str(standing), _TOLD[standing]) if spec["values"] else ("NoValues", "the set has no values")
    unclear = unclear_names(values)
    if counts and unclear:
        counts, reason, detail = False, "Unclear", _UNCLEAR.format(", ".join(unclear))
    generation = values["metadata"].get("generation", 0)
    conditions = with_condition(
        old.get("conditions") or (), kind=PUBLISHED, status="True" if counts else "False",
        reason=reason, message=detail, now=now, generation=generation,
    )  # fmt: skip
    return {
        "observedGeneration": generation,
        "conditions": conditions,
        "values": len(spec["values"]),
        "state": set_state(spec),
        "version": set_version(spec),
    }


def _forgotten_at(spec: Mapping[str, Any]) -> datetime | None:
    withdrawn = spec.get("withdrawn")
    return datetime.fromisoformat(withdrawn["at"]) + KEPT if withdrawn else None
