"""NodeClaim: one node that a tenant holds, and nobody else.

Made for a tenant's pool; it is bound to a node type, provisioned and joined. The node goes back only after it was drained, wiped
and attested again.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.loft import GROUP, VERSION
from fastness.kinds.loft.node_provider import PHASES, properties

_TAINT = s.obj(
    {
        "key": s.string("Key of the taint.", minLength=1),
        "value": s.string("Value of the taint."),
        "effect": s.enum("NoSchedule", "PreferNoSchedule", "NoExecute", description="What it does to pods."),
    },
    required=("key", "effect"),
)

_SPEC = s.obj(
    {
        "providerRef": s.string("The NodeProvider that the node comes from."),
        "typeRef": s.string("The NodeType of the node."),
        "environmentRef": s.string("The environment that the node is in."),
        "vClusterRef": s.string("The tenant cluster that holds the node."),
        "profileRef": s.string("The profile that the node gets."),
        "properties": properties("What the node should have."),
        "controlPlane": s.boolean("Whether the node runs the tenant's control plane."),
        "taints": s.array(_TAINT, "Taints of the node."),
        "startupTaints": s.array(_TAINT, "Taints that go away once the node is ready."),
        "kubeletArgs": s.mapping(s.string(), "Arguments of the node's kubelet."),
        "desiredCapacity": s.mapping(s.quantity(), "What the node should offer at least."),
        "requirements": s.array(s.anything(), "Requirements on the node type."),
        "power": s.anything("Whether the machine should be on."),
    },
    "What is claimed.",
    **s.KEEP,
)

NODE_CLAIM = Kind(
    group=GROUP,
    version=VERSION,
    kind="NodeClaim",
    plural="nodeclaims",
    scope=Scope.NAMESPACED,
    description="One node that a tenant holds.",
    schema=s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "phase": s.enum(*PHASES, description="How far the claim is."),
                    "reason": s.string("Why, as one word."),
                    "message": s.string("Why, as a sentence."),
                    "conditions": s.conditions("Scheduled, Provisioned, Joined, NotDrifted, Destroyed."),
                },
                "What was observed.",
                **s.KEEP,
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("Type", ".spec.typeRef"),
        Column("Tenant", ".spec.vClusterRef"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    subresources=("status",),
)

KINDS = (NODE_CLAIM,)
