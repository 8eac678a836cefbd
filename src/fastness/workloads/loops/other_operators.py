"""Whether somebody else discovers features, or installs the runtime for confidential containers, in this cluster.

Two that label the same nodes would take each other's labels away; two that follow the same KataConfig would fight over its
status.

* Signs of another feature discovery: a Deployment of its master or of its operator that wants at least one replica.
* Signs of another sandboxed-containers operator: its Deployment in its own namespace.
* Scaled to zero it is retired on purpose, and no sign. Neither are rules, labels or a KataConfig: they are what `--adopt`
  takes over.

`app/controllers.py` asks here before it starts these loops; `fastness doctor` shows the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.kinds.kata.names import NAMESPACE as KATA_NAMESPACE
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

FEATURES: Final = "features"
KATA: Final = "kata"
DEPLOYMENTS: Final = find("apps", "v1", "deployments").resource
# The Deployments of others, as distributions call them.
STRANGERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    FEATURES: (
        ("openshift-nfd", "nfd-master"), ("openshift-nfd", "nfd-controller-manager"),
        ("node-feature-discovery", "nfd-master"), ("nfd-operator", "nfd-controller-manager"),
    ),
    KATA: ((KATA_NAMESPACE, "controller-manager"), (KATA_NAMESPACE, "sandboxed-containers-operator-controller-manager")),
}  # fmt: skip


async def other_operator(cluster: Cluster, family: str) -> str | None:
    """What shows that somebody else does the work of a family, or None; raises ApiError when it may not be asked."""
    for namespace, name in STRANGERS[family]:
        try:
            found = await cluster.get(DEPLOYMENTS, name, namespace)
        except NotFound:
            continue
        wanted = (found.get("spec") or {}).get("replicas")
        if wanted is None or int(wanted) > 0:
            return f"Deployment {namespace}/{name} wants {1 if wanted is None else wanted} replicas"
    return None
