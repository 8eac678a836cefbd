"""Distrust: what is no longer trusted, whatever it proves.

Each names exactly one target, which cannot be changed: to trust again, delete it, and that goes on the record too. The status
says in one line what the target is, because a column cannot choose between eight fields, and counts what it hit.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare, tcb, thumbprint, uid
from fastness.kinds.kind import Column

TARGETS = ("machine", "image", "key", "chip", "endorsementKey", "chipGeneration", "tcbBelow", "tenant")

_SPEC = s.immutable_once_set(
    s.exactly_one_of(
        s.obj(
            {
                "machine": uid("UID of a Machine."),
                "image": s.string(
                    "An operating system image, by digest.", pattern=r"^.+@sha256:[0-9a-f]{64}$", maxLength=512
                ),
                "key": thumbprint("Thumbprint of a key."),
                "chip": s.string(
                    "A chip, as status.chip of its machines names it: snp:<CHIP_ID> or tdx:<platform instance>.",
                    pattern=r"^(snp|tdx):[0-9a-f]{16,128}$",
                    maxLength=132,
                ),
                "endorsementKey": s.sha256("SHA-256 of the endorsement key of a TPM."),
                "chipGeneration": s.string(
                    "A generation of chips, such as Milan or SapphireRapids.",
                    pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}$",
                    maxLength=63,
                ),
                "tcbBelow": {**tcb("All platforms with a security version below one of these."), "minProperties": 1},
                "tenant": s.object_name("Name of a tenant.", minLength=1),
                "bars": s.obj(
                    {
                        "chip": s.string("Its chip.", pattern=r"^(snp|tdx):[0-9a-f]{16,128}$", maxLength=132),
                        "endorsementKey": s.sha256("SHA-256 of the endorsement key of its TPM."),
                    },
                    "With a machine: what new Machines wait for approval on because of it. The control plane writes it when a "
                    "Machine is deleted that was not trusted.",
                ),
                "reason": s.string("Why; goes on the record.", minLength=1, maxLength=1024),
                "expires": s.timestamp("When it ends by itself; never if not set."),
            },
            "What is no longer trusted, and why.",
            required=("reason",),
        ),
        *TARGETS,
    ),
    *TARGETS,
    "bars",
)


def _count(description: str) -> s.Fragment:
    return s.integer(description, format="int32", minimum=0)


DISTRUST = declare(
    "Distrust",
    "distrusts",
    "Something that is no longer trusted, whatever it proves.",
    s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
                    "conditions": s.conditions("Applied: whether everything affected was revoked."),
                    "target": s.string("The target, in one line.", maxLength=1024),
                    "affected": s.obj(
                        {
                            "machines": _count("Machines that are refused because of it."),
                            "grants": _count("Grants that were taken back."),
                            "certificates": _count("Certificates that were revoked."),
                        },
                        "What it hit.",
                    ),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("Target", ".status.target"),
        Column("Affected", ".status.affected.machines", "integer"),
        Column("Reason", ".spec.reason"),
    ),
    subresources=("status",),
)

KINDS = (DISTRUST,)
