"""The table of the product's admission rules.

An API server asks what it knows itself first: whether the namespace is there, and who may write (`own` in the embedded API). The
order here matters where it is visible.
"""

from __future__ import annotations

from typing import Final

from fastness.admission import not_acted_on
from fastness.attestation.admission import confidential, disk_keys, policies, trusted_objects
from fastness.attestation.admission.topology import topology_is_supported
from fastness.builds.admission import image_mode
from fastness.kinds.openshift.config import GROUP as CONFIG_GROUP
from fastness.kube.access.node import MCO_GROUP
from fastness.kube.admission import Operation, Rule
from fastness.kube.admission_rules import ON_ANY, ON_CREATE, ON_DELETE, ON_UPDATE, ON_WRITE, Row, RuleTable
from fastness.machineconfig.admission import evictions as evicting
from fastness.machineconfig.admission import machineconfig
from fastness.machineconfig.admission import policies as machine_policies
from fastness.workloads.admission import features, kata, runtime_class, workloads

# Everything that has a pod in it.
PODDED: Final = (
    ("", "pods"), ("", "replicationcontrollers"), ("apps", "deployments"), ("apps", "replicasets"), ("apps", "statefulsets"),
    ("apps", "daemonsets"), ("batch", "jobs"), ("batch", "cronjobs"), ("apps.openshift.io", "deploymentconfigs"),
)  # fmt: skip
_WORKLOADS: Final[tuple[Rule, ...]] = (
    workloads.not_beside_an_operator, workloads.namespace_gets_what_it_asks, workloads.class_exists,
)  # fmt: skip
TABLE: Final[tuple[Row, ...]] = (
    Row(confidential.home_goes_confirmed, ON_DELETE, "", "namespaces"),
    Row(confidential.is_singleton, ON_CREATE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.simulated_fits_the_store, ON_WRITE, confidential.GROUP, "confidentialclusters"),
    Row(topology_is_supported, ON_WRITE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.lowering_is_confirmed, frozenset({Operation.UPDATE, Operation.DELETE}), confidential.GROUP,
        "confidentialclusters"),
    Row(disk_keys.pin_opens_what_is_asked, ON_WRITE, confidential.GROUP, "confidentialclusters"),
    Row(evicting.evicting_is_confirmed, ON_WRITE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.approvers_agree_to_their_change, ON_UPDATE, confidential.GROUP, "confidentialclusters"),
    Row(confidential.override_is_agreed, ON_WRITE, confidential.GROUP, "confidentialclusters"),
    Row(policies.replacing_is_confirmed, ON_WRITE, confidential.GROUP, policies.RESOURCE),
    Row(confidential.memory_is_the_control_planes, ON_ANY, "", "configmaps"),
    Row(confidential.memory_is_the_control_planes, ON_ANY, "", "secrets"),
    Row(confidential.broker_is_not_permissive, ON_WRITE, confidential.TRUSTEE_GROUP, "trusteeconfigs"),
    Row(trusted_objects.status_is_found_out, ON_WRITE, *trusted_objects.MACHINES, ("status",)),
    *(Row(trusted_objects.has_no_owner, ON_WRITE, group, resource) for group, resource in trusted_objects.WITHOUT_OWNERS),
    Row(trusted_objects.bar_is_noted, ON_DELETE, *trusted_objects.MACHINES),
    Row(trusted_objects.bar_is_not_lifted, ON_UPDATE, *trusted_objects.MACHINES),
    Row(disk_keys.keys_are_not_let_go, ON_UPDATE, *trusted_objects.MACHINES),
    Row(disk_keys.lost_disks_are_told, ON_DELETE, *trusted_objects.MACHINES),
    Row(disk_keys.no_binding_of_disks, ON_WRITE, confidential.GROUP, "resourcebindings"),
    Row(disk_keys.no_secret_of_disks, ON_WRITE, "", "secrets"),
    Row(machineconfig.pool_selects_a_role, ON_WRITE, MCO_GROUP, "machineconfigpools"),
    Row(machineconfig.configuration_is_singleton, ON_WRITE, machineconfig.OPERATOR_GROUP, "machineconfigurations"),
    Row(machine_policies.boot_images_fit_the_platform, ON_WRITE, machineconfig.OPERATOR_GROUP, "machineconfigurations"),
    Row(image_mode.setting_can_be_followed, ON_WRITE, machineconfig.OPERATOR_GROUP, "machineconfigurations"),
    Row(image_mode.nodes_come_back, ON_DELETE, MCO_GROUP, "machineosconfigs"),
    Row(machine_policies.stream_is_on_offer, ON_WRITE, MCO_GROUP, "machineconfigpools"),
    Row(machine_policies.streams_stay, ON_DELETE, MCO_GROUP, "osimagestreams"),
    Row(machine_policies.daemon_reports_for_its_node, ON_WRITE, MCO_GROUP, "machineconfignodes", ("", "status")),
    Row(machineconfig.declared_files_are_readable, ON_WRITE, MCO_GROUP, "machineconfigs"),
    Row(machineconfig.warn_about_trust_model, ON_WRITE, MCO_GROUP, "machineconfigs"),
    Row(machineconfig.warn_about_cgroup_mode, ON_WRITE, CONFIG_GROUP, "nodes"),
    Row(kata.is_alone, ON_CREATE, kata.GROUP, kata.RESOURCE),
    Row(kata.some_pool_may_have_it, ON_CREATE, kata.GROUP, kata.RESOURCE),
    *(Row(kata.operator_is_needed, ON_DELETE, group, resource) for group, resource in (
        ("", "namespaces"), (kata.OPERATORS, "subscriptions"), (kata.OPERATORS, "clusterserviceversions"))),
    Row(machineconfig.warn_about_overlay, ON_WRITE, confidential.GROUP, "nodeoverlays"),
    Row(workloads.switches_are_known, ON_WRITE, "", "namespaces"),
    *(Row(features.templates_can_be_read, ON_WRITE, group, features.RESOURCE) for group in features.GROUPS),
    Row(runtime_class.class_is_applied, ON_CREATE, "", "pods"),
    *(Row(rule, ON_WRITE, group, resource) for group, resource in PODDED for rule in _WORKLOADS),
    *(Row(not_acted_on.warn_embedded, ON_WRITE, group, resource) for group, resource in not_acted_on.EMBEDDED),
)  # fmt: skip

# A real API server knows its namespaces, its roles and its runtime classes by itself, and no webhook of ours sees every deletion
# of a namespace there, nor a status. Who makes a namespace in which we read by name an admission policy beside our accounts says;
# a status counts by its signature. Controllers may run there under any name, so who lets go of a Machine cannot be told.
_BUILT_IN: Final = frozenset({
    runtime_class.class_is_applied, kata.operator_is_needed, trusted_objects.status_is_found_out,
    confidential.memory_is_the_control_planes, trusted_objects.bar_is_not_lifted, disk_keys.keys_are_not_let_go,
    disk_keys.no_secret_of_disks, not_acted_on.warn_embedded, features.templates_can_be_read,
})  # fmt: skip
BEHIND_WEBHOOK: Final = RuleTable((
    *(row for row in TABLE if row.rule not in _BUILT_IN),
    *(Row(not_acted_on.warn, ON_WRITE, group, resource) for group, resource in not_acted_on.EVERYWHERE),
    *(Row(features.templates_are_templates, ON_WRITE, group, features.RESOURCE) for group in features.GROUPS),
))  # fmt: skip
