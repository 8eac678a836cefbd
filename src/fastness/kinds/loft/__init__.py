"""`management.loft.sh/v1`: confidential capacity for tenants.

A NodeProvider says where machines come from, a NodeType what can be asked for, a NodeClaim who holds which one. Sources have
settings of their own, which are kept without being judged.
"""

GROUP = "management.loft.sh"
VERSION = "v1"
