"""The life of images: who needs which, remembered on their ReferenceValueSets.

One look at all pools, nodes and machines says which images are needed; `attestation.values.image_life` says what follows. The
outcome is two annotations on the set; `images.py`, which writes the values, turns them into the states of the values and, at the
end, into their withdrawal. So a set has one writer for its values, and its life survives a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from fastness.attestation.values.image_life import KEEP, Life, Uses, advanced, digest_of, life_of, retires_at
from fastness.attestation.values.tuples import IMAGE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name, view
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, MACHINE_SET
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.properties import images_in
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", "*")
_MAKERS: Final = (MACHINE_SET, CONTROL_PLANE_MACHINE_SET)
GATHER_SECONDS: Final = 1.0
_AS: Final = WriteOptions(manager="image-life")


class ImageLives:
    """Follows images from their first use to the end of their last.

    Nodes and machines change all the time; only a change of what they name here wakes the loop.
    """

    name = "image-life"
    writes: Sequence[Resource] = (REFERENCE_VALUE_SET.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        watched = (
            REFERENCE_VALUE_SET.resource,
            APPROVED_IMAGE.resource,
            MACHINE_CONFIG_POOL.resource,
            NODE.resource,
            MACHINE.resource,
        )
        optional = (MACHINE_OS_CONFIG.resource, *(kind.resource for kind in _MAKERS))
        self.sources: Sequence[Source] = (
            *(Source(informer, self._if_changed, delay=GATHER_SECONDS) for informer in watched),
            *(Source(informer, self._if_changed, delay=GATHER_SECONDS, optional=True) for informer in optional),
        )
        self._cluster = cluster
        self._clock = clock
        self._changed = True
        self._named: dict[str, tuple[str, ...]] = {}
        self._booted: dict[str, tuple[str, ...]] = {}
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._approvals = informers.of(APPROVED_IMAGE.resource)
        self._pools, self._configs = informers.of(MACHINE_CONFIG_POOL.resource), informers.of(MACHINE_CONFIG.resource)
        self._described = informers.of(MACHINE_OS_CONFIG.resource)
        self._makers = tuple(informers.of(kind.resource) for kind in _MAKERS)
        for informer in (*watched[:3], *optional):
            informers.of(informer).subscribe(self._something)
        informers.of(NODE.resource).subscribe(lambda old, new: self._note(self._named, old, new, _named))
        informers.of(MACHINE.resource).subscribe(lambda old, new: self._note(self._booted, old, new, _booted))

    def _something(self, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._changed = True

    def _note(
        self,
        memory: dict[str, tuple[str, ...]],
        old: JsonObject | None,
        new: JsonObject | None,
        read: Callable[[JsonObject], tuple[str, ...]],
    ) -> None:
        name, says = object_name(new or old or {}).name, read(new) if new is not None else None
        if memory.get(name) == says:
            return
        self._changed = True
        if says is None:
            memory.pop(name, None)
        else:
            memory[name] = says

    def _if_changed(self, _: Object) -> Iterable[ObjectName]:
        return (KEY,) if self._changed else ()

    async def reconcile(self, _: ObjectName) -> Done:
        """Write what changed in the life of every image."""
        self._changed = False
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
        approvals = [approval for approval in self._approvals.list() if approval["spec"].get("image") == image]
        keep = any(annotations_of(approval).get(KEEP) == "true" or self._starts(approval) for approval in approvals)
        made = [datetime.fromisoformat(approval["metadata"]["creationTimestamp"]) for approval in approvals]
        renewed = old.left is not None and any(moment > old.left for moment in made)
        return advanced(old, image, uses, now, renewed=renewed, keep=keep)

    def _starts(self, approval: JsonObject) -> bool:
        """Whether machine sets start machines with an image: it is of the release that they boot, or nobody can tell theirs."""
        release = annotations_of(approval).get(names.BOOT_IMAGE)
        noted = (
            annotations_of(maker).get(names.BOOT_IMAGE, "") for informer in self._makers for maker in informer.list()
        )
        return bool(release) and any(note.partition(" ")[0] in ("", release) for note in noted)

    def _uses(self) -> Uses:
        desired = {
            ((pool.get("spec") or {}).get("configuration") or {}).get("name") or "" for pool in self._pools.list()
        }
        used = {config for configs in self._named.values() for config in configs[:2]}
        images = {image for configs in self._named.values() for image in configs[2:]}
        by_config = {config: self._image(config) for config in (desired | used) - {""}}
        named = {config: image for config, image in by_config.items() if image}
        # A pool with a MachineOSConfig goes to the image that was built for it, in the place of the one that its config names.
        built = {str((each.get("status") or {}).get("currentImagePullSpec") or "") for each in self._described.list()}
        return Uses(
            frozenset(digest_of(named[config]) for config in desired & named.keys())
            | frozenset(digest_of(image) for image in built - {""}),
            frozenset(digest_of(image) for image in {named[config] for config in used & named.keys()} | images - {""}),
            frozenset(digest_of(image) for images in self._booted.values() for image in images),
            uncertain=any(image is None for image in by_config.values()),
        )

    def _image(self, config: str) -> str | None:
        """The image of a config; None when there is no such config."""
        rendered: JsonObject | None = self._configs.get("", config)
        return None if rendered is None else str((rendered.get("spec") or {}).get("osImageURL") or "")


def _named(node: JsonObject) -> tuple[str, ...]:
    """The configs and images that a node has and aims at, and the image that it would go back to."""
    notes = annotations_of(node)
    keys = (
        names.CURRENT_CONFIG, names.DESIRED_CONFIG, names.CURRENT_IMAGE, names.DESIRED_IMAGE, names.BOOTED_IMAGE,
    names.BASE_IMAGE, )  # fmt: skip
    return tuple(notes.get(key, "") for key in keys)


def _booted(machine: JsonObject) -> tuple[str, ...]:
    """The images that a machine of ours proved to be made of."""
    machine_view = view(machine, Machine)
    return (
        tuple(images_in(machine_view.status.properties)) if membership_of(machine_view) is Membership.APPROVED else ()
    )
