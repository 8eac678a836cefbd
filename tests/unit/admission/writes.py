"""Writes and lookups for the tests of admission."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastness.admission.table import TABLE
from fastness.apiserver.admission.own import OWN
from fastness.kube.access.policy import Policy, authorize
from fastness.kube.access.user import Attributes, Decision, User
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Answer, Operation
from fastness.kube.admission_rules import Row, RuleTable

Object = dict[str, Any]
EMBEDDED = (*OWN, *TABLE)
ADMIN = User("admin", ("system:masters", "system:authenticated"))


@dataclass
class World:
    """Lookups out of plain dictionaries."""

    namespaces: Mapping[str, Object] = field(default_factory=lambda: {"d": {"metadata": {"name": "d"}}})
    rbac: Policy = field(default_factory=Policy.build)
    cluster: Object | None = None
    all_pools: list[Object] = field(default_factory=list)
    is_simulated: bool | None = None
    all_pods: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    classes: Mapping[str, Object] = field(default_factory=dict)
    all_kata: list[Object] = field(default_factory=list)
    gates: Object | None = None
    operator_groups: Collection[str] = ()
    all_nodes: list[Object] = field(default_factory=list)
    streams: Object | None = None
    platform: Object | None = None
    version_of_microshift: Object | None = None

    def namespace(self, name: str) -> Mapping[str, Any] | None:
        return self.namespaces.get(name)

    def pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return self.all_pods.get((namespace, name))

    def policy(self) -> Policy:
        return self.rbac

    def authorize(self, attrs: Attributes) -> Decision:
        return authorize(attrs, self.rbac)

    def confidential_cluster(self) -> Mapping[str, Any] | None:
        return self.cluster

    def pools(self) -> Iterable[Mapping[str, Any]]:
        return self.all_pools

    def machines(self) -> Iterable[Mapping[str, Any]]:
        return ()

    def kata_configs(self) -> Iterable[Mapping[str, Any]]:
        return self.all_kata

    def feature_gates(self) -> Mapping[str, Any] | None:
        return self.gates

    def appointments(self) -> Mapping[str, Any] | None:
        return None

    def simulated(self) -> bool | None:
        return self.is_simulated

    def runtime_class(self, name: str) -> Mapping[str, Any] | None:
        return self.classes.get(name)

    def runtime_classes(self) -> Iterable[str]:
        return self.classes

    def nodes(self) -> Iterable[Object]:
        return self.all_nodes

    def pods(self) -> Iterable[Object]:
        return list(self.all_pods.values())

    def os_image_stream(self) -> Object | None:
        return self.streams

    def microshift(self) -> Object | None:
        return self.version_of_microshift

    def infrastructure(self) -> Object | None:
        return self.platform

    def has_operator_group(self, namespace: str) -> bool:
        return namespace in self.operator_groups


def write(
    operation: str, resource: str, new: Object | None = None, old: Object | None = None, *, namespace: str = "",
    user: User = ADMIN, kind: str = "", name: str = "",
) -> AdmissionRequest:  # fmt: skip
    """A request for `plural[.group][/subresource]`."""
    target, _, subresource = resource.partition("/")
    plural, _, group = target.partition(".")
    meta = ((new or old or {}).get("metadata")) or {}
    return AdmissionRequest(
        operation=Operation(operation), user=user, group=group, version="v1", kind=kind or plural.title(), resource=plural,
        name=name or meta.get("name", "x"), namespace=namespace, subresource=subresource, object=new, old=old,
    )  # fmt: skip


def review(request: AdmissionRequest, lookups: AdmissionLookups, rows: Sequence[Row] = EMBEDDED) -> Answer:
    """What rules say of a write; by default those that the embedded API asks."""
    return RuleTable(rows).review(request, lookups)
