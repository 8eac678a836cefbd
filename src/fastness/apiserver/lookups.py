"""What authentication, authorization and admission must know of the store.

One object answers all their questions (the Protocols are theirs), reading committed records. Objects that are asked for on every
request are kept decoded until their record changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fastness.apiserver import storable
from fastness.apiserver.store import Key, Record, Store
from fastness.apiserver.verbs.reads import require_readable
from fastness.kinds import kata
from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata, object_name
from fastness.kinds.openshift.config import MICROSHIFT
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access import Attributes, Decision, Policy
from fastness.kube.places import HOME
from fastness.runtime.clock import Clock

RBAC = "rbac.authorization.k8s.io"
MCO = "machineconfiguration.openshift.io"
MAX_CACHED = 4096


class StoreLookups(ABC):
    """Answers out of the store; which nodes are trusted is not the server's to say, and is left to who opens it."""

    def __init__(self, store: Store, clock: Clock, simulated: bool | None = None) -> None:
        self._store = store
        self.clock = clock
        self._simulated = simulated
        self._rbac_generation = 1
        self._cache: dict[Key, tuple[Record, JsonObject]] = {}
        self._authorizer: Callable[[Attributes], Decision] | None = None
        self._policy: Callable[[], Policy] | None = None

    def use(self, decide: Callable[[Attributes], Decision], policy: Callable[[], Policy]) -> None:
        """Join the authorizer, which itself needs these lookups."""
        self._authorizer, self._policy = decide, policy

    def rbac_changed(self) -> None:
        """A role or a binding was written."""
        self._rbac_generation += 1

    def rbac_generation(self) -> int:
        """A number that changes with every role and binding."""
        return self._rbac_generation

    def rbac_objects(self, resource: str) -> Iterable[Mapping[str, Any]]:
        """All objects of one RBAC kind."""
        return self._all(RBAC, resource)

    def policy(self) -> Policy:
        """The current roles and bindings."""
        if self._policy is None:
            raise RuntimeError("the lookups were used before they were joined with an authorizer")
        return self._policy()

    def authorize(self, attrs: Attributes) -> Decision:
        """The decision of the server's authorizer."""
        if self._authorizer is None:
            raise RuntimeError("the lookups were used before they were joined with an authorizer")
        return self._authorizer(attrs)

    def namespace(self, name: str) -> JsonObject | None:
        """One Namespace, with writes on their way."""
        key = Key("", "namespaces", "", name)
        require_readable(self._store, key)
        # With writes on their way: a namespace whose deletion is decided takes nothing new, though no reader sees it yet.
        record = self._store.head(key)
        return self._decoded(record) if record is not None else None

    def pod(self, namespace: str, name: str) -> JsonObject | None:
        """One pod."""
        return self.find("pods", namespace, name)

    def pods_on(self, node: str) -> Iterator[JsonObject]:
        """The pods that are bound to a node."""
        needle = node.encode()
        for record in self._store.range("", "pods").records:
            # Looking for bytes costs far less than decoding every pod; what is found is still compared as a field.
            if needle in record.body:
                pod = storable.read(record.body)
                if (pod.get("spec") or {}).get("nodeName") == node:
                    yield pod

    @abstractmethod
    def rendered_configs(self, node: str) -> frozenset[str]:
        """The rendered MachineConfigs that a node may read."""

    @abstractmethod
    def reads_trust(self, node: str) -> bool:
        """Whether a node reads here what it has beside its config."""

    @abstractmethod
    def barred(self, node: str) -> str | None:
        """Why a node is no longer trusted; None for others."""

    @abstractmethod
    def unproved(self, node: str) -> str | None:
        """Why a node that would have to prove itself has not; None for others."""

    @abstractmethod
    def appointments(self) -> JsonObject | None:
        """The ConfigMap that says who counts as an approver of overrides."""

    def signing_request(self, name: str) -> JsonObject | None:
        """One CertificateSigningRequest."""
        return self.get(Key("certificates.k8s.io", "certificatesigningrequests", "", name))

    def confidential_cluster(self) -> JsonObject | None:
        """The ConfidentialCluster `cluster`."""
        return self.get(Key("fastness.dev", "confidentialclusters", "", "cluster"))

    def machines(self) -> Iterable[JsonObject]:
        """The Machines that count."""
        return [
            machine for machine in self._all(MACHINE.group, MACHINE.plural) if object_name(machine).namespace == HOME
        ]

    def pools(self) -> Iterable[JsonObject]:
        """All MachineConfigPools."""
        return self._all(MCO, "machineconfigpools")

    def nodes(self) -> Iterable[JsonObject]:
        """All Nodes."""
        return self._all("", "nodes")

    def pods(self) -> Iterable[JsonObject]:
        """All Pods."""
        return self._all("", "pods")

    def kata_configs(self) -> Iterable[JsonObject]:
        """All KataConfigs."""
        return self._all(kata.GROUP, "kataconfigs")

    def feature_gates(self) -> JsonObject | None:
        """The ConfigMap with the feature gates of confidential containers."""
        return self.find("configmaps", names.NAMESPACE, names.FEATURE_GATES)

    def simulated(self) -> bool | None:
        """Whether this store belongs to a simulated cluster."""
        return self._simulated

    def runtime_class(self, name: str) -> JsonObject | None:
        """One RuntimeClass."""
        return self.get(Key("node.k8s.io", "runtimeclasses", "", name))

    def runtime_classes(self) -> Iterator[str]:
        """The names of all RuntimeClasses."""
        return (record.key.name for record in self._store.range("node.k8s.io", "runtimeclasses").records)

    def has_operator_group(self, namespace: str) -> bool:
        """Whether an operator was installed into a namespace."""
        return bool(self._store.range("operators.coreos.com", "operatorgroups", namespace).records)

    def os_image_stream(self) -> JsonObject | None:
        """The OSImageStream `cluster`."""
        return self.get(Key(MCO, "osimagestreams", "", "cluster"))

    def infrastructure(self) -> JsonObject | None:
        """The Infrastructure `cluster`."""
        return self.get(Key("config.openshift.io", "infrastructures", "", "cluster"))

    def microshift(self) -> JsonObject | None:
        """The ConfigMap by which MicroShift says that it is one."""
        return self.find("configmaps", *MICROSHIFT)

    def find(self, resource: str, namespace: str, name: str) -> JsonObject | None:
        """One object of a core kind."""
        return self.get(Key("", resource, namespace, name))

    def live_uid(self, resource: str, namespace: str, name: str) -> str | None:
        """The uid of an object that exists and is not being deleted."""
        meta = metadata(self.find(resource, namespace, name) or {})
        return None if not meta or meta.get("deletionTimestamp") else str(meta["uid"])

    def get(self, key: Key) -> JsonObject | None:
        """One object of any kind; raises ApiError for one that cannot be read."""
        # What is set aside is not absent: a cluster whose mode nobody can read must not pass for one without a mode.
        require_readable(self._store, key)
        record = self._store.get(key)
        return self._decoded(record) if record is not None else None

    def _decoded(self, record: Record) -> JsonObject:
        entry = self._cache.get(record.key)
        # Records are immutable and replaced: the same record means the same object, without comparing anything.
        if entry is not None and entry[0] is record:
            return entry[1]
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        obj = storable.read(record.body)
        self._cache[record.key] = (record, obj)
        return obj

    def _all(self, group: str, plural: str) -> Iterator[JsonObject]:
        return (storable.read(record.body) for record in self._store.range(group, plural).records)
