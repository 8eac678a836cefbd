"""Rules about operators: who removes one is told what still needs it.

The manual removes pods, then the KataConfig, then the operator. In another order nothing breaks at once, and that is the trap:
without its operator nothing acts on a KataConfig any more, not even who deletes it. So it is allowed, and said.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed

GROUP: Final = "operators.coreos.com"
PACKAGE: Final = "sandboxed-containers-operator"
NAMESPACE: Final = "openshift-sandboxed-containers-operator"


def still_needed(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn who deletes the operator of sandboxed containers while a KataConfig is there."""
    if not _is_part(request):
        return None
    left = sorted(object_name(one).name for one in lookups.kata_configs() if not is_being_deleted(one))
    if not left:
        return None
    still = f"KataConfig {', '.join(left)} still exists: delete it first"
    return Allowed((f"{still}, or nothing acts on it, and it cannot be removed, until the operator is back",))


def _is_part(request: AdmissionRequest) -> bool:
    if request.resource == "namespaces":
        return request.name == NAMESPACE
    return request.namespace == NAMESPACE and request.name.startswith(PACKAGE)
