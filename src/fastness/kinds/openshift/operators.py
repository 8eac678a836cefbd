"""`operators.coreos.com`: how operators are chosen, installed and described.

Manuals install operators with an OperatorGroup and a Subscription and then look at the ClusterServiceVersion; the columns are
what they tell readers to look for.
"""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import AGE, Column, Scope
from fastness.kinds.openshift.stored import stored

GROUP = "operators.coreos.com"
_OLM: dict[str, Any] = {"categories": ("olm",)}

OPERATOR_GROUP = stored(
    GROUP,
    "v1",
    "OperatorGroup",
    "operatorgroups",
    Scope.NAMESPACED,
    "The namespaces that operators of this namespace look after.",
    short_names=("og",),
    **_OLM,
)

SUBSCRIPTION = stored(
    GROUP,
    "v1alpha1",
    "Subscription",
    "subscriptions",
    Scope.NAMESPACED,
    "Keeps an operator installed and current.",
    short_names=("sub", "subs"),
    columns=(
        Column("Package", ".spec.name", description="Package that is followed."),
        Column("Source", ".spec.source", description="Catalog that it comes from."),
        Column("Channel", ".spec.channel", description="Channel of updates."),
    ),
    **_OLM,
)

INSTALL_PLAN = stored(
    GROUP,
    "v1alpha1",
    "InstallPlan",
    "installplans",
    Scope.NAMESPACED,
    "What an installation would create, and whether it may.",
    short_names=("ip",),
    columns=(
        Column("CSV", ".spec.clusterServiceVersionNames[0]", description="First version that would be installed."),
        Column("Approval", ".spec.approval", description="Who approves."),
        Column("Approved", ".spec.approved", "boolean", description="Whether it is approved."),
    ),
    **_OLM,
)

CLUSTER_SERVICE_VERSION = stored(
    GROUP,
    "v1alpha1",
    "ClusterServiceVersion",
    "clusterserviceversions",
    Scope.NAMESPACED,
    "One version of an operator, installed in a namespace.",
    short_names=("csv", "csvs"),
    columns=(
        Column("Display", ".spec.displayName", description="Name for people."),
        Column("Version", ".spec.version", description="Version of the operator."),
        Column("Replaces", ".spec.replaces", description="Version that it replaces."),
        Column("Phase", ".status.phase", description="How far the installation is."),
    ),
    **_OLM,
)

CATALOG_SOURCE = stored(
    GROUP,
    "v1alpha1",
    "CatalogSource",
    "catalogsources",
    Scope.NAMESPACED,
    "Where packages of operators come from.",
    short_names=("catsrc",),
    columns=(
        Column("Display", ".spec.displayName", description="Name for people."),
        Column("Type", ".spec.sourceType", description="How it is read."),
        Column("Publisher", ".spec.publisher", description="Who publishes it."),
        AGE,
    ),
    **_OLM,
)

KINDS = (OPERATOR_GROUP, SUBSCRIPTION, INSTALL_PLAN, CLUSTER_SERVICE_VERSION, CATALOG_SOURCE)
