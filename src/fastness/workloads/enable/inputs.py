"""What is asked for, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fastness.formats.selectors import EVERYTHING
from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG, TRUSTEE_CONFIG
from fastness.kinds.kata import names
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kata.names import Tee
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes.core import CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT
from fastness.kinds.kubernetes.native import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    SERVICE,
)
from fastness.kinds.kubernetes.rbac import ROLE_BINDING
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.nfd.rule import NODE_FEATURE_RULE
from fastness.kinds.objects import object_name
from fastness.kinds.openshift.config import CLUSTER_VERSION, INFRASTRUCTURE
from fastness.kinds.openshift.operators import OPERATOR_GROUP, SUBSCRIPTION
from fastness.kinds.openshift.workloads import CLUSTER_POLICY
from fastness.machineconfig.rollout.plan import State
from fastness.workloads.kata.eligibility import NodeRequirements, is_converged, requirements_of
from fastness.workloads.kata.errors import Refused

Object = Mapping[str, Any]


class Look(NamedTuple):
    """One kind that is looked at; with namespaces only there, because nobody should read all Secrets of a cluster."""

    kind: Kind
    namespaces: tuple[str, ...] = ()


_DCAP: Final = ("intel-dcap",)
# Everything that is looked at beside what a plan needs.
LOOKED_AT: Final = (
    Look(NAMESPACE),
    Look(SERVICE_ACCOUNT, _DCAP),
    Look(SECRET, _DCAP),
    Look(CONFIG_MAP, (*_DCAP, names.NAMESPACE)),
    Look(SERVICE, _DCAP),
    Look(PERSISTENT_VOLUME_CLAIM, _DCAP),
    Look(DEPLOYMENT, _DCAP),
    Look(DAEMON_SET, _DCAP),
    Look(CRON_JOB, _DCAP),
    Look(ROLE_BINDING, _DCAP),
    Look(NETWORK_POLICY, _DCAP),
    Look(OPERATOR_GROUP),
    Look(SUBSCRIPTION),
    Look(NODE_FEATURE_DISCOVERY),
    Look(NODE_FEATURE_RULE),
    Look(NODE_FEATURE),
    Look(KATA_CONFIG),
    Look(KBS_CONFIG),
    Look(TRUSTEE_CONFIG),
    Look(CLUSTER_POLICY),
    Look(CLUSTER_VERSION),
    Look(INFRASTRUCTURE),
)
# Kinds without which nothing is lost but a check.
OPTIONAL: Final = frozenset({"clusterversions", "infrastructures", "nodefeatures", "kbsconfigs"})


@dataclass(frozen=True, slots=True)
class EnableRequest:
    """What somebody wants: a TEE, with GPUs or without, Intel's services or not, the attestation service here or not."""

    tee: Tee
    gpu: bool = False
    dcap: bool = True
    trustee: bool = True
    selector: Mapping[str, str] = field(default_factory=dict)
    kata_name: str = "example-kataconfig"
    mode: str = ""
    pccs_node: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment: what a plan needs, and everything else by plural; None means that the kind is not served."""

    state: State
    objects: Mapping[str, Sequence[JsonObject] | None]

    def all(self, plural: str) -> Sequence[JsonObject]:
        """All objects of a kind; none when it is not served."""
        return self.objects.get(plural) or ()

    def get(self, plural: str, name: str, namespace: str = "") -> JsonObject | None:
        """The object of that kind, name and namespace, or None."""
        named = (obj for obj in self.all(plural) if object_name(obj).name == name)
        return next((obj for obj in named if object_name(obj).namespace == namespace), None)

    @property
    def nodes(self) -> Sequence[Object]:
        """All nodes."""
        return self.state.nodes or ()

    @property
    def kata(self) -> JsonObject | None:
        """The KataConfig, whatever its name."""
        return next(iter(self.all("kataconfigs")), None)

    @property
    def converged(self) -> bool:
        """Whether the masters are the workers."""
        return is_converged(self.state.pools, self.nodes)

    @property
    def has_machine_configs(self) -> bool:
        """Whether machines are configured by MachineConfigs here."""
        return bool(self.state.pools)

    @property
    def pool(self) -> str:
        """The pool that gets the runtime."""
        return mco.MASTER if self.converged else names.POOL

    @property
    def home(self) -> str:
        """The pool that its nodes come from."""
        return mco.MASTER if self.converged else mco.WORKER

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles whose configs that pool takes."""
        return (mco.MASTER,) if self.converged else (names.POOL, mco.WORKER)

    def requirements(self, request: EnableRequest) -> NodeRequirements:
        """Which nodes are meant: by the KataConfig that is there, or the one that would be."""
        if self.kata is not None:
            try:
                return requirements_of(self.kata, converged=self.converged)
            except Refused:
                return NodeRequirements(EVERYTHING, check=False, converged=self.converged)
        spec = {"kataConfigPoolSelector": {"matchLabels": dict(request.selector)}} if request.selector else {}
        return requirements_of({"spec": spec}, converged=self.converged)
