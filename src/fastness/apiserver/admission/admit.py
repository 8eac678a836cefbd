"""Admission inside the write pipeline.

Rules are pure functions: the server's own (`apiserver.admission.own`), and after them those that whoever opens the API hands in.
Here a write becomes their request, and their answer becomes warnings, a changed object or an API error. Built-in
CustomResourceDefinitions are the server's own and refused here, because only the embedded API has them.

A rule that needs an engine for policies cannot wait for it: `trial` asks before the review, and the writer looks again whether
the object that it changes is still the same. What a person does is on the record before it happens: `written_down` waits for
that. Both are handed in, too: the server knows neither policies nor the record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from fastness.apiserver.admission.own import OWN
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.catalog.definitions import BUILTIN_LABEL
from fastness.apiserver.definitions import CRD_KEY
from fastness.apiserver.refusals import forbidden
from fastness.formats.patch import apply_json_patch
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, Operation, Patched, PolicyTrial
from fastness.kube.admission_rules import Row, RuleTable
from fastness.kube.errors import ApiError, Cause, from_status

__all__ = ["Admission", "Operation", "Question", "Recorder"]


class Question(Protocol):
    """What must be waited for before rules can judge some kinds."""

    kinds: Collection[str]

    async def ask(self, request: AdmissionRequest, lookups: AdmissionLookups) -> PolicyTrial | None:
        """The answer, for the rules; None where none of them would look at it, without waiting."""


class Recorder(Protocol):
    """Where acts of people are written down."""

    async def append(self, request: AdmissionRequest) -> bool:
        """Write down what a write is; returns when that is durable, and whether there was anything. Raises ApiError when the
        write must not happen."""


class Admission:
    """Asks the admission rules about every write: the server's own, then those that were given."""

    def __init__(self, lookups: AdmissionLookups, given: Iterable[Row], question: Question | None = None) -> None:
        self._lookups = lookups
        self._rules = RuleTable((*OWN, *given))
        self._question = question
        self._recorder: Recorder | None = None

    def record_in(self, recorder: Recorder) -> None:
        """Write acts down there; the record is an object of this API, so it comes after it."""
        self._recorder = recorder

    async def trial(
        self, call: Call, served: Served, new: JsonObject, old: JsonObject | None, subresource: str = ""
    ) -> PolicyTrial | None:
        """What the engine says of a policy in a write; None where no rule would ask, without waiting."""
        if self._question is None or subresource or served.kind.kind not in self._question.kinds:
            return None
        operation = Operation.CREATE if old is None else Operation.UPDATE
        return await self._question.ask(_request(call, served, operation, new, old, ""), self._lookups)

    def review(
        self,
        call: Call,
        served: Served,
        operation: Operation,
        new: JsonObject | None,
        old: JsonObject | None,
        subresource: str = "",
        trial: PolicyTrial | None = None,
    ) -> JsonObject:
        """The object as it may be stored; raises Forbidden, Invalid or what else the rules say."""
        about = new if new is not None else old or {}
        place = object_name(about)
        # Before the rules: a definition says what is served, and without one of ours the control plane loses a kind under its
        # feet.
        if served.storage_key == CRD_KEY and old is not None and labels_of(old).get(BUILTIN_LABEL):
            raise forbidden(served, place.name, "this kind is built in; its definition belongs to the server")
        answer = self._rules.review(_request(call, served, operation, new, old, subresource, trial), self._lookups)
        if isinstance(answer, Denied):
            raise _refusal(served, place.name, answer)
        for warning in answer.warnings:
            call.warn(warning)
        if isinstance(answer, Patched) and new is not None:
            patched: JsonObject = apply_json_patch(new, list(answer.patch))
            return {**patched, "metadata": dict(patched["metadata"])}
        return about

    async def written_down(
        self,
        call: Call,
        served: Served,
        operation: Operation,
        new: JsonObject | None,
        old: JsonObject | None,
        subresource: str = "",
    ) -> bool:
        """Put what a person does on the record; whether that took time, in which the object may have changed."""
        if self._recorder is None:
            return False
        return await self._recorder.append(_request(call, served, operation, new, old, subresource))


def _request(
    call: Call, served: Served, operation: Operation, new: JsonObject | None, old: JsonObject | None, subresource: str,
    trial: PolicyTrial | None = None,
) -> AdmissionRequest:  # fmt: skip
    place, kind = object_name(new if new is not None else old or {}), served.kind
    return AdmissionRequest(
        operation=operation, user=call.user, group=kind.group, version=kind.version, kind=kind.kind, resource=kind.plural,
        name=place.name, namespace=place.namespace, subresource=subresource, object=new, old=old, dry_run=call.dry_run,
        trial=trial,
    )  # fmt: skip


def _refusal(served: Served, name: str, denied: Denied) -> ApiError:
    error = from_status(denied.code, {"reason": denied.reason, "message": denied.message})
    error.group, error.name = served.kind.group, name
    error.kind = served.kind.kind if denied.reason == "Invalid" else served.kind.plural
    if denied.about is not None:
        error.kind, error.name = denied.about
    error.causes = tuple(Cause(cause.field, cause.reason, cause.message) for cause in denied.causes)
    return error
