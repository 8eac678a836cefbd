"""From an appraisal to a verdict: policy and reference values, what stands beside the evidence, and what was proved.

    conclusion = yield from concluding(appraisal, facts, policies, book)
    conclusion = amended(conclusion, appraisal, pool=pool, override=override, distrusts=distrusts, …)
    conclusion.accepted, conclusion.reason, conclusion.checks
    properties_of("tpm", appraisal.claims, book, endorsement)

Three things must agree: the checks of the verifier (nothing refuses), the binding of init data (a text that was sent is the
one that the hardware signed), and the policy (every mandatory claim affirmed). The order of the checks is the order in
which somebody would read them: what the hardware says, where the machine differs, what the policy made of it, what stands
against the machine or over it.

Where nothing speaks against the hardware but a vendor's document that is missing or too old, the machine is not refused: it is
not assessed, and asked to come again. So it is where the policy of a user went beyond its bounds.

What was proved is said in a few plain words, the attested properties (`kinds.trusted_execution.properties`). They come from the
claims of one authentic appraisal, and the endorsement from the enrolment. The verifier writes them on the Machine together with
the outcome; tokens carry them. Distrust, node labels and overlays compare with them, so none of them reads evidence again. What
was not proved is not there: an absent property is never equal to anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastness.attestation.evidence.checks import DEBUG, Appraisal, Check, Result
from fastness.attestation.policy.claims import TrustVector, policy_input
from fastness.attestation.policy.policy import Opinion, PolicySet
from fastness.attestation.policy.query import Decision
from fastness.attestation.values.differences import differences, nothing_published
from fastness.attestation.values.measured import COMPARED, claim_at
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict import breakglass, distrust
from fastness.attestation.verdict.breakglass import Override
from fastness.attestation.verdict.dispute import HIDDEN, PENDING_CODE, Dispute, Wait
from fastness.attestation.verdict.distrust import Distrusted
from fastness.attestation.verdict.init_data import digest_of, judged
from fastness.attestation.verdict.machine_standing import NOTE, OPEN_DISK, identity_place
from fastness.disks.reports import NOTHING, Doubt, JudgedReports
from fastness.formats.initdata import InitData
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.properties import (
    ENDORSEMENT,
    GENERATION,
    IMAGE,
    PARTS,
    SNP_TCB,
    TCB,
    TDX_DATE,
    TDX_EVALUATION,
    TEE,
)

POLICY: Final = "policy"
EXCEEDED: Final = "policy-exceeded"
MOST_VALUE: Final = 512
# What may come later: a document that is missing says nothing about the machine, so the answer is 503 and not 403.
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

    def noting(self, *checks: Check) -> Conclusion:
        """The same outcome with these checks at its end."""
        return replace(self, checks=(*self.checks, *checks))

    def refused(self, code: str, *checks: Check) -> Conclusion:
        """Refused for good, because of these checks."""
        return replace(self.noting(*checks), result="Refused", reason=code, accepted=False, retry=False)

    def waiting(self, *checks: Check) -> Conclusion:
        """Not assessed until a person has decided about these checks; the machine comes again meanwhile."""
        return replace(self.noting(*checks), result="NotAssessed", reason=PENDING_CODE, accepted=False, retry=True)


def concluding(appraisal: Appraisal, facts: Facts, policies: PolicySet, book: ReferenceValues) -> Decision[Conclusion]:
    """Judge an appraisal by the policies that are active and the values that are published."""
    checks = list(appraisal.checks)
    digest, table = None, None
    if facts.init_data is not None:
        digest = digest_of(facts.init_data)
        about, table = judged(appraisal, facts.init_data)
        checks += about
    claims = policy_input(appraisal, facts.runtime, digest, table)
    # Asked also where a check refuses already: the verdict then holds all that has to be put right.
    opinion = yield from policies.judging(appraisal.tee, claims, book)
    vector = opinion.vector.seen_by(appraisal.tee)
    affirmed = vector.affirms(appraisal.tee)
    # Comparisons name registers and events; those of evidence that nobody signed would only repeat what its sender wrote.
    if appraisal.authentic:
        checks += differences(appraisal, book, refused=not affirmed and opinion.unassessed is None)
    checks.append(_policy(appraisal.tee, opinion, policies.version(appraisal.tee)))
    refusing = next((check for check in checks if check.refuses), None)
    # Three conditions, none implied by the others: a policy of a user may affirm what a check refuses.
    accepted = appraisal.authentic and refusing is None and affirmed
    # Good evidence and nothing to compare it with is a cluster that is not set up yet: machines wait and do not give up.
    unpublished = appraisal.acceptable and not accepted and nothing_published(appraisal.tee, book)
    # A policy that gave no answer decides only where nothing else does.
    open_question = opinion.unassessed is not None and (refusing is None or refusing.name == POLICY)
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
    # All of them: next to a real refusal a stale document excuses nothing.
    return bool(refusing) and set(refusing) <= _STALE


def _policy(tee: str, opinion: Opinion, version: str) -> Check:
    vector, expected = opinion.vector, "every mandatory claim affirmed"
    asserted = vector.error or ", ".join(f"{name} {value}" for name, value in vector.claims.items() if value)
    if vector.affirms(tee):
        return Check(POLICY, Result.PASS, "ok", asserted, expected, f"policy {version}")
    if opinion.unassessed is not None:
        hint = "The policy gave no answer within its bounds: correct it, or switch it off."
        return Check(POLICY, Result.NOT_ASSESSED, EXCEEDED, opinion.unassessed, "an answer", f"policy {version}", hint)
    missing, refusing = ", ".join(vector.unaffirmed(tee)), ",".join(opinion.refused_by)
    hint = (
        f"Not affirmed: {missing}. The comparisons above say where the machine differs."
        if missing
        else "See the policy."
    )
    return Check(POLICY, Result.FAIL, "policy-denied", asserted, expected, f"policy {refusing or version}", hint)


def _reason(refusing: Check | None, appraisal: Appraisal) -> str:
    """The code of a refusal; where the policy alone refuses a machine that can be looked into, that is why."""
    if refusing is not None and (refusing.name != POLICY or refusing.code == EXCEEDED):
        return refusing.code
    looked_into = any(check.result is Result.WARN and check.code == DEBUG for check in appraisal.checks)
    return DEBUG if looked_into else "policy-denied"


def amended(
    conclusion: Conclusion,
    appraisal: Appraisal,
    *,
    pool: str,
    chip: str = "",
    override: Override | None = None,
    distrusts: Sequence[Distrusted] = (),
    wait: Wait | None = None,
    dispute: Dispute | None = None,
    disks: JudgedReports = NOTHING,
) -> Conclusion:
    """What stands beside the evidence makes of a conclusion: an override, Distrusts, a chip that waits, a dispute.

    The override comes first and everything else after it, so that it lifts policy and values and nothing more: two people who
    signed that a pool must come up did not decide about a Distrust, a barred chip or somebody else's evidence.
    """
    conclusion = overridden(conclusion, appraisal, override, pool)
    conclusion = warned_of_key(warned_of_chip(conclusion, chip), appraisal.tee, opened=disks.opened)
    conclusion = refused_for(conclusion, distrusts)
    return disputed(held(refused_for_disk(conclusion, disks.doubt), wait), dispute)


def overridden(conclusion: Conclusion, appraisal: Appraisal, override: Override | None, pool: str) -> Conclusion:
    """The same conclusion, accepted if an override covers what policy and values do not affirm."""
    # `acceptable`: signatures, debug, firmware and freshness refuse as ever; an override is about policy and values alone.
    if conclusion.accepted or override is None or override.pool != pool or not appraisal.acceptable:
        return conclusion
    if any(check.name == "init-data" and check.refuses for check in conclusion.checks):
        # A text that the hardware did not sign is a lie, and no opinion about values (pitfall 11).
        return conclusion
    check = Check(
        breakglass.CODE, Result.WARN, breakglass.CODE, override.line, "no override", f"annotation {breakglass.ANNOTATION}",
        f"{override.reason}. Policy or values do not affirm this machine; see the checks above.", mandatory=False,
    )  # fmt: skip
    # The vector stays what the policy said: a policy for resources that asks for affirmed machines still says no.
    return replace(conclusion.noting(check), result="NotAssessed", reason=breakglass.CODE, accepted=True, retry=False)


def warned_of_chip(conclusion: Conclusion, chip: str) -> Conclusion:
    """The same conclusion, with a warning where the provider hides the chip."""
    if chip != HIDDEN:
        return conclusion
    check = Check(
        "chip", Result.WARN, "chip-hidden", HIDDEN, "the id of a chip", "the evidence",
        "The provider hides which chip this is: the machine is not bound to one, and none can be barred.",
    )  # fmt: skip
    return conclusion.noting(check)


def refused_for_disk(conclusion: Conclusion, doubt: Doubt | None) -> Conclusion:
    """The same conclusion, refused where the machine opened an old copy of its disk, another one, or none."""
    if doubt is None:
        return conclusion
    check = Check("disk", Result.FAIL, doubt.code, doubt.shows, doubt.recorded, "the Machine", doubt.message)
    return conclusion.refused(doubt.code, check) if conclusion.accepted else conclusion.noting(check)


def warned_of_key(conclusion: Conclusion, tee: str, *, opened: bool = False) -> Conclusion:
    """The same conclusion, with a warning where the machine's key lies on a disk that anybody can open."""
    if identity_place(tee, opened=opened) != OPEN_DISK:
        return conclusion
    check = Check(
        "identity", Result.WARN, "identity-on-open-disk", NOTE, "a key that only this machine can use", "the kind of evidence",
        "Whoever reads the machine's disk has its key. It counts on the machine's own chip alone.",
    )  # fmt: skip
    return conclusion.noting(check)


def refused_for(conclusion: Conclusion, distrusts: Sequence[Distrusted]) -> Conclusion:
    """The same conclusion, refused if anything stands against the machine."""
    if not distrusts:
        return conclusion
    checks = (
        Check(
            "distrust", Result.FAIL, distrust.CODE, entry.line, "nothing that is distrusted", f"Distrust {entry.name}",
            f"{entry.reason}. To trust it again, delete Distrust {entry.name}.",
        )
        for entry in distrusts
    )  # fmt: skip
    return conclusion.refused(distrust.CODE, *checks)


def held(conclusion: Conclusion, wait: Wait | None) -> Conclusion:
    """The same conclusion; one that accepts a machine which has to wait becomes a question to a person."""
    if wait is None or not conclusion.accepted:
        return conclusion
    check = Check(
        "chip", Result.FAIL, "chip-barred", wait.chip, "a chip that was approved", "the Machine", wait.message
    )
    return conclusion.waiting(check)


def disputed(conclusion: Conclusion, dispute: Dispute | None) -> Conclusion:
    """The same conclusion, or one that accepts nothing; evidence that is refused for itself stays refused."""
    if dispute is None:
        return conclusion
    if not conclusion.accepted:
        return conclusion.noting(dispute.check)
    if dispute.may_pass:
        return conclusion.waiting(dispute.check)
    return conclusion.refused(dispute.check.code, dispute.check)


def properties_of(tee: str, claims: Mapping[str, Any], book: ReferenceValues, endorsement: str = "") -> dict[str, str]:
    """The properties that claims of an authentic appraisal prove, of a machine whose key is endorsed in this way."""
    whole, parts = measured_images(tee, claims, book)
    properties = {
        TEE: tee,
        ENDORSEMENT: endorsement,
        IMAGE: ",".join(whole),
        PARTS: ",".join(parts),
        **_platform(tee, claims.get(tee)),
    }
    # Without the empty ones: a property that is there and empty could be equal to another empty one.
    return {name: value[:MOST_VALUE] for name, value in sorted(properties.items()) if value}


def measured_images(tee: str, claims: Mapping[str, Any], book: ReferenceValues) -> tuple[list[str], list[str]]:
    """The images that a machine booted, each in every register that it has a value for; else those that it is mixed of."""
    registers = [
        (
            book.images(compared.name, claim_at(claims, compared.claim)),
            book.images_by_name.get(compared.name, frozenset()),
        )
        for compared in COMPARED.get(tee, ())
    ]
    # An image that has a value for a register must match in it; for a register that it says nothing of, it need not.
    fitting = frozenset[str]().union(*(same for same, _ in registers))
    whole = fitting.difference(*(owners - same for same, owners in registers))
    return (sorted(whole), []) if whole else ([], sorted(_mixed([same for same, _ in registers if same])))


def _mixed(owners: Sequence[frozenset[str]]) -> set[str]:
    """The images that explain registers together: those that alone have a value first, the others only where needed."""
    chosen = {image for images in owners if len(images) == 1 for image in images}
    for images in owners:
        chosen |= set() if images & chosen else images
    return chosen


def _platform(tee: str, claims: Any) -> dict[str, str]:
    values = claims if isinstance(claims, dict) else {}
    if tee == "snp":
        parts = {f"{TCB}{part}": values.get(f"reported_tcb_{part}") for part in SNP_TCB}
        return {GENERATION: str(values.get("generation") or ""), **_texts(parts.items())}
    if tee == "tdx":
        date = str(values.get("tcb_date") or "")
        return {
            GENERATION: str(values.get("fmspc") or ""),
            **_texts(((TDX_EVALUATION, values.get("tcb_eval_num")),)),
            TDX_DATE: date,
        }
    return {}


def _texts(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    # `True` is an int in Python: a flag in the place of a version is none.
    return {name: str(value) for name, value in pairs if type(value) is int}
