"""Images are read from their registries, and what machines will measure that boot them is noted on their ReferenceValueSets.

    an ApprovedImage without measurements  ─┐
    a build for a confidential pool        ─┴▶ read the image by its digest ─▶ notes on the set (`attestation.values.computed`)

What is noted counts for nothing: `images.py` makes values of it, and those count when an ApprovedImage names the image. So a
build has values before anybody approved it, computed here from the bytes in the registry and by nobody who had a hand in the
build.

* What an image says of itself (its label) is taken where a person approved the image and its files tell nothing; of what was
  built here never, as whoever wrote the layer wrote the label.
* An image is read again when the method, the evidence that counts or the platforms of its pools changed, and when a registry
  did not answer; one whose bytes are no good is not.
* Where an image brings systemd-boot, its values hold for every boot loader that machines of its pools may have been installed
  with: those of other images that somebody approved. A new one among them is a reason to read again.
* With signers, the signatures beside the image are looked at again and again until all are there: they may come after the image.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from fastness.attestation.evidence.roots import accepted_evidence
from fastness.attestation.live.image_contents import ImageReader, ImageUnreadable, Simulated
from fastness.attestation.loops.images import IMAGES, SETS, keys_of_image, keys_of_set
from fastness.attestation.values import computed as notes
from fastness.attestation.values.computed import (
    BuiltImage,
    Computed,
    built_images,
    computed_of,
    image_of_build,
    loaders_of,
)
from fastness.attestation.values.from_images import LABEL, BadValues, carries_measurements, set_name, states_of_manifest
from fastness.attestation.values.tuples import IMAGE
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import digest_of
from fastness.images.boot_files import boot_files
from fastness.images.errors import OsImageError
from fastness.images.platforms import digest_of as digest_of_platforms
from fastness.images.platforms import platforms_for, settings_for
from fastness.images.signatures import key_id, signed_by, signers_for, unsigned
from fastness.images.transition import LoaderMark
from fastness.images.whole_image import Platform, expect
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.kinds.fastness_dev.image_approval import ImagePlatform, ImageSigner
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import ObjectName, is_being_deleted, metadata, object_name, view
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, WriteOptions
from fastness.runtime.clock import Clock

BUILDS: Final = MACHINE_OS_BUILD.resource
CONFIGS: Final = MACHINE_OS_CONFIG.resource
RETRY: Final = 30.0
MOST: Final = 3600.0
LOOK_FOR_SIGNATURES: Final = 60.0
_AS: Final = WriteOptions(manager="image-values")


def keys_of_build(build: Object) -> Iterable[ObjectName]:
    """The set that a build concerns."""
    image = image_of_build(build)
    return (ObjectName("", set_name(image)),) if image else ()


class Machines(NamedTuple):
    """What is known of the machines that will boot an image, and decides what they measure."""

    evidence: Sequence[str]
    platforms: Sequence[ImagePlatform]
    loaders: Sequence[LoaderMark]


class ImageValues:
    """Reads images that somebody approved, or that were built here for pools whose machines attest."""

    name = "image-values"
    writes: Sequence[Resource] = (SETS,)

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, reader: ImageReader, simulated: Simulated | None = None
    ) -> None:  # fmt: skip
        self.sources: Sequence[Source] = (
            # An approval lets the boot loader of its image count, and with it states of all others.
            Source(IMAGES, keys=self._with_others),
            Source(SETS, keys=self._of_set),
            Source(BUILDS, keys=keys_of_build, optional=True),
            Source(CONFIGS, keys=self._known, reads=frozenset({"spec"}), optional=True),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._known, reads=frozenset({"spec"})),
        )
        self._cluster = cluster
        self._clock = clock
        self._reader = reader
        self._simulated = simulated
        self._images, self._sets = informers.of(IMAGES), informers.of(SETS)
        self._builds, self._configs = informers.of(BUILDS), informers.of(CONFIGS)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._failures: dict[str, int] = {}

    def _known(self, _: Object) -> Iterable[Hashable]:
        return {
            *(key for image in self._images.list() for key in keys_of_image(image)),
            *(key for build in self._builds.list() for key in keys_of_build(build)),
            *(key for values in self._sets.list() for key in keys_of_set(values)),
        }

    def _with_others(self, approval: Object) -> Iterable[Hashable]:
        return {*keys_of_image(approval), *self._known(approval)}

    def _of_set(self, values: Object) -> Iterable[Hashable]:
        return self._known(values) if loaders_of(computed_of(values)) else keys_of_set(values)

    async def reconcile(self, key: ObjectName) -> Done:
        """Note what is known of one image."""
        approvals = [each for each in self._images.list() if key in keys_of_image(each) and not is_being_deleted(each)]
        built = [each for each in built_images(self._builds.list(), self._configs.list()) if _is(key, each.image)]
        stored = await self._stored(key.name)
        present = computed_of(stored)
        confidential = self._clusters.get("", NAME)
        pools = frozenset(
            each.pool for each in built if trust_model(confidential, each.pool) is TrustModel.CONFIDENTIAL_CLUSTER
        )
        if stored is not None and stored["spec"].get("source") != IMAGE:
            return Done()
        if not approvals and not pools:
            return await self._forget(stored, present)
        image = str(approvals[0]["spec"]["image"]) if approvals else built[0].image
        # What was once built for a pool stays its own: the object of a build goes, and the approval of its image may stand.
        words = next((each.in_words for each in built if each.pool in pools), present.built_by)
        earlier = replace(present, pools=present.pools | pools, built_by=words)
        noted = await self._read(
            image, earlier, built, bare=bool(pools) or not all(map(carries_measurements, approvals))
        )
        noted = await self._signed(image, noted, built)
        if stored is None and noted == Computed():
            return Done()
        if noted != present or stored is None:
            await self._write(key.name, image, stored, noted)
        return Done(again_after=self._again(key.name, image, noted))

    # ------------------------------------------------------------ reading

    async def _read(self, image: str, earlier: Computed, built: Sequence[BuiltImage], *, bare: bool) -> Computed:
        confidential = self._clusters.get("", NAME)
        pools = earlier.pools or frozenset({""})
        evidence = {tee for pool in pools for tee in accepted_evidence(confidential, pool)}
        simulated = self._simulated is not None and view(confidential or {}, ConfidentialCluster).spec.simulated
        settings = settings_for(view(confidential or {}, ConfidentialCluster).spec.images.platforms, earlier.pools)
        machines = Machines(sorted(evidence), settings, sorted(self._loaders(image, earlier.pools)))
        method = notes.method(
            evidence, simulated=simulated, built=earlier.built, loaders=machines.loaders,
            platforms=digest_of_platforms(settings),
        )  # fmt: skip
        if not bare or earlier.made_with == method:
            return earlier
        try:
            made = await self._computed(image, built, machines, simulated=simulated, label=not earlier.built)
        except (ImageUnreadable, OsImageError, BadValues) as error:
            lasting = not isinstance(error, ImageUnreadable) or error.lasting
            self._failures[set_name(image)] = 0 if lasting else self._failures.get(set_name(image), 0) + 1
            problem = f"{error.message}. {error.hint}".strip()
            if lasting:
                return replace(earlier, manifest=None, made_with=method, sources=(), missing={}, problem=problem)
            # What was computed before stays: that a registry is away says nothing about the values.
            return replace(earlier, problem=problem)
        self._failures.pop(set_name(image), None)
        return replace(
            made, made_with=method, pools=earlier.pools, signed_by=earlier.signed_by, built_by=earlier.built_by
        )

    def _loaders(self, image: str, pools: frozenset[str]) -> frozenset[LoaderMark]:
        """Boot loaders of other images that somebody approved: a machine of these pools may have been installed from one."""
        approved = {
            key.name for each in self._images.list() if not is_being_deleted(each) for key in keys_of_image(each)
        }
        marks: set[LoaderMark] = set()
        for values in self._sets.list():
            of_pools = set((values.get("spec") or {}).get("pools") or ())
            shared = not pools or not of_pools or bool(pools & of_pools)
            if shared and object_name(values).name in approved - {set_name(image)}:
                marks |= loaders_of(computed_of(values))
        return frozenset(marks)

    async def _computed(
        self, image: str, built: Sequence[BuiltImage], machines: Machines, *,
        simulated: bool, label: bool,
    ) -> Computed:  # fmt: skip
        if simulated and self._simulated is not None:
            manifest = await self._simulated(image)
            return Computed(_checked(manifest), sources=({"file": notes.SIMULATED},))
        contents = await self._reader.contents(image, _secret(built))
        platforms, problems = platforms_for(machines.platforms, frozenset())
        if problems:
            hint = "Write the platform anew with `fastness image platform`."
            raise BadValues("unreadable-platform", "; ".join(problems), hint)
        expected = expect(boot_files(contents.tree), platforms or (Platform(),), machines.evidence, machines.loaders)
        from_files = notes.from_files(expected)
        if from_files.manifest is not None:
            return replace(from_files, manifest=_checked(from_files.manifest))
        if not label or LABEL not in contents.labels:
            return replace(from_files, problem=_nothing(from_files))
        others = {kind: why for kind, why in expected.missing.items() if kind != "tpm"}
        return Computed(
            _checked(_labelled(contents.labels[LABEL])), sources=({"file": notes.LABELLED},), missing=others
        )

    async def _signed(self, image: str, earlier: Computed, built: Sequence[BuiltImage]) -> Computed:
        """Look for the signatures that are asked for and not there yet."""
        signers = self._signers(image)
        still_valid = earlier.signed_by & {each for each in map(key_id, signers) if each}
        if not unsigned(image, signers, still_valid):
            return replace(earlier, signed_by=still_valid)
        try:
            found_signatures = await self._reader.signatures(image, _secret(built))
        except ImageUnreadable:
            return replace(earlier, signed_by=still_valid)
        return replace(earlier, signed_by=still_valid | signed_by(digest_of(image), signers, found_signatures))

    def _signers(self, image: str) -> list[ImageSigner]:
        return signers_for(image, view(self._clusters.get("", NAME) or {}, ConfidentialCluster).spec.images.signers)

    def _again(self, name: str, image: str, noted: Computed) -> float | None:
        failed = self._failures.get(name, 0)
        if failed:
            return min(MOST, RETRY * float(2 ** min(failed - 1, 10)))
        return LOOK_FOR_SIGNATURES if unsigned(image, self._signers(image), noted.signed_by) else None

    # ------------------------------------------------------------ writing

    async def _stored(self, name: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SETS, name)
        except NotFound:
            return None

    async def _write(self, name: str, image: str, stored: JsonObject | None, noted: Computed) -> None:
        annotations = notes.notes_of(noted)
        if stored is None:
            made = {
                "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind,
                "metadata": {"name": name, "annotations": {key: text for key, text in annotations.items() if text}},
                # A build is its pool's alone from the first moment: a set without pools would be everybody's.
                "spec": {"source": IMAGE, "image": image, "values": [],
                         **({"pools": sorted(noted.pools)} if noted.pools else {})},
            }  # fmt: skip
            with suppress(AlreadyExists):
                await self._cluster.create(SETS, made, _AS)
            return
        patch = {"metadata": {"annotations": annotations}}
        with suppress(NotFound):
            await self._cluster.patch(SETS, name, patch, PatchType.MERGE, "", _AS)

    async def _forget(self, stored: JsonObject | None, present: Computed) -> Done:
        """A set that never counted and whose build is gone has nothing to explain."""
        if stored is None:
            return GONE
        if present == Computed() or stored["spec"].get("validity") or stored["spec"].get("withdrawn"):
            return Done()
        meta = metadata(stored)
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        with suppress(NotFound, Conflict):
            await self._cluster.delete(SETS, object_name(stored).name, "", options)
        return GONE


def _is(key: ObjectName, image: str) -> bool:
    return key.name == set_name(image)


def _secret(built: Sequence[BuiltImage]) -> str:
    return built[0].secret if built else ""


def _labelled(text: str) -> object:
    try:
        return json.decode(text.encode())
    except JsonError as error:
        raise BadValues("unreadable", f"label {LABEL} of the image is not JSON: {error}") from error


def _checked(manifest: object) -> JsonObject:
    """A manifest that can become values; raises BadValues."""
    if not isinstance(manifest, dict):
        raise BadValues("not-a-manifest", "a manifest is an object with a list pcrs")
    states_of_manifest(manifest)
    if len(json.canonical(manifest)) > notes.MAX_MANIFEST:
        raise BadValues("too-many-values", f"what machines measure takes more than {notes.MAX_MANIFEST} bytes")
    return manifest


def _nothing(computed: Computed) -> str:
    why = computed.missing.get("tpm") or "; ".join(computed.missing.values())
    hint = "Approve it with `fastness image approve --manifest`, with what a trusted machine measured"
    return f"nothing of what machines measure can be computed: {why}. {hint}"
