"""Objects that trust rests on: who writes the status of a Machine, and how such objects end.

* The status of a Machine is what the doors and loops found out, and nobody else's word. Nodes are labelled, tainted and given
  certificates by it. A role that may patch `machines/status`, because an operator's manual asks for it or by a wildcard, would be
  a role that attests machines. So beside RBAC the writer has to be a part of the control plane, or the owner of the cluster, whom
  no rule can keep from anything.
* The garbage collector of Kubernetes deletes whatever names an owner that does not exist. Whoever may change an object but not
  delete it could therefore delete it all the same, and under the collector's name: so these kinds have no owners.
* A Machine that is not trusted any more bars its chip, or its TPM, to newcomers. The finalizer `fastness.dev/barred` holds it
  until the controllers have written down what it bars (a Distrust); it cannot be deleted before it has that finalizer, and nobody
  else takes it off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.attestation.admission.acts import is_control_plane
from fastness.attestation.machine.chip import BARRED, bars
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import is_being_deleted, metadata, view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, DeniedCause, forbidden
from fastness.kube.places import HOME

MACHINES: Final = ("trusted-execution-clusters.io", "machines")
WITHOUT_OWNERS: Final = (
    MACHINES,
    ("trusted-execution-clusters.io", "approvedimages"),
    ("fastness.dev", "distrusts"),
    ("fastness.dev", "verdicts"),
    ("fastness.dev", "confidentialclusters"),
    ("fastness.dev", "appraisalpolicies"),
    ("fastness.dev", "referencevaluesets"),
    ("fastness.dev", "resourcebindings"),
)


def has_no_owner(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a new owner of an object that must not end with one."""
    owners = metadata(request.new).get("ownerReferences")
    if not owners or owners == metadata(request.old or {}).get("ownerReferences"):
        return None
    cause = DeniedCause("metadata.ownerReferences", "FieldValueForbidden", "Forbidden: the object ends by itself")
    return forbidden(request, "an owner could take it along when it goes, unrecorded: delete it by its own name", cause)


def bar_is_noted(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to delete a Machine that bars something before the controllers hold it for that."""
    old = request.old or {}
    if request.namespace != NAMESPACE or BARRED in _finalizers(old) or is_being_deleted(old) or not bars(_machine(old)):
        return None
    return forbidden(request, "what it bars to newcomers is not noted yet: try again in a moment")


def bar_is_not_lifted(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to let go of a Machine that bars something; a release ends that, and the controllers let go."""
    if BARRED not in _finalizers(request.old or {}) or BARRED in _finalizers(request.new):
        return None
    if is_control_plane(request.user) or not bars(_machine(request.new)):
        return None
    cause = DeniedCause("metadata.finalizers", "FieldValueForbidden", f"Forbidden: {BARRED} is the control plane's")
    return forbidden(request, "it bars its chip or TPM to newcomers until it is released", cause)


def _machine(obj: Mapping[str, Any]) -> Machine:
    return view(obj, Machine)


def _finalizers(obj: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(metadata(obj).get("finalizers") or ())


def status_is_found_out(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse the status of a Machine that counts from anybody but the control plane."""
    if request.namespace != HOME or is_control_plane(request.user) or request.user.is_master:
        return None
    return forbidden(request, "the status of a Machine is what the control plane found out: nobody else writes it")
