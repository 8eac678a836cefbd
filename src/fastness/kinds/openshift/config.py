"""`config.openshift.io/v1`: facts and settings of the whole cluster.

Mostly singletons: `cluster` for Proxy and Infrastructure, `version` for ClusterVersion. ClusterOperator says how one part of the
cluster is doing; machine configuration reports itself there as `machine-config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.kind import Column, Scope
from fastness.kinds.openshift.stored import condition, stored

GROUP = "config.openshift.io"
MICROSHIFT: Final = ("kube-public", "microshift-version")
"""Namespace and name of the ConfigMap by which MicroShift says that it is one."""

PROXY = stored(GROUP, "v1", "Proxy", "proxies", Scope.CLUSTER, "The proxy that the cluster uses.")

INFRASTRUCTURE = stored(
    GROUP, "v1", "Infrastructure", "infrastructures", Scope.CLUSTER, "The platform and topology of the cluster."
)

CLUSTER_VERSION = stored(
    GROUP,
    "v1",
    "ClusterVersion",
    "clusterversions",
    Scope.CLUSTER,
    "The release that the cluster runs; the object is called `version`.",
    columns=(
        Column("Version", '.status.history[?(@.state=="Completed")].version'),
        Column("Available", condition("Available")),
        Column("Progressing", condition("Progressing")),
        Column("Since", condition("Progressing", "lastTransitionTime"), "date"),
        Column("Status", condition("Progressing", "message")),
    ),
)

CLUSTER_OPERATOR = stored(
    GROUP,
    "v1",
    "ClusterOperator",
    "clusteroperators",
    Scope.CLUSTER,
    "How one part of the cluster is doing.",
    short_names=("co",),
    columns=(
        Column("Version", '.status.versions[?(@.name=="operator")].version', description="Version that it runs."),
        Column("Available", condition("Available"), description="Whether it works."),
        Column("Progressing", condition("Progressing"), description="Whether it is changing."),
        Column("Degraded", condition("Degraded"), description="Whether something is wrong with it."),
        Column("Since", condition("Available", "lastTransitionTime"), "date", description="Since when it works."),
    ),
)

KINDS = (PROXY, INFRASTRUCTURE, CLUSTER_VERSION, CLUSTER_OPERATOR)


def platform_of(infrastructure: Mapping[str, Any] | None) -> str:
    """The platform that an Infrastructure names; empty where it names none."""
    status = (infrastructure or {}).get("status")
    status = status if isinstance(status, Mapping) else {}
    of_platform = status.get("platformStatus")
    of_platform = of_platform if isinstance(of_platform, Mapping) else {}
    return str(of_platform.get("type") or status.get("platform") or "")


def is_installers(infrastructure: Mapping[str, Any] | None) -> bool:
    """Whether an installer of OpenShift made an Infrastructure: it names the cluster, or a platform that machines run on."""
    status = (infrastructure or {}).get("status")
    named = isinstance(status, Mapping) and bool(status.get("infrastructureName"))
    return infrastructure is not None and (named or platform_of(infrastructure) != "None")
