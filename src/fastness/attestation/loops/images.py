"""ApprovedImages: an approval makes values count, and its end takes them away.

For each approved image there is one ReferenceValueSet, named after the digest and written as a whole. When the last approval of
an image is gone the set is withdrawn: it keeps its values, which count for nothing from then on, so that a refusal can say
whose they were and since when they are not accepted. Verifiers look at the approvals too (`ReferenceValues`), so that the next
evidence is refused even before this loop has run.

* Values that no machine needs any more are withdrawn too, although the approval stands (`retirement.py` finds out).
* Where an approval says nothing of measurements, those count that were computed from the image (`image_values.py`). Values of a
  build are on its set before anybody approved it, for its own pool alone, and count for nothing until somebody does.
* Where signers are asked for and one has not signed, the values do not count, whoever approved them.
* Measurements that cannot be read are no measurements: the set is withdrawn, and the condition says why.
* A set of the same name that somebody wrote by hand is left alone, and the condition says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fastness.attestation.values.computed import Computed, computed_of, in_words
from fastness.attestation.values.from_images import (
    BadValues,
    approval_label,
    carries_measurements,
    set_name,
    set_of_image,
    unapproved_set,
)
from fastness.attestation.values.image_life import Stage, life_of, with_stage
from fastness.attestation.values.tuples import IMAGE
from fastness.formats.words import counted
from fastness.images.signatures import unsigned
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME, ConfidentialCluster
from fastness.kinds.fastness_dev.image_approval import ImageSigner
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, object_name, rfc3339, view, with_condition
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

IMAGES = APPROVED_IMAGE.resource
SETS = REFERENCE_VALUE_SET.resource
COMMITTED = "Committed"
_CLEARED: Mapping[str, None] = {"withdrawn": None, "pools": None, "validity": None}
_AS = WriteOptions(manager="approved-images")
_STATUS = WriteOptions(manager="approved-images", subresource="status")


def keys_of_image(approval: Object) -> Iterable[ObjectName]:
    """The set that an approval concerns; the schema lets no image without a digest in."""
    image = str(approval["spec"].get("image", ""))
    try:
        return (ObjectName("", set_name(image)),)
    except BadValues:
        return ()


def keys_of_set(values: Object) -> Iterable[ObjectName]:
    """A set that this loop keeps: one of an image, under the image's own name. Others belong to whoever wrote them."""
    try:
        name = set_name(str(values["spec"].get("image", "")))
    except BadValues:
        return ()
    return (object_name(values),) if object_name(values).name == name else ()


class Images:
    """Keeps the values of approved images."""

    name = "approved-images"
    writes: Sequence[Resource] = (SETS, IMAGES, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(IMAGES, keys=keys_of_image),
            Source(SETS, keys=keys_of_set),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._known, reads=frozenset({"spec"})),
        )
        self._cluster = cluster
        self._clock = clock
        self._images = informers.of(IMAGES)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one set in step with the approvals of its image."""
        approvals = self._approvals(key.name)
        stored = await self._stored(key.name)
        computed = computed_of(stored)
        if not approvals:
            return await self._unapproved(stored, computed)
        if stored is not None and stored["spec"].get("source") != IMAGE:
            await self._say(approvals, "False", "ComputationFailed", f"ReferenceValueSet {key.name} was made by hand")
            return Done()
        image = str(approvals[0]["spec"]["image"])
        missing = unsigned(image, self._signers(), computed.signed_by)
        if missing:
            return await self._unsigned(stored, approvals, missing)
        try:
            desired = set_of_image(image, approvals, computed)
        except BadValues as error:
            return await self._no_values(stored, approvals, computed, error)
        life = life_of(stored or {})
        if life.stage is Stage.RETIRED and stored is not None:
            since = rfc3339(life.left) if life.left else "a while"
            await self._withdraw(stored, f"no machine has needed the image since {since}")
            detail = f"no machine has needed it since {since}; its values count again when a pool names it"
            await self._say(approvals, "False", "Retired", detail)
            return Done()
        desired["spec"] = with_stage(desired["spec"], life.stage)
        await self._write(stored, desired)
        registers = sum(not value["name"].startswith("event_") for value in desired["spec"]["values"])
        detail = f"{counted(registers, 'value')} in ReferenceValueSet {key.name}, until {desired['spec']['validity']['notAfter']}"
        by_hand = any(map(carries_measurements, approvals))
        await self._say(approvals, "True", "ImageCommitted", detail + ("" if by_hand else in_words(computed)))
        return Done()

    async def _unapproved(self, stored: JsonObject | None, computed: Computed) -> Done:
        """What nobody approves: values of a build wait for somebody who does, others were approved once and are taken back."""
        if stored is None:
            return GONE
        spec = stored["spec"]
        if computed.built and spec.get("source") == IMAGE and not spec.get("validity"):
            with suppress(BadValues):
                desired = unapproved_set(str(spec["image"]), computed)
                await self._write(stored, desired)
            return Done()
        await self._withdraw(stored, "no ApprovedImage stands for the image any more")
        return Done()

    async def _unsigned(
        self, stored: JsonObject | None, approvals: Sequence[JsonObject], missing: Sequence[str]
    ) -> Done:
        who = ", ".join(missing)
        if stored is not None:
            await self._withdraw(stored, f"the image has no signature by {who}")
        text = (
            f"ConfidentialCluster.spec.images.signers asks for a signature by {who}, and the registry has none beside the image: "
            "sign it with `cosign sign --key`, which is looked for every minute"
        )
        await self._say(approvals, "False", "SignatureMissing", text)
        return Done()

    async def _no_values(
        self, stored: JsonObject | None, approvals: Sequence[JsonObject], computed: Computed, error: BadValues
    ) -> Done:
        """Say why an approved image has no values: they are being computed, could not be, or what a person gave is no good."""
        if stored is not None:
            await self._withdraw(stored, f"the measurements of the approval cannot be read: {error.message}")
        reason, text = "ComputationFailed", f"{error.message}. {error.hint}".strip()
        if error.code == "no-digest":
            reason = "NoDigestGiven"
        elif error.code == "no-measurements" and computed.problem:
            text = computed.problem
        elif error.code == "no-measurements" and not computed.made_with:
            reason, text = "Computing", "the image is read from its registry, to compute what machines will measure"
        await self._say(approvals, "False", reason, text)
        return Done()

    def _signers(self) -> Sequence[ImageSigner]:
        return view(self._clusters.get("", NAME) or {}, ConfidentialCluster).spec.images.signers

    def _known(self, _: Object) -> Iterable[ObjectName]:
        return {key for image in self._images.list() for key in keys_of_image(image)}

    def _approvals(self, name: str) -> list[JsonObject]:
        approvals = [
            image
            for image in self._images.list()
            if not is_being_deleted(image) and ObjectName("", name) in keys_of_image(image)
        ]
        return sorted(approvals, key=object_name)

    async def _stored(self, name: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SETS, name)
        except NotFound:
            return None

    async def _write(self, stored: JsonObject | None, desired: JsonObject) -> None:
        if stored is None:
            try:
                await self._cluster.create(SETS, desired, _AS)
            except AlreadyExists:
                await self._patch(desired["metadata"]["name"], {**_CLEARED, **desired["spec"]})
        elif stored["spec"] != desired["spec"]:
            await self._patch(desired["metadata"]["name"], {**_CLEARED, **desired["spec"]})

    async def _withdraw(self, stored: JsonObject, reason: str) -> None:
        if stored["spec"].get("withdrawn") is not None or stored["spec"].get("source") != IMAGE:
            return
        name, version = stored["metadata"]["name"], stored["metadata"].get("resourceVersion")
        withdrawn = {"withdrawn": {"at": rfc3339(self._clock.now()), "reason": reason}}
        # On the version that was looked at: a set that a rollout came to need in between is not taken away.
        patch = {"metadata": {"resourceVersion": version}, "spec": withdrawn}
        await self._cluster.patch(SETS, name, patch, PatchType.MERGE, options=_AS)
        await self._recorder.normal(stored, "ValuesWithdrawn", f"{reason}: its values count no longer")

    async def _patch(self, name: str, spec: Mapping[str, Any]) -> None:
        await self._cluster.patch(SETS, name, {"spec": spec}, PatchType.MERGE, options=_AS)

    async def _say(self, approvals: Sequence[JsonObject], status: str, reason: str, message: str) -> None:
        for approval in approvals:
            present = condition(approval, COMMITTED) or {}
            if (present.get("status"), present.get("reason"), present.get("message")) == (status, reason, message):
                continue
            entries = (approval.get("status") or {}).get("conditions") or ()
            conditions = with_condition(
                entries, kind=COMMITTED, status=status, reason=reason, message=message, now=self._clock.now(),
                generation=approval["metadata"].get("generation", 0),
            )  # fmt: skip
            place = object_name(approval)
            try:
                await self._cluster.patch(
                    IMAGES,
                    place.name,
                    {"status": {"conditions": conditions}},
                    PatchType.MERGE,
                    place.namespace,
                    _STATUS,
                )
            except NotFound:
                continue
            if status == "False":
                await self._recorder.warning(approval, reason, f"{approval_label(approval)}: {message}")
