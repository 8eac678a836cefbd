"""`management.loft.sh/v1`: confidential capacity for tenants.

    node_claim.py     NodeClaim: one node that a tenant holds, and nobody else
    node_provider.py  NodeProvider: where machines for tenants come from
    node_type.py      NodeType: a kind of node that tenants can ask for, and how many there are

A NodeProvider says where machines come from, a NodeType what can be asked for, a NodeClaim who holds which one. Sources have
settings of their own, which are kept without being judged.
"""

GROUP = "management.loft.sh"
VERSION = "v1"
