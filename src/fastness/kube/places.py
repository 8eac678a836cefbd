"""Where objects count: the one table of which namespaces a namespaced kind is read from.

Whoever owns a namespace may write any kind into it that a role of theirs names. So an object that speaks for the whole cluster
(an approval of an image, a Machine, what was found on a node) counts in the control plane's own namespaces and nowhere else.

| belongs | kinds | namespaces |
| --- | --- | --- |
| `HOME` | what enrolment writes: Machine, AttestationKey | `fastness-system` |
| an operator | what administrators write, as the operator's manual says | `fastness-system`, the operator's, adopted ones |
| `PLATFORM` | what makes machines | `openshift-machine-api` |
| `OWN` | what speaks for the namespace that it is in: pods, budgets, image policies, workloads, subscriptions | every one |
| `NAMED` | everything else (Secret, ConfigMap, …) | the reader must name one |

* The namespaces of operators count by name in the embedded API alone, which makes them before anybody can connect and lets
  nobody delete them. On any other API server whoever may create namespaces could be the first to make one, and would
  administer the broker: there an administrator names them (`fastness serve --adopt namespace/NAME`).
* Other names that manuals give (`RESERVED`: user-data, boot images, the operator of sandboxed containers, its pull secret,
  credentials of the cluster's registry) are read by name. A namespace of such a name is made by an administrator alone, which the
  embedded API asks its authorizer and a Kubernetes the admission policy that comes with our accounts.
* Adopting the namespace of an operator adopts it for that operator's kinds; any other namespace for all kinds that administrators
  write. Nothing adopts a place for Machines: they are what the doors wrote.

`kube.informers.placed` turns this into the scopes of informers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fastness.kinds.confidentialcontainers import GROUP as CONFIDENTIAL_CONTAINERS
from fastness.kinds.kata import names as kata
from fastness.kinds.kind import Resource
from fastness.kinds.machineconfiguration.names import OPERATOR_NAMESPACE, USER_DATA_NAMESPACE
from fastness.kinds.nfd import GROUP as NFD
from fastness.kinds.nfd import UPSTREAM as NFD_UPSTREAM
from fastness.kinds.trusted_execution import GROUP as TRUSTED

HOME: Final = "fastness-system"
TRUSTED_CLUSTERS: Final = "trusted-execution-clusters"
TRUSTEE: Final = "trustee-operator-system"
DISCOVERY: Final = "openshift-nfd"
SEALED: Final = "fastness-resources"
JOINS: Final = "fastness-joins"
POOL_JOINS: Final = "fastness-pool-joins"
DISKS: Final = "fastness-disks"
OPERATORS: Final = (TRUSTED_CLUSTERS, TRUSTEE, DISCOVERY)
MADE_HERE: Final = (HOME, SEALED, JOINS, POOL_JOINS, DISKS, *OPERATORS, USER_DATA_NAMESPACE)
"""The namespaces that the embedded API makes at its first start."""

RESERVED: Final = (
    *MADE_HERE, kata.NAMESPACE, kata.DASHBOARD_NAMESPACE, kata.CLUSTER_PULL_SECRET[0], "openshift-marketplace",
    OPERATOR_NAMESPACE,
)  # fmt: skip
"""Names under which something of ours is read: whoever makes a namespace administers it, so administrators alone make these."""


class Belongs(Enum):
    """Whose word an object of a kind is."""

    HOME = "home"
    TRUSTED = TRUSTED_CLUSTERS
    TRUSTEE = TRUSTEE
    DISCOVERY = DISCOVERY
    PLATFORM = "platform"
    OWN = "own"
    NAMED = "named"


_FAMILIES: Final = {Belongs.TRUSTED, Belongs.TRUSTEE, Belongs.DISCOVERY}
_TABLE: Final[Mapping[tuple[str, str], Belongs]] = {
    (TRUSTED, "machines"): Belongs.HOME,
    (TRUSTED, "attestationkeys"): Belongs.HOME,
    (TRUSTED, "approvedimages"): Belongs.TRUSTED,
    (TRUSTED, "trustedexecutionclusters"): Belongs.TRUSTED,
    (CONFIDENTIAL_CONTAINERS, "kbsconfigs"): Belongs.TRUSTEE,
    (CONFIDENTIAL_CONTAINERS, "trusteeconfigs"): Belongs.TRUSTEE,
    **{
        (group, plural): Belongs.DISCOVERY
        for group in (NFD, NFD_UPSTREAM)
        for plural in ("nodefeatures", "nodefeaturediscoveries", "nodefeaturegroups")
    },
    ("machine.openshift.io", "machinesets"): Belongs.PLATFORM,
    ("machine.openshift.io", "machines"): Belongs.PLATFORM,
    ("machine.openshift.io", "controlplanemachinesets"): Belongs.PLATFORM,
    ("metal3.io", "baremetalhosts"): Belongs.PLATFORM,
    ("bootstrap.cluster.x-k8s.io", "fastnessconfigs"): Belongs.PLATFORM,
    ("", "pods"): Belongs.OWN,
    ("", "events"): Belongs.OWN,
    ("", "serviceaccounts"): Belongs.OWN,
    ("policy", "poddisruptionbudgets"): Belongs.OWN,
    ("config.openshift.io", "imagepolicies"): Belongs.OWN,
    **{
        ("operators.coreos.com", plural): Belongs.OWN
        for plural in ("subscriptions", "installplans", "clusterserviceversions", "operatorgroups", "catalogsources")
    },
}
ROOT_CA: Final = "kube-root-ca.crt"
_OWN_BY_NAME: Final = {("", "configmaps"): frozenset({ROOT_CA})}
"""Objects that every namespace has of its own, of kinds that otherwise have to be looked for in a named place."""


def belongs(resource: Resource) -> Belongs:
    """Whose word objects of a namespaced kind are."""
    return _TABLE.get((resource.group, resource.plural), Belongs.NAMED)


def speaks_for_itself(resource: Resource, name: str = "") -> bool:
    """Whether objects of a kind, or those of one name, are read in every namespace: they are about that namespace alone."""
    named = _OWN_BY_NAME.get((resource.group, resource.plural), frozenset())
    return not resource.namespaced or belongs(resource) is Belongs.OWN or name in named


def counted_kinds(resources: Iterable[Resource]) -> list[Resource]:
    """Those kinds of which an object counts in some namespaces and not in others."""
    return [
        resource
        for resource in resources
        if resource.namespaced and belongs(resource) not in (Belongs.OWN, Belongs.NAMED)
    ]


@dataclass(frozen=True, slots=True)
class Places:
    """The namespaces that count in one cluster; without any word of an administrator it is the home alone."""

    embedded: bool = False
    adopted: frozenset[str] = frozenset()

    def of(self, resource: Resource) -> tuple[str, ...]:
        """The namespaces in which objects of a kind count; empty for kinds that no table limits."""
        return self._of(resource.group, resource.plural)

    def _of(self, group: str, plural: str) -> tuple[str, ...]:
        whose = _TABLE.get((group, plural), Belongs.NAMED)
        if whose is Belongs.HOME:
            return (HOME,)
        if whose is Belongs.PLATFORM:
            return (USER_DATA_NAMESPACE,)
        if whose not in _FAMILIES:
            return ()
        general = self.adopted - set(OPERATORS)
        family = {whose.value} & (self.adopted | (set(OPERATORS) if self.embedded else set()))
        return (HOME, *sorted(family | general - {HOME}))

    def counts(self, resource: Resource, namespace: str) -> bool:
        """Whether an object of a kind counts in a namespace."""
        return self.counts_at(resource.group, resource.plural, namespace)

    def counts_at(self, group: str, plural: str, namespace: str) -> bool:
        """Whether an object of a kind counts in a namespace; the kind is told by group and plural."""
        namespaces = self._of(group, plural)
        return not namespaces or namespace in namespaces


AT_HOME: Final = Places()
EMBEDDED: Final = Places(embedded=True)
