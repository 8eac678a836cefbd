"""The parts of a cluster that virtual machines do not bring along, played with the rights of the control plane.

The kubelet registers the Node and says that it is ready; the node controller notices when it has stopped saying so; a cloud
removes the Node, and the Machine, of a machine that was thrown away.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Final

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock
from fastness.sim.inventory import Spec

SIMULATED: Final = "fastness.dev/simulated"
_KUBELET: Final = WriteOptions(manager="virtual-kubelet")
_STATUS: Final = WriteOptions(manager="virtual-kubelet", subresource="status")
READY: Final = ("True", "KubeletReady", "virtual machine")
REBOOTING: Final = ("False", "Rebooting", "virtual machine")
NOT_ADMITTED: Final = ("False", "NotAttested", "the virtual machine booted and was refused")
SILENT: Final = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
OFF: Final = ("Unknown", "NodeStatusUnknown", "the virtual machine is switched off")

STORAGE: Final = {"ephemeral-storage": "128Gi"}


class Kubelet:
    """The kubelet of one machine, named as its directory is."""

    def __init__(self, cluster: Cluster, clock: Clock, spec: Spec) -> None:
        self._cluster = cluster
        self._clock = clock
        self._spec = spec
        # Machines of custom pools come as workers, too; the loop that knows the pool adds its labels.
        self._role = spec.pool if spec.pool in names.BUILT_IN_POOLS else names.WORKER

    async def register(self, node: str, notes: JsonObject) -> bool:
        """The Node is there, with its role and these annotations; whether it was not before."""
        labels = {
            f"{names.NODE_ROLE_PREFIX}{self._role}": "", names.OS_LABEL: "linux", names.ZONE_LABEL: self._spec.zone,
            "kubernetes.io/hostname": node, "kubernetes.io/arch": "amd64",
        }  # fmt: skip
        annotations = {SIMULATED: "true", **{str(key): str(value) for key, value in notes.items()}}
        body: JsonObject = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": labels, "annotations": annotations},
            "spec": {"providerID": self._spec.provider_id},
        }  # fmt: skip
        try:
            await self._cluster.create(NODES, body, _KUBELET)
        except AlreadyExists:
            return False
        return True

    async def tell(self, node: str, state: tuple[str, str, str], boot: str) -> None:
        """Say how the machine is; raises NotFound for one that never joined."""
        now, (status, reason, message) = rfc3339(self._clock.now()), state
        condition = {
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }  # fmt: skip
        identity = uuid.uuid5(uuid.NAMESPACE_DNS, self._spec.name)
        info = {
            "osImage": "Virtual machine of Fastness", "architecture": "amd64", "operatingSystem": "linux",
            "machineID": identity.hex, "systemUUID": str(identity), "bootID": boot,
            "kernelVersion": "6.12.0-virtual", "containerRuntimeVersion": "virtual://1.0", "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "",
        }  # fmt: skip
        storage = {"capacity": STORAGE, "allocatable": STORAGE}
        patch = {"status": {"conditions": [condition], "nodeInfo": info, **storage}}
        await self._cluster.patch(NODES, node, patch, PatchType.STRATEGIC, options=_STATUS)

    async def forget(self, node: str, machine: str) -> None:
        """The machine is gone for good: so are its Node and its Machine, also one that never joined."""
        with suppress(NotFound):
            await self._cluster.delete(NODES, node)
        with suppress(NotFound):
            await self._cluster.delete(MACHINE.resource, machine, NAMESPACE)
