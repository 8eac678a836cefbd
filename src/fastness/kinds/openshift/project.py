"""Project and Route: how OpenShift shows namespaces and publishes services.

A Project is a view of a Namespace: it has the same name and the same life, so in embedded mode it shares the storage of
namespaces and can only be looked at. Whoever wants to change one writes to the Namespace, where the rules for its life are.
A Route publishes a service under a host name.
"""

from __future__ import annotations

from fastness.kinds.kind import Column, Scope
from fastness.kinds.openshift.stored import stored

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

KINDS = (PROJECT, ROUTE)
