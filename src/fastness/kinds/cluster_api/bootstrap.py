"""FastnessConfig and FastnessConfigTemplate: which pool a Machine of Cluster API boots into.

A Machine names a FastnessConfig, a MachineDeployment a template of it. What comes of it is a Secret with a pointer: where the
machine asks, whom it believes and the ticket that it enrols with. Its configuration it gets after its proof, never from there.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.cluster_api import GROUP, LABELS, VERSION
from fastness.kinds.kind import AGE, Column, Kind, Scope

_SPEC = s.obj(
    {"pool": s.object_name("MachineConfigPool that the machine boots into.", minLength=1)},
    "What the machine is to become.",
    required=("pool",),
)
_STATUS = s.obj(
    {
        "dataSecretName": s.object_name("Secret with the data that the machine is created with."),
        "initialization": s.obj(
            {"dataSecretCreated": s.boolean("Whether that Secret is there.")}, "What Cluster API waits for."
        ),
        "observedGeneration": s.integer("Generation that this is about.", format="int64"),
        "conditions": s.conditions("Ready, or what is waited for."),
    },
    "What became of it.",
)

FASTNESS_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="FastnessConfig",
    plural="fastnessconfigs",
    scope=Scope.NAMESPACED,
    description="How a Machine of Cluster API boots: with a pointer to the doors of a pool.",
    schema=s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)),
    subresources=("status",),
    labels=LABELS,
    columns=(
        Column("Pool", ".spec.pool", description="Pool that the machine boots into."),
        Column("Secret", ".status.dataSecretName", description="Secret with its data."),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether the data are there."),
        AGE,
    ),
)
FASTNESS_CONFIG_TEMPLATE = Kind(
    group=GROUP,
    version=VERSION,
    kind="FastnessConfigTemplate",
    plural="fastnessconfigtemplates",
    scope=Scope.NAMESPACED,
    description="What FastnessConfigs of a MachineDeployment are made of.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "template": s.obj(
                        {"metadata": s.anything("Labels and annotations of the configs."), "spec": _SPEC},
                        "The config.",
                        required=("spec",),
                    )
                },
                "What the configs are made of.",
                required=("template",),
            )
        },
        required=("spec",),
    ),
    labels=LABELS,
    columns=(Column("Pool", ".spec.template.spec.pool", description="Pool that the machines boot into."), AGE),
)
KINDS = (FASTNESS_CONFIG, FASTNESS_CONFIG_TEMPLATE)
