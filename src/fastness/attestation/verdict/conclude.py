"""From an appraisal to a verdict: policy and reference values, and why.

    conclusion = yield from concluding(appraisal, facts, policies, book)
    conclusion.accepted, conclusion.reason, conclusion.checks

Three things must agree: the checks of the verifier (nothing refuses), the binding of init data (a text that was sent is the
one that the hardware signed), and the policy (every mandatory claim affirmed). The order of the checks is the order in
which somebody would read them: what the hardware says, where the machine differs, what the policy made of it.

Where nothing speaks against the hardware but a vendor's document that is missing or too old, the machine is not refused: it is
not assessed, and asked to come again. So it is where the policy of a user went beyond its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.attestation.evidence.checks import DEBUG, Appraisal, Check, Result
from fastness.attestation.policy.claims import TrustVector, policy_input
from fastness.attestation.policy.policy_set import Opinion, PolicySet
from fastness.attestation.policy.query import Decision
from fastness.attestation.values.differences import differences, nothing_published
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.init_data import digest_of, judged
from fastness.formats.initdata import InitData
from fastness.kinds.kind import JsonObject

POLICY: Final = "policy"
EXCEEDED: Final = "policy-exceeded"
_STALE: Final = frozenset(
    {"collateral-expired", "collateral-missing", "crl-expired", "collateral-not-given", "crl-missing"}
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the evidence: runtime data as claims, and the init data that the caller sent."""

    runtime: Mapping[str, Any] = field(default_factory=dict)
    init_data: InitData | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome: checks in order, the trust vector, the claims that the policy saw."""

    checks: tuple[Check, ...]
    vector: TrustVector
    claims: JsonObject
    result: str
    reason: str
    accepted: bool
    retry: bool = False

    @property
    def detail(self) -> str:
        """What a machine may be told: names of checks, never values."""
        if self.accepted:
            return "affirmed"
        failed = next((check for check in self.checks if check.refuses), None)
        return f"{failed.name}: {failed.code}" if failed else self.reason


def concluding(appraisal: Appraisal, facts: Facts, policies: PolicySet, book: ReferenceValues) -> Decision[Conclusion]:
    """Judge an appraisal by the policies that are active and the values that are published."""
    checks = list(appraisal.checks)
    digest, table = None, None
    if facts.init_data is not None:
        digest = digest_of(facts.init_data)
        about, table = judged(appraisal, facts.init_data)
        checks += about
    claims = policy_input(appraisal, facts.runtime, digest, table)
    opinion = yield from policies.judging(appraisal.tee, claims, book)
    vector = opinion.vector.seen_by(appraisal.tee)
    affirmed = vector.affirms(appraisal.tee)
    if appraisal.authentic:
        checks += differences(appraisal, book, refused=not affirmed and not opinion.unassessed)
    checks.append(_policy(appraisal.tee, opinion, policies.version(appraisal.tee)))
    refusing = next((check for check in checks if check.refuses), None)
    accepted = appraisal.authentic and refusing is None and affirmed
    unpublished = appraisal.acceptable and not accepted and nothing_published(appraisal.tee, book)
    # A policy that gave no answer decides only where nothing else does.
    open_question = bool(opinion.unassessed) and (refusing is None or refusing.name == POLICY)
    waiting = stale(appraisal) or open_question
    return Conclusion(
        checks=tuple(checks),
        vector=vector,
        claims=claims,
        result="Affirmed" if accepted else "NotAssessed" if waiting else "Refused",
        reason="" if accepted else "values-not-published" if unpublished else _reason(refusing, appraisal),
        accepted=accepted,
        retry=unpublished or waiting,
    )


def stale(appraisal: Appraisal) -> bool:
    """Whether nothing speaks against the evidence but documents that are missing or too old: those may still come."""
    refusing = [check.code for check in appraisal.checks if check.refuses]
    return bool(refusing) and set(refusing) <= _STALE


def _policy(tee: str, opinion: Opinion, version: str) -> Check:
    vector, expected = opinion.vector, "every mandatory claim affirmed"
    seen = vector.error or ", ".join(f"{name} {value}" for name, value in vector.claims.items() if value)
    if vector.affirms(tee):
        return Check(POLICY, Result.PASS, "ok", seen, expected, f"policy {version}")
    if opinion.unassessed:
        hint = "The policy gave no answer within its bounds: correct it, or switch it off."
        return Check(POLICY, Result.NOT_ASSESSED, EXCEEDED, opinion.unassessed, "an answer", f"policy {version}", hint)
    missing, refusing = ", ".join(vector.unaffirmed(tee)), ",".join(opinion.refused_by)
    hint = (
        f"Not affirmed: {missing}. The comparisons above say where the machine differs."
        if missing
        else "See the policy."
    )
    return Check(POLICY, Result.FAIL, "policy-denied", seen, expected, f"policy {refusing or version}", hint)


def _reason(refusing: Check | None, appraisal: Appraisal) -> str:
    """The code of a refusal; where the policy alone refuses a machine that can be looked into, that is why."""
    if refusing is not None and (refusing.name != POLICY or refusing.code == EXCEEDED):
        return refusing.code
    looked_into = any(check.result is Result.WARN and check.code == DEBUG for check in appraisal.checks)
    return DEBUG if looked_into else "policy-denied"
