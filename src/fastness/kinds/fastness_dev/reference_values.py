"""ReferenceValueSet: what machines are expected to measure.

A set is replaced as a whole. The values of an image that is on its way in or out say so by their state, so that both count while
machines move from one to the other. The values of a set belong together: a machine must show one of its tuples as a whole
(`attestation.values.tuples`). A set that was withdrawn counts for nothing; it is kept for a time, so that a refusal can
say whose value was seen and since when it is no longer accepted.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare
from fastness.kinds.kind import Column

STATES = ("Current", "Transition", "Retiring")
WITHDRAWN = "Withdrawn"
TYPES = ("Text", "Number", "Boolean")

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
            "variants": s.list_set(
                s.string(pattern="^[A-Za-z0-9]([A-Za-z0-9._ -]{0,61}[A-Za-z0-9])?$", maxLength=63),
                "Boot phases or steps of an update in which machines show this value; all of them if not set.",
                maxItems=16,
            ),
            "type": s.enum(*TYPES, default="Text", description="How policies compare it: as text, a number or a flag."),
            "single": s.boolean(
                "Whether policies get this one value instead of a list of accepted values.", default=False
            ),
            "note": s.string("What was measured, for people: the boot loader, a section of the kernel.", maxLength=256),
        },
        "One value.",
        required=("name", "value"),
    ),
    s.rule(
        "!has(self.algorithm) || self.value.matches('^[0-9a-f]+$') && self.value.size() == "
        "(self.algorithm == 'sha1' ? 40 : self.algorithm == 'sha256' ? 64 : self.algorithm == 'sha384' ? 96 : 128)",
        "value must be lower-case hex of the length that the algorithm has",
    ),
    s.rule(
        "!has(self.type) || self.type == 'Text' || (self.type == 'Boolean' ? self.value in ['true', 'false'] : "
        "self.value.matches('^-?[0-9]{1,15}$'))",
        "value must be of its type: a whole number, true or false",
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
            "pools": s.list_set(
                s.object_name(), "Pools whose machines are compared with these values; all if not set.", maxItems=256
            ),
            "validity": s.obj(
                {
                    "notBefore": s.timestamp("From when the values count."),
                    "notAfter": s.timestamp("Until when the values count."),
                },
                "When the values count.",
            ),
            "withdrawn": s.obj(
                {
                    "at": s.timestamp("When they ceased to count."),
                    "reason": s.string("Why, for people.", maxLength=1024),
                },
                "Set when the values count no longer. The set stays for a time, to say whose they were.",
                required=("at",),
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
                    "state": s.enum(
                        *STATES,
                        WITHDRAWN,
                        description="Withdrawn if the set is, Transition or Retiring if any value is, else Current.",
                    ),
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
        Column("Published", '.status.conditions[?(@.type=="Published")].status', priority=1),
        Column("Reason", '.status.conditions[?(@.type=="Published")].reason', priority=1),
    ),
    subresources=("status",),
)

KINDS = (REFERENCE_VALUE_SET,)
