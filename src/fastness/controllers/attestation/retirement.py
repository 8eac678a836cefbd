"""The life of images: who needs which, remembered on their ReferenceValueSets.

One look at all pools, nodes and machines says which images are needed; `domain.attestation.imagelife` says what follows. The
outcome is two annotations on the set; `images.py`, which writes the values, turns them into the states of the values and, at the
end, into their withdrawal. So a set has one writer for its values, and its life survives a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from fastness.cluster.clock import Clock
from fastness.cluster.errors import NotFound
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.controllers.engine.controller import Done, Object, Source
from fastness.controllers.machineconfig.rollout import NODES, POOLS
from fastness.domain.attestation.imagelife import KEEP, Life, Uses, advanced, digest_of, life_of, retires_at
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.domain.attestation.properties import images_in
from fastness.domain.attestation.values import IMAGE
from fastness.model.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.model.kind import JsonObject, Resource
from fastness.model.machineconfiguration import names
from fastness.model.machineconfiguration.config import MACHINE_CONFIG
from fastness.model.objects import ObjectName, annotations_of, is_being_deleted, object_name, view
from fastness.model.trusted_execution.approvals import APPROVED_IMAGE
from fastness.model.trusted_execution.machine import MACHINE, Machine

KEY: Final = ObjectName("", "*")
GATHER_SECONDS: Final = 1.0
_AS: Final = WriteOptions(manager="image-life")


def _one(_: Object) -> Iterable[ObjectName]:
    return (KEY,)


class ImageLives:
    """Follows images from their first use to the end of their last."""

    name = "image-life"
    sources: Sequence[Source] = tuple(
        Source(resource, _one, delay=GATHER_SECONDS)
        for resource in (REFERENCE_VALUE_SET.resource, APPROVED_IMAGE.resource, POOLS, NODES, MACHINE.resource)
    )
    writes: Sequence[Resource] = (REFERENCE_VALUE_SET.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._approvals = informers.of(APPROVED_IMAGE.resource)
        self._pools, self._nodes = informers.of(POOLS), informers.of(NODES)
        self._configs, self._machines = informers.of(MACHINE_CONFIG.resource), informers.of(MACHINE.resource)

    async def reconcile(self, _: ObjectName) -> Done:
        """Write what changed in the life of every image."""
        now, uses = self._clock.now(), self._uses()
        ends: list[datetime] = []
        for values in self._sets.list():
            image = str(values["spec"].get("image") or "")
            if values["spec"].get("source") != IMAGE or is_being_deleted(values):
                continue
            old = life_of(values)
            new = self._next(old, image, uses, now)
            if new != old:
                with suppress(NotFound):
                    patch = {"metadata": {"annotations": new.to_json()}}
                    name = object_name(values).name
                    await self._cluster.patch(REFERENCE_VALUE_SET.resource, name, patch, PatchType.MERGE, "", _AS)
            end = retires_at(new)
            ends += [end] if end is not None else []
        return Done(again_after=max(0.1, (min(ends) - now).total_seconds()) if ends else None)

    def _next(self, old: Life, image: str, uses: Uses, now: datetime) -> Life:
        approvals = [one for one in self._approvals.list() if one["spec"].get("image") == image]
        keep = any(annotations_of(one).get(KEEP) == "true" for one in approvals)
        made = [datetime.fromisoformat(one["metadata"]["creationTimestamp"]) for one in approvals]
        renewed = old.left is not None and any(moment > old.left for moment in made)
        return advanced(old, image, uses, now, renewed=renewed, keep=keep)

    def _uses(self) -> Uses:
        wanted = {
            ((pool.get("spec") or {}).get("configuration") or {}).get("name") or "" for pool in self._pools.list()
        }
        used: set[str] = set()
        images: set[str] = set()
        for node in self._nodes.list():
            notes = annotations_of(node)
            used |= {notes.get(names.CURRENT_CONFIG, ""), notes.get(names.DESIRED_CONFIG, "")}
            images |= {notes.get(names.CURRENT_IMAGE, ""), notes.get(names.DESIRED_IMAGE, "")}
        found = {config: self._image(config) for config in (wanted | used) - {""}}
        named = {config: image for config, image in found.items() if image}
        return Uses(
            frozenset(digest_of(named[config]) for config in wanted & named.keys()),
            frozenset(digest_of(image) for image in {named[config] for config in used & named.keys()} | images - {""}),
            frozenset(self._booted()),
            uncertain=any(image is None for image in found.values()),
        )

    def _image(self, config: str) -> str | None:
        """The image of a config; None when there is no such config."""
        found: JsonObject | None = self._configs.get("", config)
        return None if found is None else str((found.get("spec") or {}).get("osImageURL") or "")

    def _booted(self) -> Iterable[str]:
        for machine in self._machines.list():
            seen = view(machine, Machine)
            if membership_of(seen) is Membership.APPROVED:
                yield from map(digest_of, images_in(seen.status.properties))
