"""The order of versions and of groups.

* Versions: stable before beta before alpha, each with the larger number first; names of another form last, in the order of
  the alphabet. The first version of a group is the preferred one.
* Groups: those of Kubernetes in the order of a real server's discovery, then all others by name. The order decides which group
  `kubectl get events` means when two groups have that name.
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"v([1-9][0-9]{0,9})(?:(alpha|beta)([1-9][0-9]{0,9}))?")
_STAGE: Final = {None: 0, "beta": 1, "alpha": 2}
_UNUSUAL: Final = 3

GROUP_ORDER: Final = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
_RANK: Final = {name: rank for rank, name in enumerate(GROUP_ORDER)}


def version_key(version: str) -> tuple[int, int, int, str]:
    """A key that sorts versions as Kubernetes prefers them: best first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return _UNUSUAL, 0, 0, version
    return _STAGE[match[2]], -int(match[1]), -int(match[3] or 0), version


def group_key(group: str) -> tuple[int, str]:
    """A key that sorts groups as discovery lists them."""
    return _RANK.get(group, len(GROUP_ORDER)), group
