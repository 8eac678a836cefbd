"""The table of admission rules, and the function that runs it.

Order matters where it is visible: namespaces first, because nothing else about an object in a missing namespace is worth saying;
then who may write; then what may be written. A row says which writes a rule sees, so that a rule never asks for the kind itself.

* `resource` "*" means every resource; `subresources` empty means the object itself only.
* Deny ends the review. Patches are applied at once, so that later rules judge what will be stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from fastness.domain.access.node import MCO_GROUP
from fastness.domain.access.policy import RBAC_GROUP
from fastness.domain.admission import (
    confidential,
    endings,
    evicting,
    kata,
    machineconfig,
    machines,
    namespaces,
    operators,
    policies,
    rbac,
    runtimeclass,
    workloads,
)
from fastness.domain.admission.request import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Answer,
    Denied,
    Operation,
    Patched,
    Rule,
)
from fastness.formats.patch.jsonpatch import apply_json_patch

_CREATE: Final = frozenset({Operation.CREATE})
_DELETE: Final = frozenset({Operation.DELETE})
_WRITE: Final = frozenset({Operation.CREATE, Operation.UPDATE})
_ANY: Final = frozenset(Operation)
_EVERY_SUBRESOURCE: Final = ("*",)


@dataclass(frozen=True, slots=True)
class Row:
    """One rule and the writes that it sees."""

    rule: Rule
    operations: frozenset[Operation]
    group: str = "*"
    resource: str = "*"
    subresources: tuple[str, ...] = ("",)

    def sees(self, operation: Operation, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule is asked about such a write."""
        return (
            operation in self.operations
            and self.resource in ("*", resource)
            and self.group in ("*", group)
            and (self.subresources == _EVERY_SUBRESOURCE or subresource in self.subresources)
        )


# Everything that has a pod in it.
PODDED: Final = (
    ("", "pods"), ("", "replicationcontrollers"), ("apps", "deployments"), ("apps", "replicasets"), ("apps", "statefulsets"),
    ("apps", "daemonsets"), ("batch", "jobs"), ("batch", "cronjobs"), ("apps.openshift.io", "deploymentconfigs"),
)  # fmt: skip
_WORKLOADS: Final[tuple[Rule, ...]] = (
    workloads.not_beside_an_operator, workloads.namespace_gets_what_it_asks, workloads.class_exists,
)  # fmt: skip
TABLE: Final[tuple[Row, ...]] = (
    Row(namespaces.namespace_exists, _WRITE, subresources=_EVERY_SUBRESOURCE),
    Row(namespaces.namespace_is_alive, _CREATE, subresources=_EVERY_SUBRESOURCE),
    Row(namespaces.namespace_may_go, _DELETE, "", "namespaces"),
    Row(namespaces.reserved_name_is_an_administrators, _CREATE, "", "namespaces"),
    Row(namespaces.home_goes_confirmed, _DELETE, "", "namespaces"),
    Row(rbac.node_writes_its_own, _ANY, subresources=_EVERY_SUBRESOURCE),
    Row(rbac.role_grants_no_more, _WRITE, RBAC_GROUP, "roles"),
    Row(rbac.role_grants_no_more, _WRITE, RBAC_GROUP, "clusterroles"),
    Row(rbac.binding_grants_no_more, _WRITE, RBAC_GROUP, "rolebindings"),
    Row(rbac.binding_grants_no_more, _WRITE, RBAC_GROUP, "clusterrolebindings"),
    Row(confidential.is_singleton, _CREATE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.simulated_fits_the_store, _WRITE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.lowering_is_confirmed, frozenset({Operation.UPDATE, Operation.DELETE}), confidential.GROUP,
        "confidentialclusters"),
    Row(evicting.evicting_is_confirmed, _WRITE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.approvers_agree_to_their_change, frozenset({Operation.UPDATE}), confidential.GROUP, "confidentialclusters"),
    Row(confidential.override_is_agreed, _WRITE, confidential.GROUP, "confidentialclusters"),
    Row(policies.replacing_is_confirmed, _WRITE, confidential.GROUP, policies.RESOURCE),
    Row(confidential.memory_is_the_control_planes, _ANY, "", "configmaps"),
    Row(confidential.memory_is_the_control_planes, _ANY, "", "secrets"),
    Row(confidential.broker_is_not_permissive, _WRITE, confidential.TRUSTEE_GROUP, "trusteeconfigs"),
    Row(machines.status_is_found_out, _WRITE, machines.GROUP, "machines", ("status",)),
    *(Row(endings.has_no_owner, _WRITE, group, resource) for group, resource in endings.WITHOUT_OWNERS),
    Row(endings.bar_is_noted, _DELETE, *endings.MACHINES),
    Row(endings.bar_is_not_lifted, frozenset({Operation.UPDATE}), *endings.MACHINES),
    Row(machineconfig.pool_selects_a_role, _WRITE, MCO_GROUP, "machineconfigpools"),
    Row(machineconfig.configuration_is_singleton, _CREATE, machineconfig.OPERATOR_GROUP, "machineconfigurations"),
    Row(machineconfig.warn_about_trust_model, _WRITE, MCO_GROUP, "machineconfigs"),
    Row(kata.is_alone, _CREATE, kata.GROUP, kata.RESOURCE),
    Row(kata.some_pool_may_have_it, _CREATE, kata.GROUP, kata.RESOURCE),
    *(Row(operators.still_needed, _DELETE, group, resource) for group, resource in (
        ("", "namespaces"), (operators.GROUP, "subscriptions"), (operators.GROUP, "clusterserviceversions"))),
    Row(machineconfig.warn_about_overlay, _WRITE, confidential.GROUP, "nodeoverlays"),
    Row(workloads.switches_are_known, _WRITE, "", "namespaces"),
    Row(runtimeclass.class_is_applied, _CREATE, "", "pods"),
    *(Row(rule, _WRITE, group, resource) for group, resource in PODDED for rule in _WORKLOADS),
)  # fmt: skip

# A real API server knows its namespaces, its roles and its runtime classes by itself, and no webhook of ours sees every deletion
# of a namespace there, nor a status. Who makes a namespace in which we read by name an admission policy beside our accounts says;
# a status counts by its signature. Controllers may run there under any name, so who lets go of a Machine cannot be told.
_BUILT_IN: Final = frozenset({
    namespaces.namespace_exists, namespaces.namespace_is_alive, namespaces.namespace_may_go,
    namespaces.reserved_name_is_an_administrators, rbac.node_writes_its_own,
    rbac.role_grants_no_more, rbac.binding_grants_no_more, runtimeclass.class_is_applied, operators.still_needed,
    machines.status_is_found_out, confidential.memory_is_the_control_planes, endings.bar_is_not_lifted,
})  # fmt: skip
BEHIND_WEBHOOK: Final = tuple(row for row in TABLE if row.rule not in _BUILT_IN)


def review(request: AdmissionRequest, lookups: AdmissionLookups, table: Sequence[Row] = TABLE) -> Answer:
    """Run every rule that sees the write; the first refusal wins, warnings and patches add up."""
    warnings: list[str] = []
    patch: list[Any] = []
    of = (request.operation, request.group, request.resource, request.subresource)
    for rule in _standing(*of) if table is TABLE else _seeing(table, *of):
        answer = rule(request, lookups)
        if answer is None:
            continue
        if isinstance(answer, Denied):
            return answer
        warnings += answer.warnings
        if isinstance(answer, Patched):
            patch += answer.patch
            request = replace(request, object=apply_json_patch(dict(request.new), list(answer.patch)))
    return Patched(tuple(patch), tuple(warnings)) if patch else Allowed(tuple(warnings))


def _seeing(table: Sequence[Row], operation: Operation, group: str, resource: str, subresource: str) -> list[Rule]:
    """The rules that see such writes, in order."""
    return [row.rule for row in table if row.sees(operation, group, resource, subresource)]


@lru_cache(maxsize=1024)
def _standing(operation: Operation, group: str, resource: str, subresource: str) -> list[Rule]:
    """The same of the table: looked up once per kind instead of row by row at every write."""
    return _seeing(TABLE, operation, group, resource, subresource)
