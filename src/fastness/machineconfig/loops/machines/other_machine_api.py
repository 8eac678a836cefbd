"""Whether another machine-api operator works in this cluster: two that make machines for one set would each make all of them.

A sign of another is a Deployment of its operator or of its controllers in `openshift-machine-api` that wants at least one
replica; scaled to zero it is retired on purpose. Sets and Machines are no sign: they stay when an operator goes, and are what
`--adopt` takes over. Apart from `machine_api`, which loads every loop: the command line names the family in its help.
"""

from __future__ import annotations

from typing import Final

from fastness.formats.words import counted
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

FAMILY: Final = "machine-api"
CONTROL_PLANE_OPERATOR: Final = "control-plane-machine-set-operator"
DEPLOYED: Final = ("machine-api-operator", "machine-api-controllers", CONTROL_PLANE_OPERATOR)


async def other_operator(cluster: Cluster) -> str | None:
    """What shows that another machine-api operator is active, or None; raises ApiError when it may not be asked."""
    for name in DEPLOYED:
        if sign := await wants_replicas(cluster, name):
            return sign
    return None


async def wants_replicas(cluster: Cluster, name: str) -> str | None:
    """Words for a Deployment of another operator that is to run, or None; raises ApiError when it may not be asked."""
    try:
        deployment = await cluster.get(DEPLOYMENT.resource, name, USER_DATA_NAMESPACE)
    except NotFound:
        return None
    given = (deployment.get("spec") or {}).get("replicas")
    replicas = 1 if given is None else int(given)
    return f"Deployment {USER_DATA_NAMESPACE}/{name} wants {counted(replicas, 'replica')}" if replicas > 0 else None
