"""Questions to the policies of users, as data: who decides asks, and somebody else finds the answer.

    opinion = yield Query(...)            # inside a decision, which is a generator
    drive(decision, answer)            # drive one with a function; `attestation.live.policy_workers` drives them with
    processes

The text of a user may run for ever, or end the process that compiles it, so nothing that judges runs it. A decision yields each
question and is sent the `Answer`. That keeps it pure: no process, no clock, no waiting where it is decided.

A policy that went beyond its bounds has given no answer. That refuses nobody for good and lets nobody in: `exceeded` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from fastness.attestation.policy.reading import PolicyView, reading_of, view_for
from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, metadata, object_name
from fastness.protocol.kbs_path import covers

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ActivePolicy:
    """A text that judges; `replaces` where a person confirmed that it judges without the built-in policy."""

    name: str
    target: str
    rego: str
    version: str
    replaces: bool = False
    uid: str = ""

    @property
    def label(self) -> str:
        """Name and version, as verdicts name the policy."""
        return f"{self.name}@{self.version}"

    def matches(self, path: tuple[str, ...]) -> bool:
        """Whether a resource policy speaks of this path."""
        return covers(self.target, path)


@dataclass(frozen=True, slots=True)
class Query:
    """A question to one policy. Those with the same key have the same answer, but for the clock; without one none have."""

    policy: ActivePolicy
    kind: Literal["evidence", "resource"]
    input: Mapping[str, Any]
    data: Mapping[str, Any]
    digest: str = ""
    key: bytes | None = None

    def as_json(self) -> JsonObject:
        """The question for another process."""
        return {
            "rego": self.policy.rego, "input": dict(self.input), "data": dict(self.data),
            "digest": self.digest,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy said: claims, or true for a resource; `error` says why it said nothing, `exceeded` that it may not go on."""

    value: Any = None
    error: str | None = None
    exceeded: str | None = None


Decision = Generator[Query, Answer, Made]


def about_evidence(policy: ActivePolicy, document: Mapping[str, Any], book: ReferenceValues) -> Query:
    """The question for evidence with these claims, beside these values."""
    part: PolicyView = view_for(reading_of(policy.rego), document, book)
    return Query(policy, "evidence", part.input, part.values, part.digest, part.key)


def drive(decision: Decision[Made], answer: Callable[[Query], Answer]) -> Made:
    """Drive a decision to its end."""
    try:
        query = next(decision)
        while True:
            query = decision.send(answer(query))
    except StopIteration as end:
        made: Made = end.value
        return made


def active_policy(obj: Mapping[str, Any]) -> ActivePolicy | None:
    """The text of an AppraisalPolicy that judges, if one does."""
    status = obj.get("status")
    active = status.get("active") if isinstance(status, dict) else None
    if not isinstance(active, dict) or is_being_deleted(obj):
        return None
    target, rego, version = (str(active.get(key, "")) for key in ("for", "rego", "version"))
    replaces, uid = active.get("replacesBuiltIn") is True, str(metadata(obj).get("uid", ""))
    return ActivePolicy(object_name(obj).name, target, rego, version, replaces, uid)
