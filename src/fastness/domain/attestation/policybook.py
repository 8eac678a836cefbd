"""Which policies judge: the active text of every AppraisalPolicy, and the built-in ones where there is none.

    book = PolicyBook.of(objects)
    book.judge("tpm", policy_input, values)         # a trust vector
    book.allows(("pool", "worker", "key"), claims)  # for a resource
    book.version("tpm")                             # what a verdict names

* What judges is `status.active`, never `spec`: only a controller that tried the text puts it there.
* Policies for a kind of evidence take the place of the built-in one. Several judge together, and of each claim the worst
  value counts, so one more policy never helps a machine.
* They are asked once for each image that the machine may have booted, with the values of that image alone (`tuples`), until they
  affirm it. `query_reference_value` never mixes what two images measure, in anybody's policy.
* Policies for resources can only take away: every one whose pattern matches must allow, and where none matches the built-in
  one must.
* An active text that does not compile any more affirms nothing and allows nothing. Silence would fall back to another policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastness.domain.attestation.errors import BadPolicy
from fastness.domain.attestation.measured import seen_values
from fastness.domain.attestation.patterns import covers
from fastness.domain.attestation.policy import (
    BUILT_IN,
    Policy,
    Request,
    ResourcePolicy,
    compile_policy,
    compile_resource_policy,
    default_policy,
    default_resource_policy,
)
from fastness.domain.attestation.trustvector import TrustVector, worst_of
from fastness.domain.attestation.values import ValueBook
from fastness.model.fastness_dev import EVIDENCE_TYPES
from fastness.model.objects import is_being_deleted, object_name

Object = Mapping[str, Any]

BUILT_IN_POLICY: Final = "built-in-resource"


@dataclass(frozen=True, slots=True)
class ActivePolicy:
    """A text that judges."""

    name: str
    target: str
    rego: str
    version: str

    @property
    def label(self) -> str:
        """How verdicts name it."""
        return f"{self.name}@{self.version}"

    def matches(self, path: Sequence[str]) -> bool:
        """Whether a resource policy speaks of this path; `*` stands for any characters within a segment."""
        return covers(self.target, path)


class PolicyBook:
    """The policies of a cluster at one moment; never changes."""

    def __init__(self, active: Iterable[ActivePolicy]) -> None:
        ordered = sorted(active, key=lambda policy: policy.name)
        self._evidence = {tee: [one for one in ordered if one.target == tee] for tee in EVIDENCE_TYPES}
        self._resources = [one for one in ordered if one.target not in EVIDENCE_TYPES]

    @classmethod
    def of(cls, objects: Iterable[Object]) -> PolicyBook:
        """The active texts of these AppraisalPolicies; one that is being deleted judges no more."""
        return cls(found for obj in objects if (found := active_policy(obj)) is not None)

    def version(self, tee: str) -> str:
        """The policies that judge a kind of evidence, as verdicts name them; empty when there is none."""
        own = self._evidence.get(tee, [])
        if own:
            return ",".join(policy.label for policy in own)[:253]
        return f"built-in-{tee}@{default_policy(tee).version}" if tee in BUILT_IN else ""

    def judge(self, tee: str, document: Mapping[str, Any], values: ValueBook) -> TrustVector:
        """What the policies conclude, without what this kind of evidence can never prove. Total.

        When no image satisfies them the answer is the one for the image that came nearest.
        """
        nearest: TrustVector | None = None
        for book in values.books(tee, seen_values(tee, document)):
            vector = self._judged(tee, document, book)
            if vector.affirms(tee):
                return vector
            nearest = nearest or vector
        return nearest or TrustVector(error="there is nothing to compare with")

    def _judged(self, tee: str, document: Mapping[str, Any], values: ValueBook) -> TrustVector:
        own = self._evidence.get(tee, [])
        if not own:
            if tee not in BUILT_IN:
                return TrustVector(error=f"there is no policy for evidence of kind {tee}")
            return default_policy(tee).recall(document, values).seen_by(tee)
        return worst_of(_evaluated(policy, document, values) for policy in own).seen_by(tee)

    def allows(self, path: Sequence[str], claims: Mapping[str, Any], query: Mapping[str, str] | None = None) -> str:
        """Which policy refuses a resource to a caller with these token claims; empty when it may be had. Total."""
        matching = [policy for policy in self._resources if policy.matches(path)]
        if not matching:
            return "" if _built_in_allows(_statuses(claims)) else BUILT_IN_POLICY
        request = Request(tuple(path), query=query)
        for policy in matching:
            compiled = _resource_policy(policy.rego)
            if compiled is None or not compiled.allow(claims, request):
                return policy.label
        return ""


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
    return ActivePolicy(object_name(obj).name, target, rego, version)


def _evaluated(policy: ActivePolicy, document: Mapping[str, Any], values: ValueBook) -> TrustVector:
    compiled = _policy(policy.rego)
    if compiled is None:
        return TrustVector(error=f"the policy {policy.label} cannot be compiled any more")
    return compiled.recall(document, values)


@lru_cache(maxsize=64)
def _policy(rego: str) -> Policy | None:
    try:
        return compile_policy(rego)
    except BadPolicy:
        return None


@lru_cache(maxsize=64)
def _resource_policy(rego: str) -> ResourcePolicy | None:
    try:
        return compile_resource_policy(rego)
    except BadPolicy:
        return None
