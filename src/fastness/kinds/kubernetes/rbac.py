"""Roles and bindings: who may do what.

Role and ClusterRole share one view, as do the two bindings: the scope is in the metadata.
"""

from __future__ import annotations

import msgspec

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import LabelSelector, Metadata, View

GROUP = "rbac.authorization.k8s.io"
ROLE = native(GROUP, "Role")
CLUSTER_ROLE = native(GROUP, "ClusterRole")
ROLE_BINDING = native(GROUP, "RoleBinding")
CLUSTER_ROLE_BINDING = native(GROUP, "ClusterRoleBinding")


class PolicyRule(View):
    """Verbs on resources, or on paths outside of the object API; `*` stands for all."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None
    non_resource_urls: tuple[str, ...] | None = msgspec.field(default=None, name="nonResourceURLs")


class AggregationRule(View):
    """The roles whose rules a ClusterRole collects."""

    cluster_role_selectors: tuple[LabelSelector, ...] | None = None


class Role(View):
    """A Role or a ClusterRole."""

    metadata: Metadata = Metadata()
    rules: tuple[PolicyRule, ...] | None = None
    aggregation_rule: AggregationRule | None = None


class Subject(View):
    """A user, a group or a service account."""

    kind: str
    name: str
    api_group: str = ""
    namespace: str = ""


class RoleReference(View):
    """The role that is granted."""

    kind: str
    name: str
    api_group: str = GROUP


class Binding(View, kw_only=True):
    """A RoleBinding or a ClusterRoleBinding."""

    metadata: Metadata = Metadata()
    role_ref: RoleReference
    subjects: tuple[Subject, ...] | None = None
