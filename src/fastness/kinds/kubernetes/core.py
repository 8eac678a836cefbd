"""The core group: kinds that most code names, and looks at Namespace, Node and Pod.

The views carry the fields that decisions use (who runs where, what blocks a drain) and nothing else.
"""

from __future__ import annotations

import msgspec

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import Condition, Metadata, OwnerReference, View, holds

NAMESPACE = native("", "Namespace")
NODE = native("", "Node")
POD = native("", "Pod")
SECRET = native("", "Secret")
CONFIG_MAP = native("", "ConfigMap")
SERVICE_ACCOUNT = native("", "ServiceAccount")
EVENT = native("", "Event")

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class NamespaceSpec(View):
    """What holds a namespace back from going away."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(View):
    """Active, or Terminating with conditions that say what is left."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(View):
    """A namespace as its life cycle sees it."""

    metadata: Metadata = Metadata()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class Taint(View):
    """What keeps pods off a node."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(View):
    """Whether and for whom a node takes pods."""

    taints: tuple[Taint, ...] | None = None
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(View):
    """How a node is."""

    conditions: tuple[Condition, ...] = ()


class Node(View):
    """A node as rollouts and scheduling see it."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether the kubelet says that the node is ready."""
        return holds(self.status.conditions, "Ready")


class PodSpec(View):
    """Where a pod runs, and with which runtime."""

    node_name: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    host_network: bool = False
    termination_grace_period_seconds: int | None = None


class PodStatus(View):
    """How a pod is."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()


class Pod(View):
    """A pod as evictions, budgets and placement see it."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def owner(self) -> OwnerReference | None:
        """The controller that will replace the pod, if there is one."""
        return self.metadata.controller

    @property
    def finished(self) -> bool:
        """Whether the pod has ended, well or badly."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def mirrored(self) -> bool:
        """Whether the pod only shows a static pod of its node, which cannot be evicted."""
        return MIRROR_ANNOTATION in (self.metadata.annotations or {})

    @property
    def ready(self) -> bool:
        """Whether the pod serves."""
        return holds(self.status.conditions, "Ready")
