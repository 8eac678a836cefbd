"""What a process for policies does with policies of evidence and of resources: answer one question, or try a whole policy.

Each step has a bound of CPU time. A trial has the same bounds for each of its cases as a question in service, so that what passes
the one holds in the other. Texts that were asked about stay compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from fastness.attestation.policy.cases import try_policy
from fastness.attestation.policy.policy import Policy, compile_policy
from fastness.attestation.policy.reading import PolicyView
from fastness.attestation.policy.resource_policy import ResourcePolicy, compile_resource_policy
from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy

COMPILE_SECONDS: Final = 3.0
EVALUATE_SECONDS: Final = 1.0
Bound = Callable[[float], None]
Compiled = TypeVar("Compiled")


def about_evidence(question: Mapping[str, Any], bound: Bound) -> JsonObject:
    """The claims that a policy makes of evidence (`Query.as_json`)."""
    policy = _compiled(_policy, question["rego"], bound)
    if isinstance(policy, str):
        return {"error": policy}
    bound(EVALUATE_SECONDS)
    vector = policy.answer(PolicyView(question["input"], question["data"], question["digest"]))
    claims = {**vector.claims, **vector.unknown}
    return {"value": claims, "error": vector.error, "clock": policy.reads_clock}


def about_resource(question: Mapping[str, Any], bound: Bound) -> JsonObject:
    """Whether a policy lets a resource go (`Query.as_json`)."""
    gate = _compiled(_gate, question["rego"], bound)
    if isinstance(gate, str):
        return {"error": gate}
    bound(EVALUATE_SECONDS)
    return {"value": gate.answer(question["input"], question["data"]), "error": None, "clock": gate.reads_clock}


def trial(question: Mapping[str, Any], bound: Bound) -> JsonObject:
    """What comes of trying the `spec` of an AppraisalPolicy, as `Trial.from_json` reads it."""
    bound(COMPILE_SECONDS)
    return try_policy(question["spec"], partial(bound, EVALUATE_SECONDS)).as_json()


def _compiled(compile_text: Callable[[str], Compiled], rego: str, bound: Bound) -> Compiled | str:
    """A compiled policy, or why it is none any more."""
    bound(COMPILE_SECONDS)
    try:
        return compile_text(rego)
    except BadPolicy as error:
        return f"the policy cannot be compiled any more: {error.message}"


@lru_cache(maxsize=32)
def _policy(rego: str) -> Policy:
    return compile_policy(rego)


@lru_cache(maxsize=32)
def _gate(rego: str) -> ResourcePolicy:
    return compile_resource_policy(rego)
