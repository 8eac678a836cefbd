"""What the rules must know, on a cluster that is not ours: informers, one live question, and the policy engine.

A namespace that the cache has not heard of is asked for at once: a pod may come in the same moment as its namespace, and a switch
that was not seen must not count as none. The policy engine (`workloads.live.agent_policies`) is asked before the rules are.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from fastness.attestation.verdict import approvers
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kata import names
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, NAMESPACE, NODE, POD
from fastness.kinds.kubernetes.native import RUNTIME_CLASS
from fastness.kinds.machineconfiguration.pinned_images import OS_IMAGE_STREAM
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.openshift.config import INFRASTRUCTURE, MICROSHIFT
from fastness.kinds.openshift.operators import OPERATOR_GROUP
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access import Attributes, Decision, Policy
from fastness.kube.access.user import NO_OPINION
from fastness.kube.admission import AdmissionRequest
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.places import HOME
from fastness.kube.port import Cluster, Scope
from fastness.workloads.admission.workloads import policy_to_try
from fastness.workloads.live.agent_policies import PolicyTrials

NODES: Final = NODE.resource
PODS: Final = POD.resource
NAMESPACES: Final = NAMESPACE.resource
CLASSES: Final = RUNTIME_CLASS.resource
GROUPS: Final = OPERATOR_GROUP.resource
CLUSTERS: Final = CONFIDENTIAL_CLUSTER.resource
POOLS: Final = MACHINE_CONFIG_POOL.resource
KATA_CONFIGS: Final = KATA_CONFIG.resource
CONFIG_MAPS: Final = CONFIG_MAP.resource
# What a write is judged by is asked for with it: there may be no such kind on the cluster, and a cache would wait for it.
PARAMETERS: Final = {
    POOLS.plural: OS_IMAGE_STREAM.resource, MACHINE_CONFIGURATION.plural: INFRASTRUCTURE.resource,
    CLUSTERS.plural: INFRASTRUCTURE.resource,
}  # fmt: skip


@dataclass(slots=True)
class Sources:
    """The caches behind the lookups."""

    namespaces: Informer
    classes: Informer
    groups: Informer
    clusters: Informer
    pools: Informer
    kata_configs: Informer
    gates: Informer
    ours: Informer

    @staticmethod
    async def of(informers: Informers) -> Sources:
        """All caches, filled."""
        plain: list[Resource] = [NAMESPACES, CLASSES, GROUPS, CLUSTERS, POOLS, KATA_CONFIGS]
        maps = [informers.of(CONFIG_MAPS, Scope(namespace)) for namespace in (names.NAMESPACE, approvers.NAMESPACE)]
        caches = [*(informers.of(resource) for resource in plain), *maps]
        for informer in caches:
            await informer.synced()
        return Sources(*caches)


@dataclass(slots=True)
class ClusterLookups:
    """The lookups for one review; `fresh`, `listed`, `placed`, `parameter` and `small` were asked for just now."""

    sources: Sources
    fresh: dict[str, JsonObject] = field(default_factory=dict)
    listed: list[JsonObject] | None = None
    placed: tuple[list[JsonObject], list[JsonObject], list[JsonObject]] = ([], [], [])
    parameter: JsonObject | None = None
    small: JsonObject | None = None

    def namespace(self, name: str) -> JsonObject | None:
        """One Namespace."""
        return self.sources.namespaces.get("", name) or self.fresh.get(name)

    def pod(self, namespace: str, name: str) -> JsonObject | None:
        """None: rules behind the webhook do not ask for pods."""
        return None

    def policy(self) -> Policy:
        """No roles: the API server looks after them itself."""
        return Policy.build()

    def authorize(self, attrs: Attributes) -> Decision:
        """No opinion, which allows nothing: the API server authorizes by itself."""
        return NO_OPINION

    def confidential_cluster(self) -> JsonObject | None:
        """The ConfidentialCluster `cluster`."""
        return self.sources.clusters.get("", "cluster")

    def pools(self) -> Iterable[JsonObject]:
        """All MachineConfigPools."""
        return self.sources.pools.list()

    def nodes(self) -> Iterable[JsonObject]:
        """All Nodes, where they were asked for."""
        return self.placed[0]

    def pods(self) -> Iterable[JsonObject]:
        """All Pods, where they were asked for."""
        return self.placed[1]

    def machines(self) -> Iterable[JsonObject]:
        """The Machines that count, where they were asked for."""
        return self.placed[2]

    def kata_configs(self) -> Iterable[JsonObject]:
        """All KataConfigs."""
        return self.sources.kata_configs.list() if self.listed is None else self.listed

    def feature_gates(self) -> JsonObject | None:
        """The ConfigMap with the feature gates of confidential containers."""
        return self.sources.gates.get(names.NAMESPACE, names.FEATURE_GATES)

    def appointments(self) -> JsonObject | None:
        """The ConfigMap that says who counts as an approver of overrides."""
        return self.sources.ours.get(approvers.NAMESPACE, approvers.CONFIG_MAP)

    def simulated(self) -> bool | None:
        """What the present cluster says; None before there is one."""
        cluster = self.confidential_cluster()
        return bool((cluster.get("spec") or {}).get("simulated")) if cluster is not None else None

    def runtime_class(self, name: str) -> JsonObject | None:
        """One RuntimeClass."""
        return self.sources.classes.get("", name)

    def runtime_classes(self) -> Iterable[str]:
        """The names of all RuntimeClasses."""
        return [str(runtime_class["metadata"]["name"]) for runtime_class in self.sources.classes.list()]

    def os_image_stream(self) -> JsonObject | None:
        """The OSImageStream `cluster`, where it was asked for."""
        return self._parameter(OS_IMAGE_STREAM.kind)

    def infrastructure(self) -> JsonObject | None:
        """The Infrastructure `cluster`, where it was asked for."""
        return self._parameter(INFRASTRUCTURE.kind)

    def microshift(self) -> JsonObject | None:
        """The ConfigMap by which MicroShift says that it is one, where it was asked for."""
        return self.small

    def _parameter(self, kind: str) -> JsonObject | None:
        return self.parameter if self.parameter is not None and self.parameter.get("kind") == kind else None

    def has_operator_group(self, namespace: str) -> bool:
        """Whether an operator was installed into a namespace."""
        return bool(self.sources.groups.list(namespace))


async def prepared(
    request: AdmissionRequest, cluster: Cluster, sources: Sources, trials: PolicyTrials
) -> tuple[AdmissionRequest, ClusterLookups]:
    """The request and its lookups, with everything that must be waited for; raises ApiError."""
    lookups = ClusterLookups(sources)
    if request.resource == KATA_CONFIGS.plural:
        # There may be one at most, and a cache learns of the first a moment too late for the second.
        lookups.listed = (await cluster.list(KATA_CONFIGS)).items
    if request.resource == CLUSTERS.plural:
        # Which pods a change would put out is asked at most when somebody changes the cluster itself.
        machines = (await cluster.list(MACHINE.resource, Scope(HOME))).items
        lookups.placed = ((await cluster.list(NODES)).items, (await cluster.list(PODS)).items, machines)
        with suppress(NotFound):
            namespace, name = MICROSHIFT
            lookups.small = await cluster.get(CONFIG_MAPS, name, namespace)
    if request.resource in PARAMETERS:
        with suppress(NotFound):
            lookups.parameter = await cluster.get(PARAMETERS[request.resource], "cluster")
    if request.namespace and lookups.namespace(request.namespace) is None:
        try:
            lookups.fresh[request.namespace] = await cluster.get(NAMESPACES, request.namespace)
        except NotFound:
            return request, lookups
    text = policy_to_try(request, lookups)
    return (request if text is None else replace(request, trial=await trials.of(text))), lookups
