"""Whose definitions are whose: our own kinds, and sets of others that are installed on request alone.

    own             what Fastness is made of; it does not start without them
    machineconfig   pools and configs of machines, and the settings of a cluster that they are rendered from
    machines        machine sets, control plane machine sets and the hosts of bare metal
    trustee, kata, nfd, nvidia, olm, monitoring, openshift, vcluster        kinds of other projects that some loops of ours read

A definition belongs to whoever installed it. Where another operator brings one of these, its own is the right one: whoever asks
for a set here says that nobody else brings it. A control plane without a set leaves the controllers out that need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastness.kinds.crd.manifest import manifests
from fastness.kinds.kind import JsonObject

OWN: Final = "own"
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    OWN: ("fastness.dev", "trusted-execution-clusters.io", "bootstrap.cluster.x-k8s.io"),
    "machineconfig": ("machineconfiguration.openshift.io", "operator.openshift.io", "config.openshift.io"),
    "machines": ("machine.openshift.io", "metal3.io"),
    "trustee": ("confidentialcontainers.org",),
    "kata": ("kataconfiguration.openshift.io",),
    "nfd": ("nfd.openshift.io", "nfd.k8s-sigs.io"),
    "nvidia": ("nvidia.com",),
    "olm": ("operators.coreos.com",),
    "monitoring": ("monitoring.coreos.com",),
    "openshift": ("apps.openshift.io", "project.openshift.io", "route.openshift.io", "security.openshift.io"),
    "vcluster": ("management.loft.sh",),
}
OTHERS: Final = tuple(name for name in GROUPS if name != OWN)
ALL: Final = "all"
_SET_OF: Final = {group: name for name, groups in GROUPS.items() for group in groups}


def set_of(group: str) -> str:
    """The set that the definitions of a group belong to; raises KeyError for a group that is in none."""
    return _SET_OF[group]


def definitions(sets: Iterable[str] = ()) -> tuple[JsonObject, ...]:
    """Our own definitions and those of these sets, ordered by group and plural; raises KeyError for a set that is none."""
    chosen = {OWN, *(OTHERS if ALL in (named := tuple(sets)) else named)}
    groups = {group for name in chosen for group in GROUPS[name]}
    return tuple(definition for definition in manifests() if definition["spec"]["group"] in groups)


def own_names() -> frozenset[str]:
    """The names of the definitions without which nothing starts."""
    return frozenset(definition["metadata"]["name"] for definition in definitions())
