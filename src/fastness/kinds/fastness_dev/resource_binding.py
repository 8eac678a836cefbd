"""ResourceBinding: who may read a resource that belongs to no machine, pool or tenant by its name.

Paths that begin with `machine/`, `pool/` or `tenant/` name their reader; anything else can be read only through a binding. The
check is made in code before any policy is asked, and members count only while they are attested. Where several kinds of evidence
are accepted, `requires` keeps the weaker ones from opening everything.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.appraisal_policy import RESOURCE
from fastness.kinds.fastness_dev.declare import declare, evidence_type, uid
from fastness.kinds.kind import AGE, Column

_SUBJECTS = s.with_rules(
    s.obj(
        {
            "machines": s.list_set(uid(""), "UIDs of Machines.", maxItems=1024),
            "pools": s.list_set(s.object_name(), "Names of pools.", maxItems=256),
            "tenants": s.list_set(s.object_name(), "Names of tenants.", maxItems=256),
        },
        "Who may read it; attested members only.",
    ),
    s.rule(
        "has(self.machines) || has(self.pools) || has(self.tenants)",
        "at least one of machines, pools, tenants must be set",
    ),
)

RESOURCE_BINDING = declare(
    "ResourceBinding",
    "resourcebindings",
    "Who may read a resource of the key broker.",
    s.obj(
        {
            "spec": s.obj(
                {
                    "resource": s.string(
                        "The resource as repository/type/tag, in which * matches anything within a segment.",
                        pattern=f"^{RESOURCE}$",
                        maxLength=1024,
                    ),
                    "subjects": _SUBJECTS,
                    "requires": s.obj(
                        {
                            "tee": s.boolean(
                                "Whether the reader must have proved that its memory is protected: a bare TPM is not enough.",
                                default=False,
                            ),
                            "evidence": s.list_set(
                                evidence_type(""),
                                "The kinds of evidence that open it, any of them; all that the reader's pool accepts if not "
                                "set.",
                                minItems=1,
                                maxItems=6,
                            ),
                        },
                        "What the reader must have proved beside its membership.",
                    ),
                },
                "What may be read, and by whom.",
                required=("resource", "subjects"),
            )
        },
        required=("spec",),
    ),
    columns=(Column("Resource", ".spec.resource"), AGE),
)

KINDS = (RESOURCE_BINDING,)
