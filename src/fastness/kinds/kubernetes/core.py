"""The kinds that most code names, and looks at those that decisions are about: Namespace, Node, Pod, Lease, PodDisruptionBudget.

The views carry the fields that decisions use (who runs where, what blocks a drain) and nothing else.

* Times of a Lease carry microseconds, unlike everywhere else in the API.
* The status of a budget is a promise with a generation: an eviction may only be granted from a status that speaks of the present
  spec. `disrupted_pods` holds pods whose eviction was granted and which are still seen.
"""

from __future__ import annotations

import msgspec

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import Condition, LabelSelector, Metadata, OwnerReference, View, holds

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


LEASE = native("coordination.k8s.io", "Lease")


class LeaseSpec(View):
    """Holder, term and how often the lease changed hands."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(View):
    """A lease as leader election sees it."""

    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()


POD_DISRUPTION_BUDGET = native("policy", "PodDisruptionBudget")


class PodDisruptionBudgetSpec(View):
    """Which pods, and how many of them."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View):
    """What is allowed now."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(View):
    """A budget as evictions see it."""

    metadata: Metadata = Metadata()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
