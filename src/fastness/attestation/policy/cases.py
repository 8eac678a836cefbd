"""Trying a policy: is it one, and does it do what its author says it does.

    trial = try_policy(spec)            # spec of an AppraisalPolicy
    trial.good                          # parsed, and every case passes

Each case is an input with reference values (or, for a resource, a request) and the result that must come out. One case is always
added: nothing at all. A policy that accepts it accepts everybody, and is refused whatever its own cases say. At least one case of
the author must be refused: who never saw his policy say no does not know what it is for.

Text that a user wrote may end the process that compiles it, so controllers and commands come here through
`attestation.live.policy_workers`, in a process that gives each case a bound of its own by `before_each`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastness.attestation.policy.claims import AFFIRMED, REFUSED, TrustVector
from fastness.attestation.policy.policy import RESOURCE, Policy, compile_policy
from fastness.attestation.policy.resource_policy import Request, ResourcePolicy, compile_resource_policy
from fastness.attestation.values.values import EMPTY, ReferenceValues
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.fastness_dev.appraisal_policy import NOT_AFFIRMED
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy

Spec = Mapping[str, Any]
NOTHING: Final = "(nothing at all)"
REFUSES_NONE: Final = "no case shows what the policy refuses: add one that it must not affirm"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case went, and whether the policy refused; `told` says what came out instead."""

    name: str
    passed: bool
    detail: str = ""
    refused: bool = False

    def as_json(self) -> JsonObject:
        """The result as JSON, for the process that asked and for `-o json`."""
        return {"name": self.name, "passed": self.passed, "told": self.detail, "refused": self.refused}


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a policy; `error` says why it is none."""

    error: str | None = None
    code: str = ""
    results: tuple[CaseResult, ...] = ()

    @property
    def parsed(self) -> bool:
        """Whether it is a policy."""
        return self.error is None

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    @property
    def good(self) -> bool:
        """Whether the policy may judge."""
        return self.parsed and not self.failed and self.refuses

    @property
    def refuses(self) -> bool:
        """Whether a case that its author wrote is refused, as it should be."""
        return any(result.passed and result.refused for result in self.results if result.name != NOTHING)

    @property
    def passed(self) -> str:
        """Cases that pass, of all that the author wrote."""
        written = [result for result in self.results if result.name != NOTHING]
        return f"{sum(result.passed for result in written)}/{len(written)}"

    def as_json(self) -> JsonObject:
        """The trial as JSON; `from_json` reads it."""
        return {"error": self.error, "code": self.code, "results": [result.as_json() for result in self.results]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trial:
        """A trial that another process made."""
        results = tuple(
            CaseResult(str(case["name"]), case["passed"] is True, str(case["told"]), case["refused"] is True)
            for case in value["results"]
        )
        error = value["error"]
        return cls(None if error is None else str(error), str(value["code"]), results)


def judges_evidence(spec: Spec) -> bool:
    """Whether a policy is for evidence; otherwise it is for a resource."""
    return spec.get("for") in EVIDENCE_TYPES


def try_policy(spec: Spec, before_each: Callable[[], None] = lambda: None) -> Trial:
    """Compile a policy and run its cases, each after a call of `before_each`. Total."""
    text = str(spec.get("rego", ""))
    cases = [case for case in spec.get("cases") or () if isinstance(case, dict)]
    try:
        if judges_evidence(spec):
            policy, tee = compile_policy(text), str(spec["for"])
            runs = [partial(_nothing, policy, tee), *(partial(_evidence, policy, tee, case) for case in cases)]
        else:
            gate = compile_resource_policy(text)
            runs = [partial(_nothing_asked, gate), *(partial(_resource, gate, case) for case in cases)]
        return Trial(results=tuple(_run(run, before_each) for run in runs))
    except BadPolicy as error:
        return Trial(error=error.message, code=error.code)


def proven_by_nothing(target: str) -> JsonObject:
    """The case for a policy whose author cannot write any: nobody is let in who showed nothing."""
    expected = NOT_AFFIRMED if target in EVIDENCE_TYPES else REFUSED
    return {"name": "who shows nothing is not let in", "input": {}, "expect": expected}


def _run(case: Callable[[], CaseResult], before: Callable[[], None]) -> CaseResult:
    before()
    return case()


def _nothing(policy: Policy, tee: str) -> CaseResult:
    accepts = policy.evaluate({}, EMPTY).seen_by(tee).affirms(tee)
    message = "the policy affirms a machine that showed nothing" if accepts else ""
    return CaseResult(NOTHING, not accepts, message, not accepts)


def _nothing_asked(gate: ResourcePolicy) -> CaseResult:
    accepts = gate.allow({}, Request(("default", "nobody", "nothing")))
    message = "the policy lets a caller without claims have everything; leave it out instead" if accepts else ""
    return CaseResult(NOTHING, not accepts, message, not accepts)


def _evidence(policy: Policy, tee: str, case: Spec) -> CaseResult:
    vector = policy.evaluate(_mapping(case.get("input")), book_of_case(case.get("data"))).seen_by(tee)
    result = vector.result(tee)
    texts = [_unexpected(result, case)]
    texts += [
        _difference(name, vector.value(str(name).replace("_", "-")), expected)
        for name, expected in _mapping(case.get("expectVector")).items()
    ]
    return _result(case, texts, vector, result)


def _resource(gate: ResourcePolicy, case: Spec) -> CaseResult:
    result = AFFIRMED if gate.allow(_mapping(case.get("input")), request_of_case(case.get("data"))) else REFUSED
    return _result(case, [_unexpected(result, case)], None, result)


def _result(case: Spec, differences: list[str | None], vector: TrustVector | None, result: str) -> CaseResult:
    texts = [text for text in differences if text is not None]
    if texts and vector is not None and vector.error is not None:
        texts.append(vector.error)
    return CaseResult(str(case.get("name", "")), not texts, "; ".join(texts), result != AFFIRMED)


def _unexpected(result: str, case: Spec) -> str | None:
    expected = str(case.get("expect", ""))
    if expected == NOT_AFFIRMED and result != AFFIRMED:
        return None
    return _difference("the result", result, expected)


def _difference(what: str, value: object, expected: object) -> str | None:
    return None if value == expected else f"{what} is {value}, expected {expected}"


def book_of_case(data: object) -> ReferenceValues:
    """The reference values of a case: by name a list, or one single value, as policies get them."""
    return ReferenceValues(dict(_mapping(data)), {}, (), None)


def request_of_case(data: object) -> Request:
    """The request of a case, in the shape of a resource policy's data."""
    given = _mapping(data)
    path = given.get("resource-path")
    query = {str(key): str(value) for key, value in _mapping(given.get("query")).items()}
    parts = tuple(str(part) for part in path) if isinstance(path, list) else ()
    return Request(parts, str(given.get("plugin", RESOURCE)), query)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
