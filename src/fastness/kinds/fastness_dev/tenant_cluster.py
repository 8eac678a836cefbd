"""TenantCluster: a cluster for one tenant.

The document that describes one (private nodes, node types, synchronized runtime classes) has a schema of its own and is judged by
`tenancy`; the object keeps what it holds. It is the only kind of ours that lives in a namespace: that of its tenant.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare
from fastness.kinds.kind import AGE, Scope

TENANT_CLUSTER = declare(
    "TenantCluster",
    "tenantclusters",
    "A cluster for one tenant: its private nodes, its runtime classes, its place in the key broker.",
    s.obj(
        {
            "spec": s.anything("What the tenant asked for."),
            "status": s.obj(
                {"conditions": s.conditions()},
                "What was observed.",
                **s.KEEP,
            ),
        }
    ),
    columns=(AGE,),
    scope=Scope.NAMESPACED,
    subresources=("status",),
)

KINDS = (TENANT_CLUSTER,)
