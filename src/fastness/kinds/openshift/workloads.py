"""Kinds of OpenShift and of neighbours that hold, run, publish or watch workloads.

DeploymentConfig is OpenShift's older Deployment. ClusterPolicy tells NVIDIA's operator what to run on nodes with GPUs.
ServiceMonitor and PrometheusRule are how metrics and alerts reach a cluster's monitoring.

A Project is a view of a Namespace: it has the same name and the same life, so in embedded mode it shares the storage of
namespaces and can only be looked at. Whoever wants to change one writes to the Namespace, where the rules for its life are.
A Route publishes a service under a host name.
"""

from __future__ import annotations

from fastness.kinds.kind import AGE, Column, Scope
from fastness.kinds.openshift.stored import stored

DEPLOYMENT_CONFIG = stored(
    "apps.openshift.io",
    "v1",
    "DeploymentConfig",
    "deploymentconfigs",
    Scope.NAMESPACED,
    "Keeps pods running and rolls out new ones on triggers.",
    short_names=("dc",),
    categories=("all",),
    columns=(
        Column("Revision", ".status.latestVersion", "integer"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.updatedReplicas", "integer"),
        Column("Triggered By", ".spec.triggers[*].type"),
    ),
    subresources=("status", "scale"),
    scale={"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
)

CLUSTER_POLICY = stored(
    "nvidia.com",
    "v1",
    "ClusterPolicy",
    "clusterpolicies",
    Scope.CLUSTER,
    "What runs on nodes with GPUs.",
    columns=(Column("Status", ".status.state"), AGE),
)

SERVICE_MONITOR = stored(
    "monitoring.coreos.com",
    "v1",
    "ServiceMonitor",
    "servicemonitors",
    Scope.NAMESPACED,
    "Which services are scraped for metrics.",
    short_names=("smon",),
    categories=("prometheus-operator",),
)

PROMETHEUS_RULE = stored(
    "monitoring.coreos.com",
    "v1",
    "PrometheusRule",
    "prometheusrules",
    Scope.NAMESPACED,
    "Which alerts are raised on metrics.",
    short_names=("promrule",),
    categories=("prometheus-operator",),
)

PROJECT = stored(
    "project.openshift.io",
    "v1",
    "Project",
    "projects",
    Scope.CLUSTER,
    "A namespace as OpenShift shows it.",
    storage=("", "namespaces"),
    verbs=("get", "list", "watch"),
    subresources=(),
    columns=(
        Column("Display Name", r".metadata.annotations.openshift\.io/display-name"),
        Column("Status", ".status.phase"),
    ),
)

ROUTE = stored(
    "route.openshift.io",
    "v1",
    "Route",
    "routes",
    Scope.NAMESPACED,
    "Publishes a service under a host name.",
    columns=(
        Column("Host/Port", ".spec.host"),
        Column("Path", ".spec.path"),
        Column("Services", ".spec.to.name"),
        Column("Port", ".spec.port.targetPort"),
        Column("Termination", ".spec.tls.termination"),
        Column("Wildcard", ".spec.wildcardPolicy"),
    ),
)

KINDS = (DEPLOYMENT_CONFIG, CLUSTER_POLICY, SERVICE_MONITOR, PROMETHEUS_RULE, PROJECT, ROUTE)
