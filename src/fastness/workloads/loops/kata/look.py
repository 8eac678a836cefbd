"""What the cluster is like, as the state machine wants to know it.

Nearly all of it comes from caches. Asked for each time are only things that are one small answer (whether machine configs are
served, whether the operator's namespace is there) and, when the plan depends on it, the pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kata import names
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, NAMESPACE, NODE, POD, SECRET, SERVICE_ACCOUNT
from fastness.kinds.kubernetes.native import DAEMON_SET, RUNTIME_CLASS
from fastness.kinds.kubernetes.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.kubelet_config import CONTAINER_RUNTIME_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, labels_of, metadata, object_name
from fastness.kinds.openshift.config import CLUSTER_VERSION
from fastness.kinds.openshift.operators import CLUSTER_SERVICE_VERSION, SUBSCRIPTION
from fastness.kinds.openshift.security import SECURITY_CONTEXT_CONSTRAINTS
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import Source
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, Scope
from fastness.runtime.clock import Clock
from fastness.workloads.compat.combinations import release_of
from fastness.workloads.kata import peer_pods
from fastness.workloads.kata.eligibility import SIMULATED
from fastness.workloads.kata.inputs import Inputs, Operator, PodUse, Ref, pod_use, read_operator
from fastness.workloads.kata.mode import read_gates
from fastness.workloads.kata.objects import DASHBOARD_COPY, DASHBOARD_SOURCE
from fastness.workloads.kata.plan import needs_pods
from fastness.workloads.kata.status import is_ready

KATA_CONFIGS: Final = KATA_CONFIG.resource
CONFIDENTIAL: Final = CONFIDENTIAL_CLUSTER.resource
VERSIONS: Final = CLUSTER_VERSION.resource
CONFIGS: Final = MACHINE_CONFIG.resource
RUNTIMES: Final = CONTAINER_RUNTIME_CONFIG.resource
CLASSES: Final = RUNTIME_CLASS.resource
CONSTRAINTS: Final = SECURITY_CONTEXT_CONSTRAINTS.resource
DAEMON_SETS: Final = DAEMON_SET.resource
ACCOUNTS: Final = SERVICE_ACCOUNT.resource
ROLES: Final = CLUSTER_ROLE.resource
BINDINGS: Final = CLUSTER_ROLE_BINDING.resource
SECRETS: Final = SECRET.resource
CONFIG_MAPS: Final = CONFIG_MAP.resource
NAMESPACES: Final = NAMESPACE.resource
OPERATORS: Final = CLUSTER_SERVICE_VERSION.resource
SUBSCRIPTIONS: Final = SUBSCRIPTION.resource
HERE: Final = Scope(namespace=names.NAMESPACE)
DASHBOARD: Final = Scope(namespace=names.DASHBOARD_NAMESPACE, fields=f"metadata.name={names.DASHBOARD}")
HOME: Final = "fastness-system"
AT_HOME: Final = Scope(fields=f"metadata.name={HOME}")
INSTALLATION: Final = ObjectName("", "kataconfig")
NO_SUCH_CONFIG: Final = "fastness-asks-whether-machine-configs-are-served"
# Where the objects that are made live: the informer that shows each kind.
MADE: Final[Mapping[str, tuple[Resource, Scope]]] = {
    "MachineConfig": (CONFIGS, Scope()), "MachineConfigPool": (MACHINE_CONFIG_POOL.resource, Scope()),
    "ContainerRuntimeConfig": (RUNTIMES, Scope()), "RuntimeClass": (CLASSES, Scope()),
    "SecurityContextConstraints": (CONSTRAINTS, Scope()), "DaemonSet": (DAEMON_SETS, HERE),
    "ServiceAccount": (ACCOUNTS, HERE), "Secret": (SECRETS, HERE), "ClusterRole": (ROLES, Scope()),
    "ClusterRoleBinding": (BINDINGS, Scope()), "ConfigMap": (CONFIG_MAPS, HERE),
}  # fmt: skip
_NOTES: Final = (mco.CURRENT_CONFIG, mco.STATE, mco.REASON, names.FAILURE, SIMULATED)
_OUR_CONFIGS: Final = (names.EXTENSION_CONFIG, names.IMAGE_CONFIG, *peer_pods.CONFIG_NAMES)
_OUR_SECRETS: Final = (names.PULL_SECRET, names.PEER_PODS_SECRET)
# Kinds of which a cluster has many, and the names of the few that are ours.
_FEW_OF_MANY: Final[Mapping[str, tuple[str, ...]]] = {
    "MachineConfig": _OUR_CONFIGS, "ClusterRole": (names.INSTALLER_ACCOUNT,), "ClusterRoleBinding": (names.INSTALLER_ACCOUNT,),
}  # fmt: skip


def informer_scope(ref: Ref) -> tuple[Resource, Scope]:
    """The resource and scope of the informer that has an object."""
    if ref.kind == "Secret":
        return SECRETS, _named(ref.name)
    return (CONFIG_MAPS, DASHBOARD) if ref == DASHBOARD_COPY else MADE[ref.kind]


def _named(secret: str) -> Scope:
    """Where one Secret is: others of that namespace are not ours to read."""
    return Scope(names.NAMESPACE, fields=f"metadata.name={secret}")


def installation_key(_obj: object) -> Iterable[ObjectName]:
    """The key of whatever changed: a cluster has one installation, so every change concerns it."""
    return (INSTALLATION,)


def _ours(config: Mapping[str, Any]) -> Iterable[ObjectName]:
    return (INSTALLATION,) if object_name(config).name in _OUR_CONFIGS else ()


def _our_rights(obj: Mapping[str, Any]) -> Iterable[ObjectName]:
    return (INSTALLATION,) if object_name(obj).name == names.INSTALLER_ACCOUNT else ()


class NodeNews:
    """Which changes of nodes matter: not the heartbeats, of which a large cluster has hundreds a second."""

    def __init__(self, informers: Informers) -> None:
        self._changed: set[str] = set()
        informers.of(NODE.resource).subscribe(self._hear)

    def _hear(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None or new is None or _facts(old) != _facts(new):
            self._changed.add(object_name(new or old or {}).name)

    def keys(self, node: Mapping[str, Any]) -> Iterable[ObjectName]:
        """The key, when the last change of the node matters."""
        name = object_name(node).name
        if name not in self._changed:
            return ()
        self._changed.discard(name)
        return (INSTALLATION,)


def _facts(node: JsonObject) -> tuple[Any, ...]:
    """All that decisions see of a node."""
    notes = annotations_of(node)
    system = ((node.get("status") or {}).get("nodeInfo") or {}).get("osImage")
    return labels_of(node), tuple(notes.get(key) for key in _NOTES), is_ready(node), system


def sources(delay: float, news: NodeNews) -> tuple[Source, ...]:
    """What is read; kinds that a cluster may not serve do not hold up the others."""
    return (
        Source(KATA_CONFIGS, keys=installation_key),
        Source(NODE.resource, keys=news.keys, delay=delay),
        Source(MACHINE_CONFIG_POOL.resource, keys=installation_key, delay=delay, optional=True),
        Source(CONFIGS, keys=_ours, delay=delay, optional=True),
        Source(RUNTIMES, keys=installation_key, delay=delay, optional=True),
        Source(CLASSES, keys=installation_key, delay=delay),
        Source(CONSTRAINTS, keys=installation_key, delay=delay, optional=True),
        Source(CONFIDENTIAL, keys=installation_key, delay=delay),
        Source(VERSIONS, keys=installation_key, delay=delay, optional=True),
        *(Source(resource, keys=_our_rights, delay=delay) for resource in (ROLES, BINDINGS)),
        *(
            Source(resource, keys=installation_key, scope=HERE, delay=delay)
            for resource in (CONFIG_MAPS, DAEMON_SETS, ACCOUNTS)
        ),
        *(Source(SECRETS, keys=installation_key, scope=_named(secret), delay=delay) for secret in _OUR_SECRETS),
        Source(CONFIG_MAPS, keys=installation_key, scope=DASHBOARD, delay=delay),
        *(Source(resource, keys=installation_key, scope=HERE) for resource in (OPERATORS, SUBSCRIPTIONS)),
        Source(NAMESPACES, keys=installation_key, scope=AT_HOME),
        # Which pool a node is in. A machine that is moved changes its node too, and machines prove themselves all the time.
        Source(MACHINE.resource, keys=lambda _machine: ()),
    )


class Look:
    """Gathers what the state machine decides on."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._informers = informers
        self._clock = clock

    def configs(self) -> list[JsonObject]:
        """All KataConfigs, the oldest first: that is the one that counts."""
        configs = self._informers.of(KATA_CONFIGS).list()
        # By name where two have the same second.
        return sorted(
            configs, key=lambda config: (str(metadata(config).get("creationTimestamp")), object_name(config).name)
        )

    def has_classes(self) -> bool:
        """Whether there are runtime classes of ours; without them and without a KataConfig there is nothing to do."""
        classes = self._informers.of(CLASSES).list()
        return any(
            names.CLASS_FINALIZER in (metadata(runtime_class).get("finalizers") or ()) for runtime_class in classes
        )

    def operator(self) -> Operator:
        """Whether the operator is there, or was."""
        versions, subscriptions = (self._informers.of(resource, HERE).list() for resource in (OPERATORS, SUBSCRIPTIONS))
        home = self._informers.of(NAMESPACES, AT_HOME).get("", HOME)
        return read_operator(versions, subscriptions, home or {})

    async def inputs(self, config: JsonObject | None) -> Inputs:
        """Everything that the plan depends on; raises ApiError."""
        maps = self._informers.of(CONFIG_MAPS, HERE)
        served = await self._served()
        for resource in (MACHINE_CONFIG_POOL.resource, CONFIGS, RUNTIMES) if served else ():
            await self._informers.of(resource).synced()
        objects = self._objects(served=served)
        inputs = Inputs(
            config,
            gates=read_gates(maps.get(names.NAMESPACE, names.FEATURE_GATES)),
            nodes=self._informers.of(NODE.resource).list(),
            pools=self._informers.of(MACHINE_CONFIG_POOL.resource).list() if served else (),
            objects=objects,
            cluster=self._informers.of(CONFIDENTIAL).get("", "cluster"),
            machines=self._informers.of(MACHINE.resource).list(),
            version=release_of(self._informers.of(VERSIONS).get("", "version")),
            served=served,
            namespace=await self._exists(NAMESPACES, names.NAMESPACE),
            console=DASHBOARD_SOURCE in objects and await self._exists(NAMESPACES, names.DASHBOARD_NAMESPACE),
            layered=maps.get(names.NAMESPACE, names.LAYERED_IMAGE),
            pull_secret=await self._pull_secret(),
            operator=self.operator(),
            now=self._clock.now(),
        )
        return replace(inputs, pods=await self._pods(inputs)) if needs_pods(inputs) else inputs

    def _objects(self, *, served: bool) -> dict[Ref, JsonObject]:
        objects: dict[Ref, JsonObject] = {}
        for kind, (resource, scope) in MADE.items():
            if kind in _FEW_OF_MANY:
                every = self._informers.of(resource, scope)
                listed = [obj for name in _FEW_OF_MANY[kind] if (obj := every.get("", name)) is not None]
            elif kind == "Secret":
                listed = [obj for name in _OUR_SECRETS for obj in self._informers.of(resource, _named(name)).list()]
            else:
                listed = list(self._informers.of(resource, scope).list())
            objects |= {Ref(kind, object_name(obj).name, object_name(obj).namespace): obj for obj in listed}
        copy = self._informers.of(CONFIG_MAPS, DASHBOARD).get(names.DASHBOARD_NAMESPACE, names.DASHBOARD)
        objects |= {DASHBOARD_COPY: copy} if copy is not None else {}
        return objects

    async def _served(self) -> bool:
        """Whether machine configs are served: asking for one that does not exist says it; raises ApiError."""
        try:
            await self._cluster.get(CONFIGS, NO_SUCH_CONFIG)
        except NotFound as error:
            # A server that has the kind names the object that it lacks; one that has not, the path.
            return error.name == NO_SUCH_CONFIG
        return True

    async def _exists(self, resource: Resource, name: str) -> bool:
        try:
            await self._cluster.get(resource, name)
        except NotFound:
            return False
        return True

    async def _pull_secret(self) -> JsonObject | None:
        namespace, name = names.CLUSTER_PULL_SECRET
        try:
            return await self._cluster.get(SECRETS, name, namespace)
        except NotFound:
            return None

    async def _pods(self, inputs: Inputs) -> PodUse:
        """The use that pods make of our classes; a failure is part of the answer, because the status tells it."""
        reported: Sequence[str] = ((inputs.config or {}).get("status") or {}).get("runtimeClasses") or ()
        classes = {*reported, *(ref.name for ref in inputs.objects if ref.kind == "RuntimeClass")}
        try:
            return pod_use((await self._cluster.list(POD.resource)).items, sorted(classes))
        except ApiError as error:
            return PodUse(error=error.message)
