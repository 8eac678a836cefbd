"""Decisions whose policies are harmless texts of the tests: they are asked in this process."""

from __future__ import annotations

from typing import TypeVar

from fastness.attestation.policy.policy import compile_policy
from fastness.attestation.policy.query import Answer, Decision, Query, drive
from fastness.attestation.policy.reading import PolicyView
from fastness.attestation.policy.resource_policy import compile_resource_policy
from fastness.rego.engine import BadPolicy

Made = TypeVar("Made")


def decided(decision: Decision[Made]) -> Made:
    """The outcome of a decision."""
    return drive(decision, _answer)


def _answer(query: Query) -> Answer:
    try:
        if query.kind == "resource":
            return Answer(compile_resource_policy(query.policy.rego).answer(query.input, query.data))
        vector = compile_policy(query.policy.rego).answer(PolicyView(query.input, query.data, query.digest))
    except BadPolicy as error:
        return Answer(error=f"the policy cannot be compiled any more: {error.message}")
    return Answer({**vector.claims, **vector.unknown}, vector.error)
