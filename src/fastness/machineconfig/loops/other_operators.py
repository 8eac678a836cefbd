"""Whether another machine-config operator works in this cluster: two of them would undo each other's every write.

What counts as a sign, and what does not:

* A Deployment `machine-config-controller` or `machine-config-operator` in `openshift-machine-config-operator` that wants at least
  one replica. Scaled to zero it is retired on purpose, and no sign.
* A Lease of one of its processes in that namespace which its holder renewed lately: it may run without a Deployment, outside the
  cluster for instance. "Lately" is three times what the Lease itself promises, because a holder may be slow.
* Not a sign: pools, configs, a ControllerConfig. They stay when an operator goes, and are what `--adopt` takes over.

`app/other_operators.py` asks here before these loops start; `fastness doctor` shows the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import LEASE
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

FAMILY: Final = "machine-config"
NAMESPACE: Final = "openshift-machine-config-operator"
DEPLOYMENTS: Final = DEPLOYMENT.resource
LEASES: Final = LEASE.resource
DEPLOYED: Final = ("machine-config-controller", "machine-config-operator")
LED: Final = ("machine-config-controller", "machine-config")
DEFAULT_LEASE: Final = 137
PATIENCE: Final = 3


async def other_operator(cluster: Cluster, now: datetime) -> str | None:
    """What shows that another machine-config operator is active, or None; raises ApiError when it may not be asked."""
    for name in DEPLOYED:
        deployment = await _get(cluster, DEPLOYMENTS, name)
        if deployment is not None and _replicas(deployment) > 0:
            return f"Deployment {NAMESPACE}/{name} wants {counted(_replicas(deployment), 'replica')}"
    for name in LED:
        lease = await _get(cluster, LEASES, name)
        holder = _holder(lease, now) if lease is not None else ""
        if holder:
            return f"Lease {NAMESPACE}/{name} is held by {holder}"
    return None


async def _get(cluster: Cluster, resource: Resource, name: str) -> JsonObject | None:
    try:
        return await cluster.get(resource, name, NAMESPACE)
    except NotFound:
        return None


def _replicas(deployment: Mapping[str, Any]) -> int:
    replicas = (deployment.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def _holder(lease: Mapping[str, Any], now: datetime) -> str:
    """Who holds a lease that is still alive; empty for one that was given back or left behind."""
    spec = lease.get("spec") or {}
    try:
        renewed = datetime.fromisoformat(str(spec.get("renewTime")))
    except ValueError:
        return ""
    renewed = renewed if renewed.tzinfo else renewed.replace(tzinfo=UTC)
    seconds = spec.get("leaseDurationSeconds") or DEFAULT_LEASE
    alive = now - renewed <= PATIENCE * timedelta(seconds=int(seconds))
    return str(spec.get("holderIdentity") or "") if alive else ""
