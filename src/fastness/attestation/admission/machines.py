"""The status of a Machine is what the doors and loops found out, and nobody else's word.

Nodes are labelled, tainted and given certificates by it. A role that may patch `machines/status`, because an operator's manual
asks for it or by a wildcard, would be a role that attests machines. So beside RBAC the writer has to be a part of the control
plane, or the owner of the cluster, whom no rule can keep from anything.
"""

from __future__ import annotations

from fastness.attestation.admission.acts import is_control_plane
from fastness.kinds.trusted_execution import GROUP
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, forbidden
from fastness.kube.places import HOME

__all__ = ["GROUP", "status_is_found_out"]


def status_is_found_out(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse the status of a Machine that counts from anybody but the control plane."""
    if request.namespace != HOME or is_control_plane(request.user) or request.user.is_master:
        return None
    return forbidden(request, "the status of a Machine is what the control plane found out: nobody else writes it")
