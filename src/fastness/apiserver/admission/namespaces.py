"""The life of namespaces: nothing is created where nothing may live.

* An object cannot be written into a namespace that does not exist (404), nor created in one that is being deleted (403 with the
  cause `NamespaceTerminating`, by which controllers know to stop).
* The namespaces that the cluster itself stands on cannot be deleted, nor those in which objects speak for all of it: whoever
  made one of them anew would own what counts there. Our own can, with the confirmation of a lowering.
* A namespace whose content we read by its name is made by an administrator: whoever makes a namespace administers it.
* Access reviews are questions, not objects: they may name any namespace.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.objects import is_being_deleted
from fastness.kube.access.policy import RBAC_GROUP
from fastness.kube.access.user import Attributes
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, DeniedCause, forbidden
from fastness.kube.places import HOME, MADE_HERE, RESERVED

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease", *MADE_HERE}) - {HOME}
_REVIEWS: Final = ("authorization.k8s.io", "authentication.k8s.io")


def namespace_exists(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a write into a namespace that does not exist."""
    if not _lives_in_namespace(request) or lookups.namespace(request.namespace) is not None:
        return None
    return Denied(
        f'namespaces "{request.namespace}" not found', 404, "NotFound", about=("namespaces", request.namespace)
    )


def namespace_is_alive(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse new objects in a namespace that is being deleted."""
    if not _lives_in_namespace(request):
        return None
    namespace = lookups.namespace(request.namespace) or {}
    phase = (namespace.get("status") or {}).get("phase")
    if phase != "Terminating" and not is_being_deleted(namespace):
        return None
    cause = DeniedCause(
        "metadata.namespace", "NamespaceTerminating", f"namespace {request.namespace} is being terminated"
    )
    why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
    return forbidden(request, why, cause)


def namespace_may_go(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse the deletion of a namespace that the cluster stands on."""
    return forbidden(request, "this namespace may not be deleted") if request.name in IMMORTAL else None


def reserved_name_is_an_administrators(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a namespace in which something of ours is read to whoever may not bind roles in the whole cluster anyway."""
    if request.name not in RESERVED:
        return None
    binds = Attributes(request.user, "create", RBAC_GROUP, "v1", "clusterrolebindings")
    if lookups.authorize(binds).allowed:
        return None
    return forbidden(request, "the control plane reads what is in a namespace of this name: an administrator makes it")


def _lives_in_namespace(request: AdmissionRequest) -> bool:
    is_namespace = request.group == "" and request.resource == "namespaces"
    return bool(request.namespace) and not is_namespace and request.group not in _REVIEWS
