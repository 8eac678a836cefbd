"""Reference values through the broker, as clients of RVPS register and ask for them.

What is registered lands in one ReferenceValueSet (`kbs-reference-values`): a name that comes again replaces what it had, an empty
list takes a name away, all other names stay. Its validity starts anew with each registration.
"""

from __future__ import annotations

from typing import Any, Final

from fastness.attestation.values.from_images import MAX_VALUES, BadValues
from fastness.attestation.values.rvps import parse_message, read_value, set_of_message
from fastness.attestation.values.values import ReferenceValues
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

NAME: Final = "kbs-reference-values"
TRIES: Final = 5
_SETS: Final = REFERENCE_VALUE_SET.resource
_AS: Final = WriteOptions(manager="broker-admin")


class RegisteredValues:
    """The values that administrators register, and all that count."""

    def __init__(self, cluster: Cluster, sets: Informer, images: Informer, clock: Clock) -> None:
        self._cluster = cluster
        self._sets = sets
        self._images = images
        self._clock = clock

    async def register(self, message: bytes) -> None:
        """Take what a message says; raises Refusal, ApiError."""
        try:
            names = set(parse_message(message))
            made = set_of_message(NAME, message, self._clock.now())
        except BadValues as error:
            raise Refusal(400, error.code, error.message) from error
        try:
            for _ in range(TRIES):
                if await self._written(made, names):
                    return
        except Invalid as error:
            raise Refusal(400, "bad-values", error.message) from error
        raise Refusal(503, "conflict", "others register values at the same time")

    async def _written(self, made: JsonObject, names: set[str]) -> bool:
        try:
            stored = await self._cluster.get(_SETS, NAME)
        except NotFound:
            try:
                await self._cluster.create(_SETS, made, _AS)
            except AlreadyExists:
                return False
            return True
        others = [value for value in stored["spec"]["values"] if value["name"] not in names]
        values = [*others, *made["spec"]["values"]]
        if len(values) > MAX_VALUES:
            raise Refusal(400, "too-many-values", f"more than {MAX_VALUES} values: take old ones away first")
        spec = {**made["spec"], "values": values}
        # The list is written whole, so what another client registered in between would be lost without the version.
        patch = {"metadata": {"resourceVersion": metadata(stored)["resourceVersion"]}, "spec": spec}
        try:
            await self._cluster.patch(_SETS, NAME, patch, PatchType.MERGE, "", _AS)
        except Conflict:
            return False
        return True

    def query(self, name: str) -> Any:
        """What counts under a name now; raises Refusal."""
        book = ReferenceValues.of(self._sets.list(), self._clock.now(), self._images.list())
        value = read_value(book, name)
        if value is None:
            raise Refusal(404, "no-such-value", "no value counts under this name")
        return value
