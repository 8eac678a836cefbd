"""ReferenceValueSet: what machines are expected to measure.

A set is replaced as a whole. The values of an image that is on its way in or out say so by their state, so that both count while
machines move from one to the other.
"""

from __future__ import annotations

from fastness.model import schema as s
from fastness.model.fastness_dev.declare import declare
from fastness.model.kind import Column

STATES = ("Current", "Transition", "Retiring")

_VALUE = s.with_rules(
    s.obj(
        {
            "name": s.string("Name by which policies know it, such as tpm_pcr4.", minLength=1, maxLength=128),
            "register": s.string("Register that it is found in, such as pcr4, rtmr1 or mrtd.", maxLength=32),
            "algorithm": s.enum("sha1", "sha256", "sha384", "sha512", description="Hash algorithm of the register."),
            "value": s.string("The value: hex digits for a register, text otherwise.", minLength=1, maxLength=256),
            "state": s.enum(
                *STATES,
                default="Current",
                description="Current: expected. Transition: expected soon. Retiring: accepted for a last time.",
            ),
        },
        "One value.",
        required=("name", "value"),
    ),
    s.rule(
        "!has(self.algorithm) || self.value.matches('^[0-9a-f]+$') && self.value.size() == "
        "(self.algorithm == 'sha1' ? 40 : self.algorithm == 'sha256' ? 64 : self.algorithm == 'sha384' ? 96 : 128)",
        "value must be lower-case hex of the length that the algorithm has",
    ),
)

_SPEC = s.with_rules(
    s.obj(
        {
            "source": s.enum(
                "image",
                "manual",
                "import",
                description="Where the values come from: computed from an image, written by a person, or imported.",
            ),
            "image": s.string("The image that they were computed from, by digest.", maxLength=512),
            "values": s.list_map(_VALUE, ("name", "value"), "The values.", maxItems=1024),
            "validity": s.obj(
                {
                    "notBefore": s.timestamp("From when the values count."),
                    "notAfter": s.timestamp("Until when the values count."),
                },
                "When the values count.",
            ),
        },
        "What is expected.",
        required=("source", "values"),
    ),
    s.rule("has(self.image) == (self.source == 'image')", "image is required for source image, and only there"),
    s.rule(
        "!has(self.validity) || !has(self.validity.notBefore) || !has(self.validity.notAfter) || "
        "self.validity.notAfter > self.validity.notBefore",
        "validity must end after it begins",
    ),
)

REFERENCE_VALUE_SET = declare(
    "ReferenceValueSet",
    "referencevaluesets",
    "What machines are expected to measure.",
    s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
                    "conditions": s.conditions("Published: whether appraisals compare with these values."),
                    "values": s.integer("How many values the set has.", format="int32", minimum=0),
                    "state": s.enum(*STATES, description="Transition or Retiring if any value is, Current otherwise."),
                    "version": s.string("Version that verdicts name, changes with the values.", maxLength=128),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("Source", ".spec.source"),
        Column("Values", ".status.values", "integer"),
        Column("State", ".status.state"),
    ),
    subresources=("status",),
)

KINDS = (REFERENCE_VALUE_SET,)
