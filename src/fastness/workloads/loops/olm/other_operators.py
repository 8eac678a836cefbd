"""Whether a cluster has its own Operator Lifecycle Manager: its plans and versions must not be written by two.

A sign is a Deployment `olm-operator` or `catalog-operator`, in either namespace that distributions use, that wants at least one
replica. Not a sign: Subscriptions and versions. They stay when an OLM goes, and are what `--adopt` takes over.

`app/controllers.py` asks here before it starts these loops; `fastness doctor` shows the answer.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

FAMILY: Final = "operators"
NAMESPACES: Final = ("openshift-operator-lifecycle-manager", "olm")
DEPLOYED: Final = ("olm-operator", "catalog-operator")
DEPLOYMENTS: Final = find("apps", "v1", "deployments").resource


async def other_operator(cluster: Cluster) -> str | None:
    """What shows that another OLM is active, or None; raises ApiError when it may not be asked."""
    for namespace in NAMESPACES:
        for name in DEPLOYED:
            try:
                deployment = await cluster.get(DEPLOYMENTS, name, namespace)
            except NotFound:
                continue
            wanted = (deployment.get("spec") or {}).get("replicas")
            if wanted is None or int(wanted) > 0:
                return f"Deployment {namespace}/{name} wants {1 if wanted is None else wanted} replicas"
    return None
