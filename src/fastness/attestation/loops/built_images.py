"""Images that were built here: on the record with whoever had a hand in them, and approved where a standing approval says so.

Nobody approves their own operating system. What a build made has values that count for nothing; a person approves the image, or
`ConfidentialCluster.spec.images` does so for the pools that it lists, which was a lowering that somebody confirmed.

* The record says for each image who wrote the layer, who wrote each config that is in it, and what approved it.
* A standing approval approves an image once. One that a person took back stays taken back.
* It is for images that the controllers had built and pushed for that pool, by their own signature (`values.pushed_here`): what
  the status of a build says is not enough, nor is an image that was built elsewhere.
* Switching it off takes nothing back: machines that run an approved image go on proving it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.attestation.live.named_record import NamedRecord
from fastness.attestation.loops.image_values import BUILDS, CONFIGS, keys_of_build
from fastness.attestation.loops.images import IMAGES, SETS, keys_of_image, keys_of_set
from fastness.attestation.values.computed import BuiltImage, built_images, computed_of
from fastness.attestation.values.from_images import POOLS, set_name
from fastness.attestation.values.pushed_here import SIGNER, is_vouched
from fastness.formats.image_reference import digest_of
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, view
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe.logs import logger
from fastness.record.entry import RecordEntry
from fastness.record.live.door_keys import published_keys
from fastness.runtime.clock import Clock

ON_RECORD: Final = "fastness.dev/on-record"
APPROVED_BY: Final = "fastness.dev/approved-by"
STANDING: Final = "ConfidentialCluster.spec.images"
LAYER_ACTS: Final = ("act-describe-image", "act-change-description")
CONFIG_ACTS: Final = ("act-publish-config", "act-change-published-config")
MOST_NAMED: Final = 16
_AS: Final = WriteOptions(manager="built-images")
_log = logger("images")


class BuiltImages:
    """Records what was built, and approves it where that was said beforehand."""

    name = "built-images"
    writes: Sequence[Resource] = (IMAGES, SETS)

    def __init__(self, cluster: Cluster, informers: Informers, record: NamedRecord, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(SETS, keys=keys_of_set),
            Source(IMAGES, keys=keys_of_image),
            Source(BUILDS, keys=keys_of_build, optional=True),
            Source(CONFIGS, keys=_nobody, optional=True),
            Source(MACHINE_CONFIG_POOL.resource, keys=_nobody, optional=True),
            Source(MACHINE_CONFIG.resource, keys=_nobody, optional=True),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._known, reads=frozenset({"spec"})),
        )
        self._cluster = cluster
        self._record = record
        self._images, self._sets = informers.of(IMAGES), informers.of(SETS)
        self._builds, self._described = informers.of(BUILDS), informers.of(CONFIGS)
        self._pools, self._configs = informers.of(MACHINE_CONFIG_POOL.resource), informers.of(MACHINE_CONFIG.resource)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)

    def _known(self, _: Object) -> Iterable[Hashable]:
        return {key for values in self._sets.list() for key in keys_of_set(values)}

    async def reconcile(self, key: ObjectName) -> Done:
        """One image that was built here."""
        try:
            stored = await self._cluster.get(SETS, key.name)
        except NotFound:
            return GONE
        computed = computed_of(stored)
        listed = built_images(self._builds.list(), self._described.list())
        built = [each for each in listed if set_name(each.image) == key.name and each.pool in computed.pools]
        if not built or computed.manifest is None:
            return Done()
        if ON_RECORD not in annotations_of(stored):
            await self._record.append(await self._entry(built[0]))
            await self._note(key.name, {ON_RECORD: built[0].build})
        if self._waits(stored, key):
            await self._approve(key.name, built)
        return Done()

    def _waits(self, stored: JsonObject, key: ObjectName) -> bool:
        """Whether nobody ever approved an image, a person or this loop."""
        once = {"validity", "withdrawn"} & stored["spec"].keys() or APPROVED_BY in annotations_of(stored)
        return not once and not any(key in keys_of_image(image) for image in self._images.list())

    async def _approve(self, name: str, built: Sequence[BuiltImage]) -> None:
        standing = view(self._clusters.get("", NAME) or {}, ConfidentialCluster).spec.images.standing
        listed = [each for each in built if each.pool in standing]
        keys = await published_keys(self._cluster, SIGNER) if listed else {}
        mine = [each for each in listed if is_vouched(each.vouched, each.pool, each.image, keys)]
        if not mine:
            for each in listed:
                _log.warning("image.not_vouched", build=each.build, image=each.image)
            return
        image, pools = mine[0].image, sorted({each.pool for each in mine})
        detail = {"image": image[:256], "pools": ", ".join(pools)[:256], "build": mine[0].build, "by": STANDING}
        await self._record.append(
            RecordEntry("image-approved", digest_of(image), f"approvedimages/{NAMESPACE}/{name}", detail=detail)
        )
        approval = {
            "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "annotations": {APPROVED_BY: STANDING, POOLS: ",".join(pools)},
            },
            "spec": {"image": image},
        }  # fmt: skip
        with suppress(AlreadyExists):
            await self._cluster.create(IMAGES, approval, _AS)
        await self._note(name, {APPROVED_BY: STANDING})

    async def _entry(self, built: BuiltImage) -> RecordEntry:
        """Who had a hand in an image, as edges wrote it down."""
        layer = await self._record.person(f"machineosconfigs/{built.described_by}", LAYER_ACTS)
        wrote = [
            f"{each} by {await self._record.person(f'machineconfigs/{each}', CONFIG_ACTS)}"
            for each in self._public(built)
        ]
        detail = {
            "image": built.image[:256], "pool": built.pool, "build": built.build, "config": built.config,
            "layer": f"{built.described_by} by {layer}"[:256],
            **{f"config-{number}": text[:256] for number, text in enumerate(wrote, 1)},
        }  # fmt: skip
        return RecordEntry("image-built", digest_of(built.image), f"machineosbuilds/{built.build}", detail=detail)

    def _public(self, built: BuiltImage) -> list[str]:
        """The configs that are in the image of a confidential pool: those that say that they are public."""
        pool = self._pools.get("", built.pool) or {}
        source = ((pool.get("spec") or {}).get("configuration") or {}).get("source") or ()
        configs = (self._configs.get("", str(each.get("name") or "")) for each in source)
        public = [
            each["metadata"]["name"] for each in configs if each and annotations_of(each).get(names.PUBLIC) == "true"
        ]
        return public[:MOST_NAMED]

    async def _note(self, name: str, annotations: dict[str, str]) -> None:
        with suppress(NotFound):
            patch = {"metadata": {"annotations": annotations}}
            await self._cluster.patch(SETS, name, patch, PatchType.MERGE, "", _AS)


def _nobody(_: Object) -> Iterable[Hashable]:
    return ()
