"""AppraisalPolicy: what a user's policy says about evidence or resources.

Written in Rego, with cases that must pass before it becomes active: a policy is tested by the one who changes it. A policy can
only take away: the built-in one judges beside it, and who may read what at all is decided in code. `replacesBuiltIn` switches the
built-in policy off where this one judges. That lowers protection, so it needs the confirmation of a lowering, as does every later
change of such a text.

What judges is `status.active`, not `spec`: a text gets there only after it was read and passed its cases, and stays there
while a newer one does not.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.fastness_dev.declare import declare
from fastness.kinds.fastness_dev.verdict import RESULTS
from fastness.kinds.kind import Column

NOT_AFFIRMED = "NotAffirmed"
RESOURCE = r"[a-z0-9._*-]{1,128}(/[a-z0-9._*-]{1,128}){2,7}"

_CASE = s.obj(
    {
        "name": s.string("Name of the case.", minLength=1, maxLength=253),
        "input": s.anything("The claims or the request that the policy gets."),
        "data": s.anything("The reference values that the policy gets."),
        "expect": s.enum(
            *RESULTS,
            NOT_AFFIRMED,
            description="The result that the policy must give; NotAffirmed is any but Affirmed.",
        ),
        "expectVector": s.mapping(
            s.integer("Claim value.", minimum=-128, maximum=127),
            "Claims of the trust vector that the policy must give.",
            maxProperties=16,
        ),
    },
    "One case.",
    required=("name", "input", "expect"),
)

_SPEC = s.obj(
    {
        "for": s.string(
            "What the policy judges: a kind of evidence, or a resource as repository/type/tag in which * matches anything.",
            pattern=f"^({'|'.join(EVIDENCE_TYPES)}|{RESOURCE})$",
            maxLength=1024,
        ),
        "rego": s.string("The policy, in Rego.", minLength=1, maxLength=262144),
        "cases": s.list_map(
            _CASE, ("name",), "Cases that the policy must pass, at least one of which it must refuse.", maxItems=256
        ),
        "active": s.boolean("Whether the policy should judge.", default=False),
        "replacesBuiltIn": s.boolean(
            "Whether the policy judges in place of the built-in one, instead of beside it. This lowers protection: it needs the "
            "annotation fastness.dev/confirm-lower.",
        ),
    },
    "The policy.",
    required=("for", "rego"),
)

APPRAISAL_POLICY = declare(
    "AppraisalPolicy",
    "appraisalpolicies",
    "What a policy says about evidence or resources, with the cases that prove it.",
    s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
                    "conditions": s.conditions(
                        "Parsed, CasesPass, Active; WithinBounds for one that gave no answer in service."
                    ),
                    "cases": s.string("Cases that pass, of all cases, such as 12/12.", maxLength=16),
                    "failedCases": s.array(s.string(), "Names of the cases that fail.", maxItems=256, **s.ATOMIC),
                    "version": s.string("Version that verdicts name; changes with the policy.", maxLength=128),
                    "active": s.obj(
                        {
                            "for": s.string("What it judges.", maxLength=1024),
                            "rego": s.string("The text that judges.", maxLength=262144),
                            "version": s.string("Version that verdicts name.", maxLength=128),
                            "replacesBuiltIn": s.boolean("Whether it judges in place of the built-in policy."),
                            "since": s.timestamp("From when it judges."),
                        },
                        "The policy that judges now. It differs from the spec while that does not pass.",
                        required=("for", "rego", "version"),
                    ),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("For", ".spec.for"),
        Column("Active", '.status.conditions[?(@.type=="Active")].status'),
        Column("Cases", ".status.cases"),
    ),
    subresources=("status",),
)

KINDS = (APPRAISAL_POLICY,)
