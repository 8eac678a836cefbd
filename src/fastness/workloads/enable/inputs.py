"""What is asked for, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fastness.formats.selectors import EVERYTHING
from fastness.kinds.kata import names
from fastness.kinds.kata.names import Tee
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import object_name
from fastness.machineconfig.rollout.plan import State
from fastness.workloads.kata.eligibility import NodeRequirements, is_converged, requirements_of
from fastness.workloads.kata.errors import Refused

Object = Mapping[str, Any]


class Look(NamedTuple):
    """One kind that is looked at; with namespaces only there, because nobody should read all Secrets of a cluster."""

    group: str
    version: str
    plural: str
    namespaces: tuple[str, ...] = ()


_DCAP: Final = ("intel-dcap",)
# Everything that is looked at beside what a plan needs.
LOOKED_AT: Final = (
    Look("", "v1", "namespaces"),
    Look("", "v1", "serviceaccounts", _DCAP),
    Look("", "v1", "secrets", _DCAP),
    Look("", "v1", "configmaps", (*_DCAP, names.NAMESPACE)),
    Look("", "v1", "services", _DCAP),
    Look("", "v1", "persistentvolumeclaims", _DCAP),
    Look("apps", "v1", "deployments", _DCAP),
    Look("apps", "v1", "daemonsets", _DCAP),
    Look("batch", "v1", "cronjobs", _DCAP),
    Look("rbac.authorization.k8s.io", "v1", "rolebindings", _DCAP),
    Look("networking.k8s.io", "v1", "networkpolicies", _DCAP),
    Look("operators.coreos.com", "v1", "operatorgroups"),
    Look("operators.coreos.com", "v1alpha1", "subscriptions"),
    Look("nfd.openshift.io", "v1", "nodefeaturediscoveries"),
    Look("nfd.openshift.io", "v1alpha1", "nodefeaturerules"),
    Look("nfd.openshift.io", "v1alpha1", "nodefeatures"),
    Look("kataconfiguration.openshift.io", "v1", "kataconfigs"),
    Look("confidentialcontainers.org", "v1alpha1", "kbsconfigs"),
    Look("confidentialcontainers.org", "v1alpha1", "trusteeconfigs"),
    Look("nvidia.com", "v1", "clusterpolicies"),
    Look("config.openshift.io", "v1", "clusterversions"),
    Look("config.openshift.io", "v1", "infrastructures"),
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
