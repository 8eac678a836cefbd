"""NodeProvider: where machines for tenants come from.

Exactly one source is set. Each lists node types, of which `NodeType` objects are made.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.loft import GROUP, VERSION

SOURCES = ("bcm", "kubeVirt", "terraform", "clusterAPI", "metal3")
PHASES = ("Pending", "Available", "Failed")


def properties(description: str) -> s.Fragment:
    """Named properties that selectors match on."""
    return s.mapping(s.string(), description)


def resources(description: str) -> s.Fragment:
    """Amounts by name of the resource."""
    return s.mapping(s.quantity(), description)


def node_type_fields() -> dict[str, s.Fragment]:
    """What a provider's entry and a NodeType have in common."""
    return {
        "displayName": s.string("Name for people."),
        "properties": properties("What selectors match on."),
        "resources": resources("What one node offers."),
        "overhead": s.obj(
            {"kubeReserved": resources("What the node keeps for itself.")}, "What of it pods do not get.", **s.KEEP
        ),
        "cost": s.integer("The higher, the later the type is chosen; 0 derives it from the resources.", format="int64"),
    }


_NODE_TYPE = s.obj(
    {
        "name": s.object_name("Name of the type.", minLength=1),
        **node_type_fields(),
        "bareMetalHosts": s.obj(
            {"selector": s.label_selector("The hosts that are of this type.")}, "Hosts that a metal3 type draws on."
        ),
        "maxCapacity": s.integer("Most nodes of this type.", minimum=0),
    },
    required=("name",),
    **s.KEEP,
)


def _source(what: str, **fields: s.Fragment) -> s.Fragment:
    types = s.list_map(_NODE_TYPE, ("name",), "The types on offer.", maxItems=256)
    return s.obj({**fields, "nodeTypes": types}, what, **s.KEEP)


_CLUSTER_REF = s.obj(
    {
        "cluster": s.string("Cluster that the hosts are registered in.", minLength=1),
        "namespace": s.string("Namespace that they are in."),
    },
    "Where the hosts are registered.",
    required=("cluster",),
)

_SPEC = s.exactly_one_of(
    s.obj(
        {
            "bcm": _source("Nodes from a cluster manager."),
            "kubeVirt": _source("Nodes as virtual machines in a cluster."),
            "terraform": _source("Nodes from a cloud, by Terraform."),
            "clusterAPI": _source("Nodes from Cluster API."),
            "metal3": _source(
                "Nodes from bare-metal hosts.", clusterRef=_CLUSTER_REF, deploy=s.anything("Which parts to deploy.")
            ),
            "properties": properties("Properties that all types inherit."),
            "displayName": s.string("Name for people."),
        },
        "Where machines come from.",
    ),
    *SOURCES,
)

NODE_PROVIDER = Kind(
    group=GROUP,
    version=VERSION,
    kind="NodeProvider",
    plural="nodeproviders",
    scope=Scope.CLUSTER,
    description="Where machines for tenants come from.",
    schema=s.obj(
        {
            "spec": _SPEC,
            "status": s.obj(
                {
                    "phase": s.enum(*PHASES, description="How the provider is."),
                    "conditions": s.conditions("Initialized and Deployed."),
                    "reason": s.string("Why, as one word."),
                    "message": s.string("Why, as a sentence."),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(Column("Phase", ".status.phase"), AGE),
    subresources=("status",),
)

KINDS = (NODE_PROVIDER,)
