"""Where machines come from: MachineSet, Machine, ControlPlaneMachineSet, BareMetalHost.

The sets name the user-data secret that new machines boot with and can be scaled with `kubectl scale`; hosts are the inventory
that node types of tenants draw on.
"""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import AGE, Column, Scope
from fastness.kinds.openshift.stored import stored

GROUP = "machine.openshift.io"
FINALIZER = "machine.machine.openshift.io"
DELETE_FIRST = "machine.openshift.io/delete-machine"
CLUSTER_LABEL = "machine.openshift.io/cluster-api-cluster"
MACHINE_OF_NODE = "machine.openshift.io/machine"
_SCALED: dict[str, Any] = {
    "subresources": ("status", "scale"),
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    },
}

MACHINE_SET = stored(
    GROUP,
    "v1beta1",
    "MachineSet",
    "machinesets",
    Scope.NAMESPACED,
    "Keeps a number of machines of one shape.",
    columns=(
        Column("Desired", ".spec.replicas", "integer", description="Machines wanted."),
        Column("Current", ".status.replicas", "integer", description="Machines that exist."),
        Column("Ready", ".status.readyReplicas", "integer", description="Machines that are ready."),
        Column("Available", ".status.availableReplicas", description="Machines that are available."),
        AGE,
    ),
    **_SCALED,
)

# Not the Machine of trusted-execution-clusters.io: that one has proved what it booted, this one was ordered.
PROVIDER_MACHINE = stored(
    GROUP,
    "v1beta1",
    "Machine",
    "machines",
    Scope.NAMESPACED,
    "A machine that somebody ordered: what it is made of, how far it is, which node it became.",
    columns=(
        Column("Phase", ".status.phase", description="How far the machine is."),
        Column("Type", ".metadata.labels.machine\\.openshift\\.io/instance-type", description="Type of instance."),
        Column("Region", ".metadata.labels.machine\\.openshift\\.io/region", description="Region."),
        Column("Zone", ".metadata.labels.machine\\.openshift\\.io/zone", description="Zone."),
        AGE,
        Column("Node", ".status.nodeRef.name", priority=1, description="Node that the machine became."),
        Column("ProviderID", ".spec.providerID", priority=1, description="How its provider names it."),
        Column("Error", ".status.errorMessage", priority=1, description="What went wrong for good."),
    ),
)

CONTROL_PLANE_MACHINE_SET = stored(
    GROUP,
    "v1",
    "ControlPlaneMachineSet",
    "controlplanemachinesets",
    Scope.NAMESPACED,
    "Keeps the machines of the control plane.",
    columns=(
        Column("Desired", ".spec.replicas", "integer", description="Machines wanted."),
        Column("Current", ".status.replicas", "integer", description="Machines that exist."),
        Column("Ready", ".status.readyReplicas", "integer", description="Machines that are ready."),
        Column("Updated", ".status.updatedReplicas", "integer", description="Machines of the wanted shape."),
        Column("Unavailable", ".status.unavailableReplicas", "integer", description="Machines that are missing."),
        Column("State", ".spec.state", description="Whether the set acts."),
        AGE,
    ),
    **_SCALED,
)

BARE_METAL_HOST = stored(
    "metal3.io",
    "v1alpha1",
    "BareMetalHost",
    "baremetalhosts",
    Scope.NAMESPACED,
    "A physical server that can become a machine.",
    short_names=("bmh", "bmhost"),
    columns=(
        Column("Status", ".status.operationalStatus", priority=1, description="How the host is."),
        Column("State", ".status.provisioning.state", description="How far provisioning is."),
        Column("Consumer", ".spec.consumerRef.name", description="Who uses the host."),
        Column("BMC", ".spec.bmc.address", priority=1, description="Address of the management controller."),
        Column("Hardware_Profile", ".status.hardwareProfile", priority=1, description="Profile of the hardware."),
        Column("Online", ".spec.online", description="Whether the host is or should be on."),
        Column("Error", ".status.errorType", description="What went wrong last."),
        AGE,
    ),
)

KINDS = (MACHINE_SET, PROVIDER_MACHINE, CONTROL_PLANE_MACHINE_SET, BARE_METAL_HOST)
