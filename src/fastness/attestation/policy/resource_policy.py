"""Policies for resources: Rego on the claims of a token, and whether all that speak of a path let a caller have it.

    policy = compile_resource_policy(text)
    policy.allow(token_claims, request)                             # may this request have this resource
    policies = ResourcePolicies.of(objects)
    access = yield from policies.allowing(("pool", "worker", "key"), claims)

A policy for resources has the package `policy` and a rule `allow`; `data` holds `plugin`, `resource-path` and `query`, as in
policies written for Trustee.

* `allow` counts only when it is the value true; whatever goes wrong during an evaluation allows nothing.
* What decides is `status.active`, never `spec`. Every policy whose pattern covers the path must allow, and the built-in one
  beside them, unless a text took its place that a person confirmed (`replacesBuiltIn`).
* One that goes beyond its bounds gave no answer: the resource is not to be had now, and nobody is refused for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from fastness.attestation.policy.policy import (
    RESOURCE,
    TEXT,
    built_in_text,
    check_text,
    is_replaced,
    policy_version,
    refuse_unknown_functions,
)
from fastness.attestation.policy.query import ActivePolicy, Decision, Query, active_policy
from fastness.attestation.policy.reading import reading_of
from fastness.formats import json
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.kind import JsonObject
from fastness.kube.admission import Allowed, Denied
from fastness.rego.engine import BadPolicy, NoAnswer, Program

BUILT_IN_POLICY: Final = "built-in-resource"
REQUEST: Final = "fastness.dev/request"
_ALLOW: Final = (
    f'p := input["{REQUEST}"].plugin; r := input["{REQUEST}"]["resource-path"]; q := input["{REQUEST}"].query; '
    'x := data.policy.allow with data.plugin as p with data["resource-path"] as r with data.query as q'
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: which plugin, the path below it, the query."""

    path: tuple[str, ...]
    plugin: str = RESOURCE
    query: Mapping[str, str] | None = None

    def as_json(self) -> JsonObject:
        """The data that a resource policy sees."""
        return {"plugin": self.plugin, "resource-path": list(self.path), "query": dict(self.query or {})}


@dataclass(frozen=True, slots=True)
class Unassessed:
    """A policy went beyond its bounds and gave no answer: neither yes nor no, and another try may get one."""

    reason: str


Access = Allowed | Denied | Unassessed
"""What all policies together make of a request."""


class ResourcePolicy:
    """A policy for resources, compiled."""

    def __init__(self, text: str) -> None:
        self.version = policy_version(text)
        self._reading = reading_of(text)
        self._program = Program({TEXT: text}, _ALLOW)
        refuse_unknown_functions(self._program, {REQUEST: Request(("a", "b", "c")).as_json()}, {})

    def allow(self, claims: Mapping[str, Any], request: Request) -> bool:
        """Whether the policy lets a caller with these claims have the resource. Total."""
        return self.answer(self._reading.of_input(claims), request.as_json())

    @property
    def reads_clock(self) -> bool:
        """Whether its answer may change although nothing that it is shown does."""
        return self._program.reads_clock

    def answer(self, part: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
        """The same for the part of the claims that it reads. Total."""
        try:
            answer = self._program.ask({**part, REQUEST: request}, {}, "")
        except (NoAnswer, BadPolicy):
            return False
        # True itself: a policy that gives a text or a number by mistake has allowed nothing (pitfall 22).
        return answer is True


class ResourcePolicies:
    """The policies for resources of a cluster at one moment; never changes."""

    def __init__(self, active: Iterable[ActivePolicy]) -> None:
        ordered = sorted(active, key=lambda policy: policy.name)
        self._policies = [policy for policy in ordered if policy.target not in EVIDENCE_TYPES]

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> ResourcePolicies:
        """The active texts of these AppraisalPolicies; one that is being deleted decides no more."""
        return cls(policy for obj in objects if (policy := active_policy(obj)) is not None)

    def allowing(
        self,
        path: Sequence[str],
        claims: Mapping[str, Any],
        query: Mapping[str, str] | None = None,
        *,
        built_in: bool = True,
    ) -> Decision[Access]:
        """Whether a caller with these token claims may have a resource. A user's refusal is named before the built-in one's.

        Without `built_in` those of users alone are asked: where an override stands in the place of the built-in one.
        """
        matching = [policy for policy in self._policies if policy.matches(tuple(path))]
        request = Request(tuple(path), query=query)
        late: str | None = None
        for policy in matching:
            answer = yield about_resource(policy, claims, request)
            if answer.exceeded is not None:
                late = late or f"{policy.label}: {answer.exceeded}"
            elif answer.value is not True:
                return denied_by(policy.label)
        if built_in and not is_replaced(matching) and not _built_in_allows(_statuses(claims)):
            return denied_by(BUILT_IN_POLICY)
        # After all refusals: one policy's no stands, however long another takes.
        return Allowed() if late is None else Unassessed(late)


def denied_by(policy: str) -> Denied:
    """No, as the policy with this label says."""
    return Denied(f"policy {policy} does not allow it")


def about_resource(policy: ActivePolicy, claims: Mapping[str, Any], request: Request) -> Query:
    """The question for a resource that a caller with these claims wants."""
    part, document = reading_of(policy.rego).of_input(claims), request.as_json()
    return Query(policy, "resource", part, document, key=json.canonical([part, document]))


def compile_resource_policy(rego: str) -> ResourcePolicy:
    """A policy for resources; raises BadPolicy."""
    check_text(rego)
    return ResourcePolicy(rego)


@cache
def default_resource_policy() -> ResourcePolicy:
    """The built-in policy for resources: every part of the machine must be affirmed."""
    return compile_resource_policy(built_in_text(RESOURCE))


def _statuses(claims: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The status of every part of a machine: all that the built-in policy for resources looks at."""
    parts = claims.get("submods")
    # No parts at all is not "all parts affirmed": the built-in policy is then asked about nothing, and allows nothing
    # (pitfall 2).
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        return ()
    return tuple((str(name), str(part.get("ear.status"))) for name, part in parts.items())


@lru_cache(maxsize=256)
def _built_in_allows(statuses: tuple[tuple[str, str], ...]) -> bool:
    """What the built-in policy says; the same for every machine and path, so each combination is asked about once."""
    claims = {"submods": {name: {"ear.status": status} for name, status in statuses}}
    return default_resource_policy().allow(claims, Request(("any", "any", "any")))
