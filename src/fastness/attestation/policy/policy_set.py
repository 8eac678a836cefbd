"""Which policies judge: the built-in one, and the active text of every AppraisalPolicy beside it.

    book = PolicySet.of(objects)
    opinion = yield from book.judging("tpm", policy_input, values)        # a trust vector, and who refuses
    access = yield from book.allowing(("pool", "worker", "key"), claims)  # for a resource
    book.version("tpm")                                                   # what a verdict names

* What judges is `status.active`, never `spec`: only a controller that tried the text puts it there.
* Policies of users only take away. The built-in one judges too, of each claim the worst value counts, and every policy for a
  resource must allow. One text may take the place of the built-in policy, where a person confirmed it (`replacesBuiltIn`).
* A kind of evidence without a built-in policy is affirmed by nobody, unless a text was confirmed to judge it alone.
* They are asked once for each image that the machine may have booted, with the values of that image alone (`tuples`), until they
  affirm it. `query_reference_value` never mixes what two images measure, in anybody's policy. Policies of users are asked about
  images that the built-in one affirms, and otherwise about the nearest: more cannot change the outcome.
* An active text that does not compile any more affirms nothing and allows nothing. Silence would fall back to another policy.
* One that goes beyond its bounds leaves the machine not assessed, unless another policy refuses it anyway.

Both are generators that yield questions to policies of users (`policyquery`); the built-in policies are asked on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastness.attestation.policy.claims import TrustVector, worst_of
from fastness.attestation.policy.policy import BUILT_IN, Request, default_policy, default_resource_policy
from fastness.attestation.policy.query import ActivePolicy, Decision, about_evidence, about_resource
from fastness.attestation.values.measured import seen_values
from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.objects import is_being_deleted, metadata, object_name

Object = Mapping[str, Any]

BUILT_IN_POLICY: Final = "built-in-resource"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What all policies together make of evidence: who does not affirm it, and why it could not be judged, if it could not."""

    vector: TrustVector
    refused_by: tuple[str, ...] = ()
    unassessed: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """What all policies together make of a request: who refuses it, or which could not be asked; neither: it may be had."""

    refused_by: str = ""
    unassessed: str = ""


class PolicySet:
    """The policies of a cluster at one moment; never changes."""

    def __init__(self, active: Iterable[ActivePolicy]) -> None:
        ordered = sorted(active, key=lambda policy: policy.name)
        self._evidence = {tee: tuple(policy for policy in ordered if policy.target == tee) for tee in EVIDENCE_TYPES}
        self._resources = [policy for policy in ordered if policy.target not in EVIDENCE_TYPES]

    @classmethod
    def of(cls, objects: Iterable[Object]) -> PolicySet:
        """The active texts of these AppraisalPolicies; one that is being deleted judges no more."""
        return cls(policy for obj in objects if (policy := active_policy(obj)) is not None)

    def version(self, tee: str) -> str:
        """The policies that judge a kind of evidence, as verdicts name them; empty when there is none."""
        own = self._evidence.get(tee, ())
        built_in = [_built_in_label(tee)] if tee in BUILT_IN and not _replaced(own) else []
        return ",".join([*built_in, *(policy.label for policy in own)])[:253]

    def judging(self, tee: str, document: Mapping[str, Any], values: ReferenceValues) -> Decision[Opinion]:
        """What the policies conclude, without what this kind of evidence can never prove.

        When no image satisfies them the answer is the one for the image that came nearest.
        """
        own = self._evidence.get(tee, ())
        nearest: tuple[ReferenceValues, TrustVector] | None = None
        closest: Opinion | None = None
        for book in values.books(tee, seen_values(tee, document)):
            built_in = None if _replaced(own) else _built_in(tee, document, book)
            if built_in is not None and not built_in.affirms(tee):
                nearest = nearest or (book, built_in)
                continue
            opinion = yield from _agreed(own, tee, document, book, built_in)
            if opinion.unassessed or opinion.vector.affirms(tee):
                return opinion
            closest = closest or opinion
        if closest is None and nearest is not None:
            closest = yield from _agreed(own, tee, document, *nearest)
        return closest or Opinion(TrustVector(error="there is nothing to compare with"))

    def allowing(
        self, path: Sequence[str], claims: Mapping[str, Any], query: Mapping[str, str] | None = None
    ) -> Decision[Access]:
        """Whether a caller with these token claims may have a resource. A user's refusal is named before the built-in one's."""
        matching = [policy for policy in self._resources if policy.matches(tuple(path))]
        request = Request(tuple(path), query=query)
        late = ""
        for policy in matching:
            answer = yield about_resource(policy, claims, request)
            if answer.exceeded:
                late = late or f"{policy.label}: {answer.exceeded}"
            elif answer.value is not True:
                return Access(refused_by=policy.label)
        if not _replaced(matching) and not _built_in_allows(_statuses(claims)):
            return Access(refused_by=BUILT_IN_POLICY)
        return Access(unassessed=late)


def _agreed(
    own: Iterable[ActivePolicy],
    tee: str,
    document: Mapping[str, Any],
    book: ReferenceValues,
    built_in: TrustVector | None,
) -> Decision[Opinion]:
    """What the policies make of one image together; `built_in` is None where a text takes its place."""
    judged = [(_built_in_label(tee), built_in)] if built_in is not None else []
    late = ""
    for policy in own:
        answer = yield about_evidence(policy, document, book)
        if answer.exceeded:
            late = late or f"{policy.label}: {answer.exceeded}"
        elif answer.error:
            judged.append((policy.label, TrustVector(error=f"{policy.label}: {answer.error}")))
        else:
            judged.append((policy.label, TrustVector.of(answer.value).seen_by(tee)))
    refusing = tuple(label for label, vector in judged if not vector.affirms(tee))
    if late and not refusing:
        return Opinion(TrustVector(error=late), unassessed=late)
    return Opinion(worst_of(vector for _, vector in judged).seen_by(tee), refusing)


def _replaced(own: Iterable[ActivePolicy]) -> bool:
    return any(policy.replaces for policy in own)


def _built_in(tee: str, document: Mapping[str, Any], book: ReferenceValues) -> TrustVector:
    if tee not in BUILT_IN:
        return TrustVector(error=f"there is no built-in policy for evidence of kind {tee}")
    return default_policy(tee).recall(document, book).seen_by(tee)


def _built_in_label(tee: str) -> str:
    return f"built-in-{tee}@{default_policy(tee).version}" if tee in BUILT_IN else f"built-in-{tee}"


def _statuses(claims: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The status of every part of a machine: all that the built-in policy for resources looks at."""
    parts = claims.get("submods")
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        return ()
    return tuple((str(name), str(part.get("ear.status"))) for name, part in parts.items())


@lru_cache(maxsize=256)
def _built_in_allows(statuses: tuple[tuple[str, str], ...]) -> bool:
    """What the built-in policy says; the same for every machine and path, so each combination is asked about once."""
    claims = {"submods": {name: {"ear.status": status} for name, status in statuses}}
    return default_resource_policy().allow(claims, Request(("any", "any", "any")))


def active_policy(obj: Object) -> ActivePolicy | None:
    """The text of an AppraisalPolicy that judges, if one does."""
    status = obj.get("status")
    active = status.get("active") if isinstance(status, dict) else None
    if not isinstance(active, dict) or is_being_deleted(obj):
        return None
    target, rego, version = (str(active.get(key, "")) for key in ("for", "rego", "version"))
    replaces, uid = active.get("replacesBuiltIn") is True, str(metadata(obj).get("uid", ""))
    return ActivePolicy(object_name(obj).name, target, rego, version, replaces, uid)
