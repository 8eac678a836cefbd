"""Whether somebody else discovers features, installs the runtime for confidential containers, or installs operators here.

Two that label the same nodes would take each other's labels away; two that follow the same KataConfig would fight over its
status; plans and versions of operators must not be written by two.

* Signs of another feature discovery: a Deployment of its master or of its operator that wants at least one replica.
* Signs of another sandboxed-containers operator: its Deployment in its own namespace.
* Signs of another Operator Lifecycle Manager: one of its two Deployments, in either namespace that distributions use.
* Scaled to zero it is retired on purpose, and no sign. Neither are rules, labels, a KataConfig, Subscriptions or versions: they
  stay when their operator goes, and are what `--adopt` takes over.

`app/other_operators.py` asks here before these loops start; `fastness doctor` shows the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.formats.words import counted
from fastness.kinds.kata.names import NAMESPACE as KATA_NAMESPACE
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster

FEATURES: Final = "features"
KATA: Final = "kata"
OPERATORS: Final = "operators"
DEPLOYMENTS: Final = DEPLOYMENT.resource
# The Deployments of others, as distributions call them.
DEPLOYMENTS_OF_OTHERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    FEATURES: (
        ("openshift-nfd", "nfd-master"), ("openshift-nfd", "nfd-controller-manager"),
        ("node-feature-discovery", "nfd-master"), ("nfd-operator", "nfd-controller-manager"),
    ),
    KATA: ((KATA_NAMESPACE, "controller-manager"), (KATA_NAMESPACE, "sandboxed-containers-operator-controller-manager")),
    OPERATORS: (
        ("openshift-operator-lifecycle-manager", "olm-operator"), ("openshift-operator-lifecycle-manager", "catalog-operator"),
        ("olm", "olm-operator"), ("olm", "catalog-operator"),
    ),
}  # fmt: skip


async def other_operator(cluster: Cluster, family: str) -> str | None:
    """What shows that somebody else does the work of a family, or None; raises ApiError when it may not be asked."""
    for namespace, name in DEPLOYMENTS_OF_OTHERS[family]:
        try:
            deployment = await cluster.get(DEPLOYMENTS, name, namespace)
        except NotFound:
            continue
        given = (deployment.get("spec") or {}).get("replicas")
        replicas = 1 if given is None else int(given)
        if replicas > 0:
            return f"Deployment {namespace}/{name} wants {counted(replicas, 'replica')}"
    return None
