"""Admission inside the write pipeline.

The rules are a pure function in `domain/admission`; here a write becomes its request, and its answer becomes warnings, a changed
object or an API error. Built-in CustomResourceDefinitions are the server's own and refused here, because only the embedded API
has them.
"""

from __future__ import annotations

from fastness.cluster.embedded.call import Call
from fastness.cluster.embedded.catalog import Served
from fastness.cluster.embedded.catalog.definitions import BUILTIN_LABEL
from fastness.cluster.embedded.definitions import CRD_KEY
from fastness.cluster.embedded.refusals import forbidden
from fastness.cluster.errors import ApiError, Cause, from_status
from fastness.domain.admission import AdmissionLookups, AdmissionRequest, Denied, Operation, Patched, review
from fastness.formats.patch import apply_json_patch
from fastness.model.kind import JsonObject
from fastness.model.objects import labels_of, object_name

__all__ = ["Admission", "Operation"]


class Admission:
    """Asks the admission rules about every write."""

    def __init__(self, lookups: AdmissionLookups) -> None:
        self._lookups = lookups

    def review(
        self,
        call: Call,
        served: Served,
        operation: Operation,
        new: JsonObject | None,
        old: JsonObject | None,
        subresource: str = "",
    ) -> JsonObject:
        """The object as it may be stored; raises Forbidden, Invalid or what else the rules say."""
        about = new if new is not None else old or {}
        place = object_name(about)
        if served.storage_key == CRD_KEY and old is not None and labels_of(old).get(BUILTIN_LABEL):
            raise forbidden(served, place.name, "this kind is built in; its definition belongs to the server")
        kind = served.kind
        request = AdmissionRequest(
            operation=operation, user=call.user, group=kind.group, version=kind.version, kind=kind.kind,
            resource=kind.plural, name=place.name, namespace=place.namespace, subresource=subresource, object=new, old=old,
            dry_run=call.dry_run,
        )  # fmt: skip
        answer = review(request, self._lookups)
        if isinstance(answer, Denied):
            raise _refusal(served, place.name, answer)
        for warning in answer.warnings:
            call.warn(warning)
        if isinstance(answer, Patched) and new is not None:
            patched: JsonObject = apply_json_patch(new, list(answer.patch))
            return {**patched, "metadata": dict(patched["metadata"])}
        return about


def _refusal(served: Served, name: str, denied: Denied) -> ApiError:
    error = from_status(denied.code, {"reason": denied.reason, "message": denied.message})
    error.group, error.name = served.kind.group, name
    error.kind = served.kind.kind if denied.reason == "Invalid" else served.kind.plural
    if denied.about is not None:
        error.kind, error.name = denied.about
    error.causes = tuple(Cause(cause.field, cause.reason, cause.message) for cause in denied.causes)
    return error
