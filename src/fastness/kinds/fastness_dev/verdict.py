"""Verdict: what an appraisal found, check by check.

Written by a door when it differs from the machine's last one; never changed afterwards. It says what was seen and what was
expected, so that a refusal can be explained without the evidence at hand.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev import ENDORSEMENTS
from fastness.kinds.fastness_dev.declare import declare, evidence_type, thumbprint, uid
from fastness.kinds.kind import AGE, Column
from fastness.kinds.objects import Metadata, View

RESULTS = ("Affirmed", "Refused", "NotAssessed")
CHECK_RESULTS = ("Pass", "Fail", "Warn", "NotAssessed")

_CHECK = s.obj(
    {
        "name": s.string("What was checked.", minLength=1, maxLength=253),
        "result": s.enum(*CHECK_RESULTS, description="How it went."),
        "seen": s.string("What the evidence says.", maxLength=4096),
        "expected": s.string("What it should say.", maxLength=4096),
        "source": s.string("Where the expectation comes from: a value set, the policy, the vendor.", maxLength=1024),
        "hint": s.string("What an operator can do about it.", maxLength=1024),
        "code": s.string("The same outcome always has the same code.", maxLength=128),
    },
    "One check.",
    required=("name", "result"),
)

_SPEC = s.immutable(
    s.obj(
        {
            "subject": s.obj(
                {
                    "machine": uid("UID of the Machine."),
                    "keyThumbprint": thumbprint("Thumbprint of the key that is the machine's identity."),
                    "endorsement": s.enum(
                        *ENDORSEMENTS, description="How it was shown that the key lives where it says."
                    ),
                },
                "Whom the verdict is about.",
                required=("machine", "keyThumbprint"),
            ),
            "evidence": s.obj(
                {
                    "type": evidence_type("What kind of evidence was brought."),
                    "digest": s.sha256("Digest of the evidence; an EvidenceBlob holds the bytes."),
                },
                "What the machine brought.",
                required=("type", "digest"),
            ),
            "policyVersion": s.string("Version of the policy that judged.", maxLength=253),
            "valueSets": s.list_map(
                s.obj(
                    {
                        "name": s.object_name("Name of the ReferenceValueSet.", minLength=1),
                        "version": s.string("Its version at that time.", minLength=1, maxLength=128),
                    },
                    "One set of reference values.",
                    required=("name", "version"),
                ),
                ("name",),
                "The reference values that were compared with.",
                maxItems=256,
            ),
            "result": s.enum(*RESULTS, description="The outcome."),
            "reason": s.string("Code of the check that decided, for a refusal.", maxLength=128),
            "simulated": s.boolean("Whether the evidence came from a simulated TEE.", default=False),
            "checks": s.array(_CHECK, "All checks, in the order in which they were made.", maxItems=512, **s.ATOMIC),
            "trustVector": s.mapping(
                s.integer("Claim value.", minimum=-128, maximum=127),
                "The AR4SI trust vector, by claim.",
                maxProperties=16,
            ),
            "expires": s.timestamp("Until when the verdict counts."),
        },
        "What was found.",
        required=("subject", "evidence", "result"),
    ),
    "a verdict cannot be changed",
)

VERDICT = declare(
    "Verdict",
    "verdicts",
    "What an appraisal found, check by check.",
    s.obj({"spec": _SPEC}, required=("spec",)),
    columns=(
        Column("Subject", ".spec.subject.machine"),
        Column("Result", ".spec.result"),
        Column("Evidence", ".spec.evidence.type"),
        Column("Reason", ".spec.reason"),
        AGE,
    ),
    selectable_fields=(".spec.subject.machine", ".spec.result"),
)


class Subject(View):
    """Whom a verdict is about."""

    machine: str
    key_thumbprint: str
    endorsement: str = ""


class EvidenceRef(View):
    """Which evidence was judged."""

    type: str
    digest: str


class Check(View):
    """One check."""

    name: str
    result: str
    seen: str = ""
    expected: str = ""
    source: str = ""
    hint: str = ""
    code: str = ""


class ValueSetRef(View):
    """A set of reference values at a version."""

    name: str
    version: str


class VerdictSpec(View, kw_only=True):
    """What was found."""

    subject: Subject
    evidence: EvidenceRef
    result: str
    reason: str = ""
    policy_version: str = ""
    value_sets: tuple[ValueSetRef, ...] = ()
    simulated: bool = False
    checks: tuple[Check, ...] = ()
    trust_vector: dict[str, int] | None = None
    expires: str | None = None


class Verdict(View, kw_only=True):
    """A verdict as grants and explanations see it."""

    metadata: Metadata = Metadata()
    spec: VerdictSpec


KINDS = (VERDICT,)
