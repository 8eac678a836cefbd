"""Whether every approved image knows the next authority of the doors.

Machines of confidential pools believe the authorities that their image carries. A successor that issues before all of them
carry it would lock out whatever boots an older one, so it waits until each knows it, or is approved no more.

* An ApprovedImage says which authorities its image carries in the annotation `fastness.dev/doors-ca` (digests of certificates).
* One that does not say it counts as built when it was approved: before the successor was made it cannot know it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from fastness.crypto.x509 import BACKDATE, Certificate
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, is_being_deleted
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.informers import Informer, Informers

DOORS_CA: Final = "fastness.dev/doors-ca"


class SuccessorGuard:
    """Agrees to a successor once every approved image carries it."""

    def __init__(self, images: Informer) -> None:
        self._images = images

    @classmethod
    async def open(cls, informers: Informers) -> SuccessorGuard:
        """With all approvals at hand."""
        images = informers.of(APPROVED_IMAGE.resource)
        await images.synced()
        return cls(images)

    def __call__(self, successor: Certificate) -> bool:
        """Whether this successor may issue."""
        return all(knows(image, successor) for image in self._images.list())


def knows(image: JsonObject, successor: Certificate) -> bool:
    """Whether machines that boot an approved image believe an authority."""
    if is_being_deleted(image):
        return True
    named = annotations_of(image).get(DOORS_CA, "")
    if named:
        return str(successor.fingerprint) in named.split()
    approved = datetime.fromisoformat(image["metadata"]["creationTimestamp"])
    # Certificates begin a little before they are made, for clocks that lag: an image of those minutes cannot know the successor.
    return approved >= successor.not_before + BACKDATE


def carried(authorities: Iterable[Certificate]) -> str:
    """What the annotation of an image that carries these authorities says."""
    return " ".join(sorted(str(authority.fingerprint) for authority in authorities))
