"""NodeType: a kind of node that tenants can ask for, and how many there are.

Made from the entries of a NodeProvider. `available` is written beside `total` and `claimed` so that it can be printed: a column
cannot subtract.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Column, Kind, Scope
from fastness.kinds.loft import GROUP, VERSION
from fastness.kinds.loft.node_provider import PHASES, node_type_fields

NODE_TYPE_PROPERTY = "vcluster.com/node-type"

_REQUIREMENT = s.obj(
    {
        "property": s.string("Property that the requirement looks at."),
        "key": s.string("Label that the requirement looks at."),
        "operator": s.string("How it relates to the values."),
        "values": s.array(s.string(), "The values."),
    },
    **s.KEEP,
)

_CAPACITY = s.obj(
    {
        "total": s.integer("Nodes of this type.", minimum=0),
        "claimed": s.integer("Nodes that tenants have.", minimum=0),
        "available": s.integer("Nodes that can be claimed: total less claimed.", minimum=0),
    },
    "How many there are.",
)

NODE_TYPE = Kind(
    group=GROUP,
    version=VERSION,
    kind="NodeType",
    plural="nodetypes",
    scope=Scope.CLUSTER,
    description="A kind of node that tenants can ask for.",
    schema=s.obj(
        {
            "spec": s.obj(
                {"providerRef": s.string("The NodeProvider that offers it.", minLength=1), **node_type_fields()},
                "What such a node is.",
                required=("providerRef",),
                **s.KEEP,
            ),
            "status": s.obj(
                {
                    "phase": s.enum(*PHASES, description="Whether the type can be asked for."),
                    "capacity": _CAPACITY,
                    "requirements": s.array(_REQUIREMENT, "What nodes of this type satisfy."),
                    "conditions": s.conditions("Synced and HasCapacity."),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(
        Column("Available", ".status.capacity.available", "integer"),
        Column("Total", ".status.capacity.total", "integer"),
        Column("Phase", ".status.phase"),
    ),
    subresources=("status",),
)

KINDS = (NODE_TYPE,)
